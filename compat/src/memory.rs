//! Calls that find no memory.
//!
//! liburcu returns an error from `rcu_defer_register_thread`, `set_cpu_call_rcu_data`,
//! `create_all_cpu_call_rcu_data` and `cds_lfht_new`, and aborts elsewhere. So does this library. A
//! function that can return an error first checks that all the memory it needs is available
//! ([`is_there`]). If another thread takes that memory a moment later, the process aborts as well.
//!
//! It aborts with a message: the shared library's allocator is the system's, except that it prints
//! a message and aborts if there is no memory, without needing any. Requests for zeroed memory may
//! return null: all callers check.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::fatal::fatal;

/// The system's allocator, which aborts the process if there is no memory.
struct Named;

// SAFETY: the system's allocator; a failed call does not return.
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

/// Only in the shared library: a Rust program, such as a test, has an allocator of its own.
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

/// Aborts the process with a message.
#[cold]
pub(crate) fn out_of_memory(bytes: usize) -> ! {
    fatal(format_args!(
        "out of memory: cannot allocate {bytes} bytes; QUIESCENCE_LIMIT_BYTES limits the memory \
         that waiting callbacks hold"
    ))
}

/// Whether `bytes` are available in one piece. They are freed again, for later allocations.
pub(crate) fn is_there(bytes: usize) -> bool {
    // SAFETY: `malloc` has no preconditions.
    let memory = unsafe { libc::malloc(bytes) };
    // Otherwise the compiler might remove the unused allocation.
    let memory = std::hint::black_box(memory);
    // SAFETY: from malloc, above, or null.
    unsafe { libc::free(memory) };
    !memory.is_null()
}
