//! Functions to [retire](crate::Collector::retire) objects with.

use crate::Collector;

/// Drops what [`Box::into_raw`] gave.
///
/// # Safety
/// `ptr` is from a box, and not used any more.
pub unsafe fn boxed<T>(ptr: *mut T, _: &Collector) {
    // SAFETY: by the contract.
    drop(unsafe { Box::from_raw(ptr) });
}

/// Drops an object where it is, and leaves its memory alone.
///
/// # Safety
/// As for [`std::ptr::drop_in_place`].
pub unsafe fn in_place<T>(ptr: *mut T, _: &Collector) {
    // SAFETY: by the contract.
    unsafe { ptr.drop_in_place() };
}
