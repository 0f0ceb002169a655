//! `struct cds_lfht_alloc`: a table's memory from the program's own allocator, since liburcu 0.15.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use quiescence::intrusive::{Node, TableAllocator};

use crate::fatal::fatal;

/// `struct cds_lfht_alloc`. A table copies it when it is made.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    malloc: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    calloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    realloc: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void>,
    aligned_alloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    state: *mut c_void,
}

const _: () = assert!(size_of::<Functions>() == 6 * size_of::<usize>());

/// The alignment that `calloc` gives to every request made here.
const ALIGNED_ANYWAY: usize = 16;

/// The functions that are called.
struct Callers {
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    aligned_alloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void),
    state: *mut c_void,
}

// SAFETY: by their interface any thread may call the functions.
unsafe impl Send for Callers {}
// SAFETY: as above.
unsafe impl Sync for Callers {}

/// The program's allocator; `None` if it passes NULL.
///
/// # Safety
/// `alloc` is null, or valid, and its functions behave as C's functions of these names.
pub(super) unsafe fn of(alloc: *const Functions) -> Option<Arc<dyn TableAllocator>> {
    // SAFETY: by the contract.
    let Functions { calloc, aligned_alloc, free, state, .. } = *unsafe { alloc.as_ref() }?;
    let (Some(calloc), Some(aligned_alloc), Some(free)) = (calloc, aligned_alloc, free) else {
        fatal(format_args!(
            "cds_lfht: a function of the struct cds_lfht_alloc is NULL; fill in all of them, or \
             pass NULL for the library's own allocator"
        ));
    };
    Some(Arc::new(Callers { calloc, aligned_alloc, free, state }))
}

// SAFETY: the functions return memory as C's of these names do. A C function does not unwind.
unsafe impl TableAllocator for Callers {
    fn allocate(&self, layout: Layout) -> *mut u8 {
        let (align, size) = (layout.align(), layout.size());
        let memory = if align <= ALIGNED_ANYWAY {
            // SAFETY: by the contract of `of`.
            unsafe { (self.calloc)(self.state, 1, size) }
        } else {
            // SAFETY: as above.
            unsafe { (self.aligned_alloc)(self.state, align, size) }
        };
        let wanted = if align <= ALIGNED_ANYWAY { align_of::<Node>() } else { align };
        if !memory.addr().is_multiple_of(wanted) {
            fatal(format_args!(
                "cds_lfht: a function of the struct cds_lfht_alloc returned {memory:p}, which is \
                 not aligned to {wanted} bytes"
            ));
        }
        if !memory.is_null() && align > ALIGNED_ANYWAY {
            // SAFETY: `size` bytes that were just allocated.
            unsafe { ptr::write_bytes(memory.cast::<u8>(), 0, size) };
        }
        memory.cast()
    }

    unsafe fn free(&self, memory: *mut u8, _: Layout) {
        // SAFETY: by the contract, from one of the functions above.
        unsafe { (self.free)(self.state, memory.cast()) };
    }
}
