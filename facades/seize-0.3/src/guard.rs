//! [`Guard`].

use std::fmt;
use std::sync::atomic::{AtomicPtr, Ordering};

use seize_0_5::{Guard as _, LocalGuard};

use crate::collector::reclaim_linked;
use crate::{AsLink, Collector, Link};

/// What protects objects of a collector from being reclaimed, as long as it lives.
#[must_use = "what is loaded is protected until the guard is dropped"]
pub struct Guard<'a> {
    /// None of one that protects nothing.
    of: Option<(LocalGuard<'a>, &'a Collector)>,
}

impl<'a> Guard<'a> {
    #[inline]
    pub(crate) fn new(collector: &'a Collector) -> Self {
        Self { of: Some((collector.inner.enter(), collector)) }
    }
}

impl Guard<'_> {
    /// A guard that protects nothing, and with which what is retired is reclaimed at once.
    ///
    /// # Safety
    /// No other thread uses what is loaded or retired with it.
    pub const unsafe fn unprotected() -> Guard<'static> {
        Guard { of: None }
    }

    /// Loads a pointer: what it leads to is protected, if it was not retired before the guard
    /// began. At least Acquire.
    #[inline]
    pub fn protect<T: AsLink>(&self, ptr: &AtomicPtr<T>, ordering: Ordering) -> *mut T {
        match &self.of {
            Some((guard, _)) => guard.protect(ptr, ordering),
            None => ptr.load(ordering),
        }
    }

    /// As [`Collector::retire`], but never in this call; at once by a guard that protects nothing.
    ///
    /// # Safety
    /// As [`Collector::retire`].
    pub unsafe fn defer_retire<T: AsLink>(&self, ptr: *mut T, reclaim: unsafe fn(*mut Link)) {
        match &self.of {
            Some((guard, _)) => {
                // SAFETY: an object begins with its link, and is retired once.
                unsafe { Link::retire_with(ptr.cast(), reclaim) };
                // SAFETY: by the contract.
                unsafe { guard.defer_retire(ptr, reclaim_linked) };
            }
            // SAFETY: no other thread uses it.
            None => unsafe { reclaim(ptr.cast()) },
        }
    }

    /// The collector; none of a guard that protects nothing.
    pub fn collector(&self) -> Option<&Collector> {
        self.of.as_ref().map(|(_, collector)| *collector)
    }

    /// Lets go of what was protected, and begins anew; does nothing if the thread has another guard
    /// of the collector.
    pub fn refresh(&mut self) {
        if let Some((guard, _)) = &mut self.of {
            guard.refresh();
        }
    }

    /// Has what was retired wait for reclamation now, as a batch that may be smaller than others.
    pub fn flush(&self) {
        if let Some((guard, _)) = &self.of {
            guard.flush();
        }
    }

    /// A small number that no other thread has which lives now; `usize::MAX` of a guard that
    /// protects nothing.
    pub fn thread_id(&self) -> usize {
        self.of.as_ref().map_or(usize::MAX, |(guard, _)| guard.thread_id())
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").finish()
    }
}
