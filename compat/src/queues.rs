//! The queues and stacks, with C's signatures: one file for each of liburcu's headers.
//!
//! What they do is `quiescence::intrusive`'s. Here are what C has around it: the locks by which
//! consumers may exclude each other, which lie behind the structures and are POSIX's since clients
//! have them inlined, and how an answer is put into a pointer. Every function is exported as
//! `quiescence_` and the name it has in liburcu; the thin libraries jump there.
//!
//! The contracts are liburcu's: pointers are valid, structures were initialised by its functions
//! (inlined or not) and do not move, nodes were initialised since they were last in something, and
//! consumers exclude each other where the header says so. Each SAFETY comment that says "liburcu's
//! contract" means this one.

mod lfstack;
mod rculfqueue;
mod wfcqueue;
mod wfqueue;
mod wfstack;

use std::ffi::{c_int, c_uint};
use std::ptr::{self, NonNull};

use quiescence::intrusive::WouldBlock;

use crate::fatal::fatal;

/// `CDS_WFCQ_STATE_LAST` and `CDS_WFS_STATE_LAST`.
const STATE_LAST: c_uint = 1;

/// A node as C has it: null if there is none, all ones (`CDS_WFCQ_WOULDBLOCK`,
/// `CDS_WFS_WOULDBLOCK`) for "try again".
fn node<T>(found: Result<Option<NonNull<T>>, WouldBlock>) -> *mut T {
    match found {
        Ok(Some(node)) => node.as_ptr(),
        Ok(None) => ptr::null_mut(),
        Err(WouldBlock) => ptr::without_provenance_mut(usize::MAX),
    }
}

/// Says at `state` whether the last node has been taken.
///
/// # Safety
/// It may be written, or is null.
unsafe fn say_last(state: *mut c_int, last: bool) {
    if !state.is_null() {
        let said = if last { STATE_LAST } else { 0 };
        // SAFETY: by this function's contract.
        unsafe { state.write(said.cast_signed()) };
    }
}

/// Ends the process if a function of POSIX threads did not succeed. `structure` is what its lock
/// belongs to.
fn succeeded(result: c_int, call: &str, structure: &str) {
    if result != 0 {
        let error = std::io::Error::from_raw_os_error(result);
        fatal(format_args!(
            "{call} of the lock of a {structure}: {error}; has it been initialised, and not destroyed?"
        ));
    }
}

/// A structure with the lock of its consumers behind it.
#[repr(C)]
struct Locked<S> {
    structure: S,
    lock: libc::pthread_mutex_t,
}

impl<S> Locked<S> {
    /// Makes the lock. The structure's own part is made by its own function.
    ///
    /// # Safety
    /// `locked` may be written and is the caller's alone.
    unsafe fn init(locked: *mut Self, name: &str) {
        // SAFETY: by this function's contract.
        let lock = unsafe { &raw mut (*locked).lock };
        // SAFETY: as above; null is for the usual attributes.
        let result = unsafe { libc::pthread_mutex_init(lock, ptr::null()) };
        succeeded(result, "pthread_mutex_init", name);
    }

    /// Ends the lock.
    ///
    /// # Safety
    /// liburcu's contract; no thread uses it any more.
    unsafe fn destroy(locked: *mut Self, name: &str) {
        // SAFETY: by this function's contract.
        let lock = unsafe { &raw mut (*locked).lock };
        // SAFETY: as above.
        succeeded(unsafe { libc::pthread_mutex_destroy(lock) }, "pthread_mutex_destroy", name);
    }

    /// # Safety
    /// liburcu's contract.
    unsafe fn lock(locked: *mut Self, name: &str) {
        // SAFETY: by this function's contract.
        let lock = unsafe { &raw mut (*locked).lock };
        // SAFETY: as above.
        succeeded(unsafe { libc::pthread_mutex_lock(lock) }, "pthread_mutex_lock", name);
    }

    /// # Safety
    /// liburcu's contract; the calling thread has locked it.
    unsafe fn unlock(locked: *mut Self, name: &str) {
        // SAFETY: by this function's contract.
        let lock = unsafe { &raw mut (*locked).lock };
        // SAFETY: as above.
        succeeded(unsafe { libc::pthread_mutex_unlock(lock) }, "pthread_mutex_unlock", name);
    }

    /// Does something while other consumers wait.
    ///
    /// # Safety
    /// liburcu's contract; the calling thread has not locked it.
    unsafe fn locked<R>(locked: *mut Self, name: &str, f: impl FnOnce() -> R) -> R {
        // SAFETY: by this function's contract.
        unsafe { Self::lock(locked, name) };
        let result = f();
        // SAFETY: by this function's contract, and locked above.
        unsafe { Self::unlock(locked, name) };
        result
    }
}
