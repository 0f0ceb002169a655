//! Functions with which objects can be [retired](crate::Collector::retire).

use crate::{AsLink, Link};

/// Drops the box that [`Box::into_raw`] turned into a pointer.
///
/// # Safety
/// `link` belongs to a `T` from a box, which is not used any more.
pub unsafe fn boxed<T: AsLink>(link: *mut Link) {
    // SAFETY: by the contract.
    drop(unsafe { Box::from_raw(Link::cast::<T>(link)) });
}

/// Drops an object in place, without freeing its memory.
///
/// # Safety
/// `link` belongs to a `T`; otherwise as for [`std::ptr::drop_in_place`].
pub unsafe fn in_place<T: AsLink>(link: *mut Link) {
    // SAFETY: by the contract.
    unsafe { Link::cast::<T>(link).drop_in_place() };
}
