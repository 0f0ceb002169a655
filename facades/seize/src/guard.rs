//! Guards: [`LocalGuard`], of a thread, and [`OwnedGuard`], which may go to others.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use quiescence::{SrcuOwnedGuard, tag::Private};

use crate::collector::Collector;
use crate::thread;

/// What protects objects of a collector from being reclaimed, as long as it lives.
pub trait Guard {
    /// Lets go of what was protected, and begins anew; does nothing if the thread has another guard
    /// of the collector.
    fn refresh(&mut self);

    /// Has what was retired wait for reclamation now, as a batch that may be smaller than others.
    fn flush(&self);

    /// The collector.
    fn collector(&self) -> &Collector;

    /// A small number that no other thread has which lives now.
    fn thread_id(&self) -> usize {
        thread::id()
    }

    /// Loads a pointer: what it leads to is protected, if it was not retired before the guard
    /// began. At least Acquire.
    #[inline]
    fn protect<T>(&self, ptr: &AtomicPtr<T>, order: Ordering) -> *mut T {
        ptr.load(of_load(order))
    }

    /// Exchanges a pointer; as [`protect`](Self::protect).
    #[inline]
    fn swap<T>(&self, ptr: &AtomicPtr<T>, value: *mut T, order: Ordering) -> *mut T {
        ptr.swap(value, of_update(order))
    }

    /// Exchanges a pointer if it is `current`; as [`protect`](Self::protect).
    ///
    /// # Errors
    /// The pointer that is there.
    #[inline]
    fn compare_exchange<T>(
        &self,
        ptr: &AtomicPtr<T>,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        ptr.compare_exchange(current, new, of_update(success), of_load(failure))
    }

    /// The same, but it may fail without a reason.
    ///
    /// # Errors
    /// The pointer that is there.
    #[inline]
    fn compare_exchange_weak<T>(
        &self,
        ptr: &AtomicPtr<T>,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        ptr.compare_exchange_weak(current, new, of_update(success), of_load(failure))
    }

    /// As [`Collector::retire`], but never in this call.
    ///
    /// # Safety
    /// As [`Collector::retire`].
    unsafe fn defer_retire<T>(&self, ptr: *mut T, reclaim: unsafe fn(*mut T, &Collector)) {
        // SAFETY: by the contract.
        unsafe { self.collector().add(ptr, reclaim) };
    }
}

/// An ordering that a load may have, and that sees what the pointer leads to.
#[inline]
const fn of_load(order: Ordering) -> Ordering {
    match order {
        SeqCst => SeqCst,
        _ => Acquire,
    }
}

/// The same for an exchange.
#[inline]
const fn of_update(order: Ordering) -> Ordering {
    match order {
        Relaxed | Acquire => Acquire,
        Release | AcqRel => AcqRel,
        _ => SeqCst,
    }
}

/// A guard of a thread.
#[must_use = "what is loaded is protected until the guard is dropped"]
pub struct LocalGuard<'a> {
    collector: &'a Collector,
    section: ManuallyDrop<quiescence::Guard<'a, Private>>,
}

impl<'a> LocalGuard<'a> {
    #[inline]
    pub(crate) fn new(collector: &'a Collector, section: quiescence::Guard<'a, Private>) -> Self {
        Self { collector, section: ManuallyDrop::new(section) }
    }

    /// # Safety
    /// The section is not used any more, but for a new one in its place.
    #[inline]
    unsafe fn leave(&mut self) {
        // SAFETY: by the contract.
        unsafe { ManuallyDrop::drop(&mut self.section) };
        if self.collector.has_waiting() {
            self.collector.settle();
        }
    }
}

impl Guard for LocalGuard<'_> {
    fn refresh(&mut self) {
        /// Puts a section there also if a reclaimer panics.
        struct Anew<'g, 'a>(&'g mut LocalGuard<'a>);
        impl Drop for Anew<'_, '_> {
            fn drop(&mut self) {
                let anew = ManuallyDrop::new(self.0.collector.enter());
                // SAFETY: the guard there is not dropped, so the section goes over.
                self.0.section = unsafe { std::ptr::read(&raw const anew.section) };
            }
        }
        if self.collector.is_outermost() {
            let anew = Anew(self);
            // SAFETY: there is a new one when `anew` is dropped.
            unsafe { anew.0.leave() };
        }
    }

    fn flush(&self) {
        self.collector.flush();
    }

    #[inline]
    fn collector(&self) -> &Collector {
        self.collector
    }
}

impl Drop for LocalGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the last use.
        unsafe { self.leave() };
    }
}

impl fmt::Debug for LocalGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalGuard").finish()
    }
}

/// A guard that may go to other threads, and be used by several at once.
#[must_use = "what is loaded is protected until the guard is dropped"]
pub struct OwnedGuard<'a> {
    collector: &'a Collector,
    /// None while a new one is made.
    section: Option<SrcuOwnedGuard>,
}

impl<'a> OwnedGuard<'a> {
    pub(crate) fn new(collector: &'a Collector, section: SrcuOwnedGuard) -> Self {
        Self { collector, section: Some(section) }
    }

    fn leave(&mut self) {
        drop(self.section.take());
        self.collector.owned_has_ended();
    }
}

impl Guard for OwnedGuard<'_> {
    fn refresh(&mut self) {
        struct Anew<'g, 'a>(&'g mut OwnedGuard<'a>);
        impl Drop for Anew<'_, '_> {
            fn drop(&mut self) {
                self.0.section = Some(self.0.collector.read_owned());
            }
        }
        Anew(self).0.leave();
    }

    /// That of all threads: the guard may have been another's when it retired.
    fn flush(&self) {
        self.collector.flush_all();
    }

    #[inline]
    fn collector(&self) -> &Collector {
        self.collector
    }
}

impl Drop for OwnedGuard<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for OwnedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedGuard").finish()
    }
}
