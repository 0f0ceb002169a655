//! What an object begins with that can be retired: [`Link`], and a value that has one, [`Linked`].

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// What every object that can be retired begins with; from
/// [`Collector::link`](crate::Collector::link).
pub struct Link {
    /// None before the object is retired.
    reclaim: UnsafeCell<Option<unsafe fn(*mut Link)>>,
}

// SAFETY: written once, by the thread that retires the object, and read by the one that reclaims
// it, to which the collector hands it.
unsafe impl Sync for Link {}

impl Link {
    pub(crate) const fn new() -> Self {
        Self { reclaim: UnsafeCell::new(None) }
    }

    /// The object that begins with this.
    pub fn cast<T: AsLink>(link: *mut Self) -> *mut T {
        link.cast()
    }

    /// Notes what the object is to be reclaimed with.
    ///
    /// # Safety
    /// `link` is valid, and no other thread retires the object.
    pub(crate) unsafe fn retire_with(link: *mut Self, reclaim: unsafe fn(*mut Self)) {
        // SAFETY: by the contract.
        let noted = unsafe { (*link).reclaim.get() };
        // SAFETY: readers of the object do not read it, and nothing else retires it.
        unsafe { *noted = Some(reclaim) };
    }

    /// Calls the function that was noted.
    ///
    /// # Safety
    /// `link` is valid, and the object was retired for that function, which may be called.
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
/// The type is `#[repr(C)]`, and its first field is a `Link`, or of a type that is `AsLink`.
pub unsafe trait AsLink {}

/// A value with a link before it.
#[repr(C)]
pub struct Linked<T> {
    /// The first field: what retires a value takes its address for that of the link.
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
