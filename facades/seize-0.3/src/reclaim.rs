//! Functions to [retire](crate::Collector::retire) objects with.

use crate::{AsLink, Link};

/// Drops what [`Box::into_raw`] gave.
///
/// # Safety
/// `link` is that of a `T` from a box, which is not used any more.
pub unsafe fn boxed<T: AsLink>(link: *mut Link) {
    // SAFETY: by the contract.
    drop(unsafe { Box::from_raw(Link::cast::<T>(link)) });
}

/// Drops an object where it is, and leaves its memory alone.
///
/// # Safety
/// `link` is that of a `T`; as for [`std::ptr::drop_in_place`].
pub unsafe fn in_place<T: AsLink>(link: *mut Link) {
    // SAFETY: by the contract.
    unsafe { Link::cast::<T>(link).drop_in_place() };
}
