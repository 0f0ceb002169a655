//! [`Guard`].

use std::fmt;
use std::sync::atomic::{AtomicPtr, Ordering};

use seize_0_5::{Guard as _, LocalGuard};

use crate::collector::reclaim_linked;
use crate::{AsLink, Collector, Link};

/// Protects objects of a collector from being reclaimed while it lives.
#[must_use = "what is loaded is protected until the guard is dropped"]
pub struct Guard<'a> {
    /// `None` for a guard that protects nothing.
    of: Option<(LocalGuard<'a>, &'a Collector)>,
}

impl<'a> Guard<'a> {
    #[inline]
    pub(crate) fn new(collector: &'a Collector) -> Self {
        Self { of: Some((collector.inner.enter(), collector)) }
    }
}

impl Guard<'_> {
    /// A guard that protects nothing. What is retired with it is reclaimed at once.
    ///
    /// # Safety
    /// No other thread uses what is loaded or retired with it.
    pub const unsafe fn unprotected() -> Guard<'static> {
        Guard { of: None }
    }

    /// Loads a pointer, with at least Acquire. Its target is protected, if it was not retired
    /// before the guard began.
    #[inline]
    pub fn protect<T: AsLink>(&self, ptr: &AtomicPtr<T>, ordering: Ordering) -> *mut T {
        match &self.of {
            Some((guard, _)) => guard.protect(ptr, ordering),
            None => ptr.load(ordering),
        }
    }

    /// As [`Collector::retire`], but reclaims nothing in this call; a guard that protects nothing
    /// reclaims at once.
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

    /// The collector; `None` for a guard that protects nothing.
    pub fn collector(&self) -> Option<&Collector> {
        self.of.as_ref().map(|(_, collector)| *collector)
    }

    /// Ends the protection, and begins a new one. Does nothing if the thread has another guard of
    /// the collector.
    pub fn refresh(&mut self) {
        if let Some((guard, _)) = &mut self.of {
            guard.refresh();
        }
    }

    /// Closes the thread's batch, however few objects it has.
    pub fn flush(&self) {
        if let Some((guard, _)) = &self.of {
            guard.flush();
        }
    }

    /// A small number that no other living thread has; `usize::MAX` for a guard that protects
    /// nothing.
    pub fn thread_id(&self) -> usize {
        self.of.as_ref().map_or(usize::MAX, |(guard, _)| guard.thread_id())
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").finish()
    }
}
