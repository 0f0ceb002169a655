//! What the library asks of Linux alone, where there is no Linux, and under Miri, which has none of
//! it: memory is the allocator's, and the rest is not there.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, c_int};

pub(crate) const READ_WRITE: c_int = 0;
pub(crate) const PROT_NONE: c_int = 0;
pub(crate) const MAP_NORESERVE: c_int = 0;
pub(crate) const MADV_DONTNEED: c_int = 0;
pub(crate) const MADV_HUGEPAGE: c_int = 0;
pub(crate) const MADV_NOHUGEPAGE: c_int = 0;

pub(crate) fn membarrier(_command: c_int) -> Result<c_int, c_int> {
    Err(libc::ENOSYS)
}

pub(crate) fn has_one_thread() -> bool {
    false // nobody asks
}

/// As Linux maps no bytes, there is none of no bytes.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, page_size()).ok().filter(|layout| layout.size() != 0)
}

/// All of it is memory, even where addresses are asked for.
pub(crate) fn map(bytes: usize, _protection: c_int, _flags: c_int) -> Option<*mut u8> {
    // SAFETY: of more than no bytes.
    let memory = unsafe { alloc_zeroed(layout(bytes)?) };
    (!memory.is_null()).then_some(memory)
}

/// # Safety
/// The whole of what [`map`] has given, which no thread uses.
pub(crate) unsafe fn unmap(memory: *mut u8, bytes: usize) {
    // SAFETY: by the contract.
    unsafe { dealloc(memory, layout(bytes).expect("as it was allocated")) };
}

pub(crate) const unsafe fn protect(_memory: *mut u8, _bytes: usize, _protection: c_int) -> bool {
    true
}

/// What is there stays.
pub(crate) const unsafe fn advise(_memory: *mut u8, _bytes: usize, _advice: c_int) -> bool {
    false
}

pub(crate) fn page_size() -> usize {
    4_096
}

pub(crate) fn machine_bytes() -> Option<u64> {
    None
}

pub(crate) fn read_file<'a>(_path: &CStr, _text: &'a mut [u8]) -> Result<&'a [u8], c_int> {
    Err(libc::ENOSYS)
}

/// As many as the process is given.
pub(crate) fn cpus_of_masks<const WORDS: usize>() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Under Miri, as if each thread were on a CPU of its own.
pub(crate) fn cpu() -> u32 {
    #[cfg(target_os = "linux")]
    let cpu = super::thread_id();
    #[cfg(not(target_os = "linux"))]
    let cpu = 0;
    cpu
}
