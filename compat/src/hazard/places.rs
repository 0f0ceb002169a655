//! Places in which hazard pointers of C++ say what they protect: slots of the library's, which all
//! scans of the process see.

use std::ptr;
use std::sync::atomic::AtomicPtr;

use super::Object;
use quiescence::hazard;

/// A slot. Its only word is the interface's: the header has the stores to it inlined.
type Place = AtomicPtr<()>;

/// How many objects may be protected: what waits besides is twice that at most.
pub(super) fn count() -> usize {
    hazard::raw::count()
}

/// Executes a heavy fence [HP-1], and calls `f` with each address that is protected [HP-2].
pub(super) fn for_each_protected(mut f: impl FnMut(*const Object)) {
    hazard::raw::scan(|address| f(address.cast()));
}

/// A place that is the caller's alone, which protects nothing; null if there is no memory.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_hazard_v1_acquire() -> *const Place {
    hazard::raw::acquire().map_or(ptr::null(), ptr::from_ref)
}

/// Gives a place back, which protects nothing from now on.
///
/// # Safety
/// It is from `quiescence_hazard_v1_acquire`, and was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quiescence_hazard_v1_release(place: *const Place) {
    // SAFETY: by the contract; slots stay.
    let place = unsafe { &*place };
    // SAFETY: by the contract.
    unsafe { hazard::raw::release(place) };
}
