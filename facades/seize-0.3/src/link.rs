//! The beginning of each object that can be retired, [`Link`]; and a value with one, [`Linked`].

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The first field of each object that can be retired, made by
/// [`Collector::link`](crate::Collector::link).
pub struct Link {
    /// `None` until the object is retired.
    reclaim: UnsafeCell<Option<unsafe fn(*mut Link)>>,
}

// SAFETY: written once, by the thread that retires the object. The thread that reclaims it reads
// it, and gets it from the collector.
unsafe impl Sync for Link {}

impl Link {
    pub(crate) const fn new() -> Self {
        Self { reclaim: UnsafeCell::new(None) }
    }

    /// The object that begins with this link.
    pub fn cast<T: AsLink>(link: *mut Self) -> *mut T {
        link.cast()
    }

    /// Stores the function that will reclaim the object.
    ///
    /// # Safety
    /// `link` is valid, and no other thread retires the object.
    pub(crate) unsafe fn retire_with(link: *mut Self, reclaim: unsafe fn(*mut Self)) {
        // SAFETY: by the contract.
        let noted = unsafe { (*link).reclaim.get() };
        // SAFETY: readers of the object do not read the link, and no other thread retires the
        // object.
        unsafe { *noted = Some(reclaim) };
    }

    /// Calls the function that was stored.
    ///
    /// # Safety
    /// `link` is valid, and the object was retired with that function, which may be called now.
    pub(crate) unsafe fn reclaim(link: *mut Self) {
        // SAFETY: by the contract.
        let noted = unsafe { (*link).reclaim.get() };
        // SAFETY: written before the object was retired, and by no thread since.
        if let Some(reclaim) = unsafe { *noted } {
            // SAFETY: by the contract.
            unsafe { reclaim(link) };
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// Types that begin with a [`Link`].
///
/// # Safety
/// The type is `#[repr(C)]`, and its first field is a `Link`, or has a type that is `AsLink`.
pub unsafe trait AsLink {}

/// A value behind a link.
#[repr(C)]
pub struct Linked<T> {
    /// The first field: a retired value's address is taken for its link's.
    pub link: Link,
    /// The value.
    pub value: T,
}

// SAFETY: `repr(C)`, and the link is the first field.
unsafe impl<T> AsLink for Linked<T> {}

impl<T> Deref for Linked<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Linked<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: PartialEq> PartialEq for Linked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Linked<T> {}

impl<T: fmt::Debug> fmt::Debug for Linked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Linked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
