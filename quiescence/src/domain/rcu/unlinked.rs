//! Values that were replaced and may still be read: [`Unlinked`].

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location;
use std::ptr::{self, NonNull};

use crate::domain::cookie;
use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::tag::DomainTag;
use crate::reclaim::free::Pending;
use crate::reclaim::unlink;
use crate::reclaim::weigh::Scale;

/// A value that was taken out of its cell: new readers cannot find it, but some may still be
/// reading it.
///
/// Dropping it retires it as [`Domain::retire`] does, except that it is never refused. In a section
/// at the domain's limit it exceeds the limit, and the thread waits when the section ends; so drop
/// it outside of sections. [`into_box`](Self::into_box) waits until no thread reads the value and
/// returns it.
#[must_use = "dropping it retires the value"]
pub struct Unlinked<T: Send + Sync + 'static, K: DomainTag = Global> {
    pub(super) pointer: NonNull<T>,
    pub(super) scale: Scale<T>,
    pub(super) domain: Domain<K>,
    /// The first grace period that began after it was unlinked. When that is over no thread reads
    /// it.
    pub(super) unread_after: grace::Cookie,
}

// SAFETY: owns a T that other threads may still read (Sync) and that may be dropped anywhere
// (Send).
unsafe impl<T: Send + Sync + 'static, K: DomainTag> Send for Unlinked<T, K> {}
// SAFETY: a shared reference gives out `&T` only.
unsafe impl<T: Send + Sync + 'static, K: DomainTag> Sync for Unlinked<T, K> {}

impl<T: Send + Sync + 'static, K: DomainTag> Unlinked<T, K> {
    /// # Safety
    /// `pointer` is null or came from a box, was reachable under sections of `domain` only, and is
    /// no more, by an atomic exchange that was the last thing the calling thread did.
    pub(super) unsafe fn new(pointer: *mut T, scale: Scale<T>, domain: &Domain<K>) -> Option<Self> {
        let pointer = NonNull::new(pointer)?;
        // The caller's last step was the exchange, as is asked for [UL-1].
        let unread_after = domain.core().grace_periods.snapshot_after_unlinking();
        Some(Self { pointer, scale, domain: domain.clone(), unread_after })
    }

    /// Waits until no thread reads the value any more, and returns it.
    ///
    /// Returns at once if a full grace period of the domain has ended since the value was taken
    /// out, whatever requested it: [`Domain::synchronize`], a future, callbacks. Otherwise it
    /// blocks until one ends, as [`Domain::synchronize`] does. **In a task, use
    /// [`into_inner_async`](Self::into_inner_async)**: if the sections that must end belong to
    /// tasks of the same thread, this deadlocks.
    ///
    /// # Panics
    /// If it has to wait while the calling thread is in a section of the domain, or is an online
    /// QSBR reader of it: use [`Qsbr::while_offline`](crate::Qsbr::while_offline). The value is
    /// retired in that case.
    #[track_caller]
    pub fn into_box(self) -> Box<T> {
        //~ retire-before-unlink:
        cookie::wait(self.domain.core(), self.unread_after, "into_inner", Location::caller());
        self.into_box_unread()
    }

    /// Whether its grace period is over.
    pub(super) fn is_unread(&self) -> bool {
        self.domain.core().grace_periods.sequence().is_done(self.unread_after)
    }

    /// The value, which no thread reads any more: the domain's own sequence says so, whatever was
    /// done to wait for it.
    pub(super) fn into_box_unread(self) -> Box<T> {
        assert!(self.is_unread(), "its grace period has not ended"); //~ retire-before-unlink
        let mut this = ManuallyDrop::new(self);
        let pointer = this.pointer.as_ptr();
        // SAFETY: `this` is not used or dropped as a whole any more; the domain is dropped once.
        unsafe { ptr::drop_in_place(&raw mut this.domain) };
        // SAFETY: from a box, unreachable, and after a grace period that began after that: checked
        // above.
        unsafe { Box::from_raw(pointer) }
    }

    /// Like [`into_box`](Self::into_box), without the box.
    #[track_caller]
    pub fn into_inner(self) -> T {
        *self.into_box()
    }
}

impl<T: Send + Sync + 'static, K: DomainTag> Deref for Unlinked<T, K> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: valid until retired, which takes `self`; others only read it, and T is Sync.
        unsafe { self.pointer.as_ref() }
    }
}

impl<T: Send + Sync + 'static, K: DomainTag> Drop for Unlinked<T, K> {
    fn drop(&mut self) {
        let tag = self.domain.tag();
        let bytes = self.scale.charge::<T>(tag.core(), self);
        // SAFETY: from a box and unreachable, see `new`; no thread uses `self` after this.
        let object = unsafe { Pending::boxed(tag.core(), self.pointer.as_ptr()) };
        unlink::retire_box(tag, object, bytes);
    }
}

impl<T: Send + Sync + fmt::Debug + 'static, K: DomainTag> fmt::Debug for Unlinked<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unlinked").field(&**self).finish()
    }
}
