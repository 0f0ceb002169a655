//! [`Collector`].

use std::fmt;
use std::num::NonZeroU64;
use std::ptr;

use crate::{AsLink, Guard, Link, Linked};

/// The collector: objects are retired to it, and guards protect them.
///
/// ```
/// use seize::{Collector, Linked, reclaim};
/// use std::ptr;
/// use std::sync::atomic::AtomicPtr;
/// use std::sync::atomic::Ordering::{AcqRel, Acquire};
///
/// let collector = Collector::new();
/// let place = AtomicPtr::new(collector.link_boxed(7));
/// let guard = collector.enter();
/// let value = guard.protect(&place, Acquire);
/// // SAFETY: it is retired below at the earliest, and the guard lives.
/// assert_eq!(unsafe { (*value).value }, 7);
/// let old = place.swap(ptr::null_mut(), AcqRel);
/// // SAFETY: from a box, and no thread can load it any more.
/// unsafe { guard.defer_retire(old, reclaim::boxed::<Linked<i32>>) };
/// ```
pub struct Collector {
    pub(crate) inner: seize_0_5::Collector,
    batch_size: Option<usize>,
}

impl Default for Collector {
    fn default() -> Self {
        Self::new()
    }
}

impl Collector {
    /// Makes a collector with domains of its own.
    pub fn new() -> Self {
        Self { inner: seize_0_5::Collector::new(), batch_size: None }
    }

    /// Has no effect.
    #[must_use]
    pub fn epoch_frequency(self, _: Option<NonZeroU64>) -> Self {
        self
    }

    /// Sets the number of objects in a batch, which share a grace period.
    #[must_use]
    pub fn batch_size(self, n: usize) -> Self {
        Self { inner: self.inner.batch_size(n), batch_size: Some(n) }
    }

    /// Begins a section of the calling thread. What is retired from now on is not reclaimed before
    /// the guard is dropped. A thread's guards nest.
    #[inline]
    pub fn enter(&self) -> Guard<'_> {
        Guard::new(self)
    }

    /// Makes a link, for an object that will be retired here.
    pub fn link(&self) -> Link {
        Link::new()
    }

    /// Makes a value with a link.
    pub fn link_value<T>(&self, value: T) -> Linked<T> {
        Linked { link: self.link(), value }
    }

    /// The same in a box, for [`reclaim::boxed`](crate::reclaim::boxed).
    pub fn link_boxed<T>(&self, value: T) -> *mut Linked<T> {
        Box::into_raw(Box::new(self.link_value(value)))
    }

    /// Calls `reclaim` with the link of the object once all guards that live now have ended;
    /// perhaps in this call, if there are none.
    ///
    /// # Safety
    /// `ptr` is retired once, and guards that begin from now on do not reach it. `reclaim` may be
    /// called by every thread that has this collector, and as late as in the collector's drop.
    pub unsafe fn retire<T: AsLink>(&self, ptr: *mut T, reclaim: unsafe fn(*mut Link)) {
        // SAFETY: an object begins with its link, and is retired once.
        unsafe { Link::retire_with(ptr.cast(), reclaim) };
        // SAFETY: by the contract.
        unsafe { self.inner.retire(ptr, reclaim_linked) };
    }

    /// Whether these are the same collector.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        ptr::eq(this, other) || this.inner == other.inner
    }
}

/// Reclaims an object by the function in its link.
///
/// # Safety
/// The object was retired with [`Link::retire_with`], and may be reclaimed.
pub(crate) unsafe fn reclaim_linked<T: AsLink>(ptr: *mut T, _: &seize_0_5::Collector) {
    // SAFETY: by the contract.
    unsafe { Link::reclaim(ptr.cast()) };
}

/// Makes another collector, with batches of the same size.
impl Clone for Collector {
    fn clone(&self) -> Self {
        match self.batch_size {
            Some(batch_size) => Self::new().batch_size(batch_size),
            None => Self::new(),
        }
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
