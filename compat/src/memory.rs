//! What becomes of a call that finds no memory.
//!
//! liburcu returns an error from `rcu_defer_register_thread`, `set_cpu_call_rcu_data`,
//! `create_all_cpu_call_rcu_data` and `cds_lfht_new`, and ends the process elsewhere. So do we.
//! What returns errors asks first whether there is memory for all that it will need ([`is_there`]);
//! it may be gone a moment later, by another thread, and then the process ends as well.
//!
//! The process ends with a message of ours: the shared library has an allocator of its own, the
//! system's, that ends it where there is no memory, and says so without needing any. Zeroed memory
//! it leaves to its callers, which all check.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::fatal::fatal;

/// The system's allocator; without memory the process ends.
struct Named;

// SAFETY: the system's own, but for one that does not come back.
unsafe impl GlobalAlloc for Named {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the contract.
        there(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the contract.
        there(unsafe { System.realloc(place, layout, size) }, size)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: by the contract.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Not where the crate is a part of a Rust program, a test say, which has an allocator of its own.
#[cfg_attr(feature = "library", global_allocator)]
#[cfg_attr(not(feature = "library"), allow(dead_code))]
static ALLOCATOR: Named = Named;

#[inline]
fn there(place: *mut u8, bytes: usize) -> *mut u8 {
    if place.is_null() {
        out_of_memory(bytes);
    }
    place
}

/// Ends the process.
#[cold]
pub(crate) fn out_of_memory(bytes: usize) -> ! {
    fatal(format_args!(
        "out of memory: cannot allocate {bytes} bytes; QUIESCENCE_LIMIT_BYTES limits the memory \
         that waiting callbacks hold"
    ))
}

/// Whether so many bytes are to be had, in one piece. They are free again for what comes next.
pub(crate) fn is_there(bytes: usize) -> bool {
    // SAFETY: asks for memory, or null.
    let memory = unsafe { libc::malloc(bytes) };
    // The compiler may not conclude that nothing of it is used.
    let memory = std::hint::black_box(memory);
    // SAFETY: from malloc, above, or null.
    unsafe { libc::free(memory) };
    !memory.is_null()
}
