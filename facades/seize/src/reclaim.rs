//! Functions with which objects can be [retired](crate::Collector::retire).

use crate::Collector;

/// Drops the box that [`Box::into_raw`] turned into a pointer.
///
/// # Safety
/// `ptr` is from a box, and is not used any more.
pub unsafe fn boxed<T>(ptr: *mut T, _: &Collector) {
    // SAFETY: by the contract.
    drop(unsafe { Box::from_raw(ptr) });
}

/// Drops an object in place, without freeing its memory.
///
/// # Safety
/// As for [`std::ptr::drop_in_place`].
pub unsafe fn in_place<T>(ptr: *mut T, _: &Collector) {
    // SAFETY: by the contract.
    unsafe { ptr.drop_in_place() };
}
