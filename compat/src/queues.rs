//! The queues and stacks, with C's signatures: one file for each of liburcu's headers.
//!
//! `quiescence::intrusive` implements them. Here is what C adds: the locks by which consumers may
//! exclude each other, and the encoding of a result in a pointer. A lock lies behind its structure,
//! and is a POSIX mutex, as clients have its use inlined. Every function is exported under the
//! prefix `quiescence_` and its name in liburcu; the thin libraries jump there.
//!
//! The contract of all of them is liburcu's, called "liburcu's contract" below. Pointers are valid.
//! Structures were initialised by liburcu's functions (inlined or not), and do not move. Nodes were
//! initialised since they were last in a structure. Consumers exclude each other where the header
//! requires it.

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

/// A node as C expects it: null if there is none, all ones (`CDS_WFCQ_WOULDBLOCK`,
/// `CDS_WFS_WOULDBLOCK`) for "try again".
fn node<T>(found: Result<Option<NonNull<T>>, WouldBlock>) -> *mut T {
    match found {
        Ok(Some(node)) => node.as_ptr(),
        Ok(None) => ptr::null_mut(),
        Err(WouldBlock) => ptr::without_provenance_mut(usize::MAX),
    }
}

/// Stores in `state`, unless it is null, whether the last node has been taken.
///
/// # Safety
/// `state` is writable, or null.
unsafe fn say_last(state: *mut c_int, last: bool) {
    if !state.is_null() {
        let said = if last { STATE_LAST } else { 0 };
        // SAFETY: by this function's contract.
        unsafe { state.write(said.cast_signed()) };
    }
}

/// A structure that a lock may lie behind.
trait Structure {
    /// C's name of the structure with its lock.
    const NAME: &str;
}

/// A structure with the lock of its consumers behind it.
#[repr(C)]
struct Locked<S> {
    structure: S,
    lock: libc::pthread_mutex_t,
}

/// A function of POSIX threads on a lock, and the end of its name.
type OnLock = (&'static str, unsafe extern "C" fn(*mut libc::pthread_mutex_t) -> c_int);

const INIT: OnLock = ("init", init);
const DESTROY: OnLock = ("destroy", libc::pthread_mutex_destroy);
const LOCK: OnLock = ("lock", libc::pthread_mutex_lock);
const UNLOCK: OnLock = ("unlock", libc::pthread_mutex_unlock);

unsafe extern "C" fn init(lock: *mut libc::pthread_mutex_t) -> c_int {
    // SAFETY: by the contract of `posix`; null means default attributes.
    unsafe { libc::pthread_mutex_init(lock, ptr::null()) }
}

impl<S: Structure> Locked<S> {
    /// Calls a function of POSIX threads on the lock, and aborts the process if it fails.
    ///
    /// # Safety
    /// liburcu's contract, and the function's.
    unsafe fn posix(locked: *mut Self, (name, function): OnLock) {
        // SAFETY: by this function's contract.
        let lock = unsafe { &raw mut (*locked).lock };
        // SAFETY: as above.
        let result = unsafe { function(lock) };
        if result != 0 {
            let (error, structure) = (std::io::Error::from_raw_os_error(result), S::NAME);
            fatal(format_args!(
                "pthread_mutex_{name} of the lock of a {structure}: {error}; has it been \
                 initialised, and not destroyed?"
            ));
        }
    }

    /// Calls `f` with the structure, under the lock.
    ///
    /// # Safety
    /// liburcu's contract; the calling thread has not locked it.
    unsafe fn locked<'l, R: 'l>(locked: *mut Self, f: impl FnOnce(&'l S) -> R) -> R
    where
        S: 'l,
    {
        // SAFETY: by this function's contract.
        unsafe { Self::posix(locked, LOCK) };
        // SAFETY: as above; the structure is shared with the threads that add to it.
        let result = f(unsafe { &(*locked).structure });
        // SAFETY: by this function's contract, and locked above.
        unsafe { Self::posix(locked, UNLOCK) };
        result
    }
}
