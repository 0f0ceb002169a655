//! Linux system calls that a signal handler may make, through the C library. They preserve `errno`,
//! and neither allocate nor lock.

use std::time::Duration;

use libc::{c_int, c_long};

use super::sync::AtomicU32;

/// Calls `f`, and puts the calling thread's `errno` back.
pub fn keeping_errno<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: asks where the calling thread has it: for as long as it lives.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept = unsafe { *errno };
    let result = f();
    // SAFETY: as above.
    unsafe { *errno = kept }; //~ compat-errno
    result
}

/// A call's result, or its `errno`.
pub(crate) type Result<T> = std::result::Result<T, c_int>;

/// Makes a call that says by -1 that it fails, and by `errno` why.
pub(crate) fn call<N: From<i8> + PartialEq>(f: impl FnOnce() -> N) -> Result<N> {
    keeping_errno(|| match f() {
        failed if failed == N::from(-1) => {
            // SAFETY: asks where the calling thread has it: for as long as it lives.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: as above.
            Err(unsafe { *errno })
        }
        returned => Ok(returned),
    })
}

/// The calling thread's id.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: asks for a number. (The C library's function is younger than the system call.)
    #[cfg(not(miri))]
    let id = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    // SAFETY: as above; Miri has the function alone.
    #[cfg(miri)]
    let id = unsafe { libc::gettid() }.cast_unsigned();
    id
}

/// Sleeps while the word has this value, for `most` at most. Whether that time is over: whatever
/// else has woken it the caller finds by looking.
pub fn futex_wait(word: &AtomicU32, is_private: bool, value: u32, most: Option<Duration>) -> bool {
    let operation = libc::FUTEX_WAIT | if is_private { libc::FUTEX_PRIVATE_FLAG } else { 0 };
    // Too long for the kernel is for ever.
    let most = most.and_then(|most| {
        let tv_nsec = most.subsec_nanos().into();
        Some(libc::timespec { tv_sec: most.as_secs().try_into().ok()?, tv_nsec })
    });
    let most = most.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let word = std::ptr::from_ref(word).cast::<u32>(); // Miri takes no other type
    // SAFETY: a word and a time that live longer than the call.
    let slept = call(|| unsafe { libc::syscall(libc::SYS_futex, word, operation, value, most) });
    slept == Err(libc::ETIMEDOUT)
}

/// Wakes all that sleep on the word.
pub fn futex_wake(word: &AtomicU32, is_private: bool) {
    let operation = libc::FUTEX_WAKE | if is_private { libc::FUTEX_PRIVATE_FLAG } else { 0 };
    let word = std::ptr::from_ref(word).cast::<u32>(); // as in `futex_wait`
    // It can fail for a bad address only, and this one is a reference's.
    // SAFETY: wakes threads, which look before they go on; the word is not written to.
    let _ = call(|| unsafe { libc::syscall(libc::SYS_futex, word, operation, i32::MAX) });
}

/// Writes to a descriptor: by one call, unless it takes a part only. A failure cannot be reported.
pub(crate) fn write(file: c_int, mut rest: &[u8]) {
    while !rest.is_empty() {
        let (place, bytes) = (rest.as_ptr(), rest.len());
        // SAFETY: reads these bytes.
        #[cfg(not(miri))]
        let wrote = call(|| unsafe { libc::syscall(libc::SYS_write, file, place, bytes) });
        // SAFETY: as above; Miri has the function alone.
        #[cfg(miri)]
        let wrote = call(|| unsafe { libc::write(file, place.cast(), bytes) });
        match wrote {
            Ok(bytes @ 1..) => rest = &rest[bytes as usize..],
            Err(libc::EINTR) => {}
            _ => return,
        }
    }
}

pub(crate) use of_linux_alone::*;

#[cfg(miri)]
#[path = "calls/elsewhere.rs"]
mod of_linux_alone;
#[cfg(not(miri))]
mod of_linux_alone {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;
    use std::ptr;

    pub(crate) use libc::{
        MADV_DONTNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MAP_NORESERVE, PROT_NONE,
    };

    use super::{Result, c_int, c_long, call, keeping_errno};

    /// What may be done with pages.
    pub(crate) const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

    /// A command of membarrier(2), or several that the kernel says it has.
    pub(crate) fn membarrier(command: c_int) -> Result<c_int> {
        // SAFETY: a fence, or what prepares for it.
        call(|| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) })
            .map(|answer| answer as c_int)
    }

    /// Whether the process has one thread; false if that is not known.
    pub(crate) fn has_one_thread() -> bool {
        let mut tasks = MaybeUninit::<libc::stat>::uninit();
        let path = c"/proc/self/task".as_ptr();
        // SAFETY: writes what it is given room for.
        let asked = call(|| unsafe { libc::stat(path, tasks.as_mut_ptr()) });
        // SAFETY: written, as the call says. A folder has two links, and one for each folder in it.
        asked.is_ok() && unsafe { tasks.assume_init() }.st_nlink == 3
    }

    /// Memory of its own for the process, all zero, or addresses only: `PROT_NONE`. `None` if the
    /// system has none.
    pub(crate) fn map(bytes: usize, protection: c_int, flags: c_int) -> Option<*mut u8> {
        let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, in place of no other.
        let memory = keeping_errno(|| unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0)
        });
        (memory != libc::MAP_FAILED).then_some(memory.cast())
    }

    /// Takes pages of a mapping away. It does not fail for a whole mapping.
    ///
    /// # Safety
    /// They are pages of one that [`map`] has made, and no thread uses them.
    pub(crate) unsafe fn unmap(memory: *mut u8, bytes: usize) {
        // SAFETY: by the contract.
        let _ = keeping_errno(|| unsafe { libc::munmap(memory.cast(), bytes) });
    }

    /// Changes what may be done with pages, and whether that has been possible.
    ///
    /// # Safety
    /// They are pages of one mapping that [`map`] has made, and threads do no more with them.
    pub(crate) unsafe fn protect(memory: *mut u8, bytes: usize, protection: c_int) -> bool {
        // SAFETY: by the contract.
        keeping_errno(|| unsafe { libc::mprotect(memory.cast(), bytes, protection) }) == 0
    }

    /// Advises the system of how pages are used, and whether it has taken the advice.
    ///
    /// # Safety
    /// They are pages of one mapping that [`map`] has made. Where the advice is to give them up,
    /// no thread writes to them, and what is in them does not matter.
    pub(crate) unsafe fn advise(memory: *mut u8, bytes: usize, advice: c_int) -> bool {
        // SAFETY: by the contract.
        keeping_errno(|| unsafe { libc::madvise(memory.cast(), bytes, advice) }) == 0
    }

    pub(crate) fn page_size() -> usize {
        // SAFETY: asks for a number.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4_096)
    }

    /// Bytes of memory of the machine, if the system says so.
    pub(crate) fn machine_bytes() -> Option<u64> {
        // SAFETY: plain data, for which zero is a value.
        let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
        // SAFETY: writes to `info`.
        let told = unsafe { libc::sysinfo(&raw mut info) } == 0;
        #[allow(clippy::useless_conversion)] // not on every system
        let units = u64::from(info.totalram);
        units.checked_mul(u64::from(info.mem_unit)).filter(|bytes| told && *bytes != 0)
    }

    /// As many CPUs as the kernel's masks have bits, which are as long as they have to be, in
    /// words: of these so many at the most.
    pub(crate) fn cpus_of_masks<const WORDS: usize>() -> u32 {
        let mut mask = [0_u64; WORDS];
        // SAFETY: the kernel writes so many bytes at most.
        let bytes = call(|| unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr())
        });
        bytes.ok().and_then(|bytes| u32::try_from(bytes).ok()).map_or(1, |bytes| bytes * 8)
    }

    /// The CPU that the thread is on.
    #[inline]
    pub(crate) fn cpu() -> u32 {
        // SAFETY: asks for a number.
        let cpu = keeping_errno(|| unsafe { libc::sched_getcpu() });
        u32::try_from(cpu).unwrap_or(0)
    }

    /// Reads the beginning of a file, as much as there is room for.
    ///
    /// By system calls, as [`write`] is: a thread may be cancelled in the C library's `open`,
    /// `read`, `write` and `close`, and would unwind through functions that must not.
    pub(crate) fn read_file<'a>(path: &CStr, text: &'a mut [u8]) -> Result<&'a [u8]> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: a path that ends with a zero.
        let open =
            || unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
        let file = uninterrupted(open)?;
        let mut length = 0;
        let mut last = Ok(1);
        while last.is_ok_and(|read| read > 0) {
            let rest = &mut text[length..];
            let (place, bytes) = (rest.as_mut_ptr(), rest.len());
            // SAFETY: writes to `rest`, not beyond its end.
            last = uninterrupted(|| unsafe { libc::syscall(libc::SYS_read, file, place, bytes) });
            length += last.unwrap_or(0) as usize;
        }
        // SAFETY: the descriptor opened above, which nothing else knows.
        let _ = call(|| unsafe { libc::syscall(libc::SYS_close, file) });
        last.map(|_| &text[..length])
    }

    /// Makes a call again that a signal has interrupted.
    fn uninterrupted(mut f: impl FnMut() -> c_long) -> Result<c_long> {
        loop {
            match call(&mut f) {
                Err(libc::EINTR) => {}
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A complaint on a standard error that is closed left EBADF behind, also in a signal handler.
    #[test]
    fn what_fails_leaves_errno_alone() {
        let errno = || std::io::Error::last_os_error().raw_os_error();
        // SAFETY: asks where the calling thread has it.
        let errno_of_thread = unsafe { libc::__errno_location() };
        // SAFETY: the calling thread's own.
        unsafe { *errno_of_thread = libc::EXDEV };
        write(-1, b"nowhere");
        assert_eq!(errno(), Some(libc::EXDEV));
        #[cfg(not(miri))]
        assert_eq!(read_file(c"/nowhere", &mut [0; 8]), Err(libc::ENOENT));
        assert_eq!(errno(), Some(libc::EXDEV));
    }
}
