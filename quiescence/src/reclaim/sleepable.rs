//! A sleepable domain as far as it has been used: its counts from the first section on, its state
//! from the first grace period on. [`Srcu`](crate::Srcu) is one, and restartable reads have one.
//!
//! **Invariant [SR-2]: counts stay where they are as long as their owner, its state or a section
//! exist,** though the owner may be moved. The state gives them back, or the owner if it never had
//! one.

use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use grace::Start;
use grace::srcu::AdaptiveDelay;

use crate::gp::engine::{Engine, Settings};
use crate::gp::observers::Observers;
use crate::reclaim::domain_state::{DomainState, Handle, Named};
use crate::reclaim::thread_queue::Ended;
use crate::srcu::driver::{DELAY, Sections};
use crate::srcu::{OwnSrcuCounts, SrcuCounts};

/// Counts, and the state that waits for the sections counted there.
pub(crate) struct SleepableDomain {
    /// Null until a thread reads or waits. What they know of a state is made where a grace period
    /// is needed, and then a reference of ours to it. Neither is made under a lock or a `Once`,
    /// which a fork could leave half done.
    srcu_counts: AtomicPtr<SrcuCounts>,
    name: Option<&'static str>,
    delay: &'static AdaptiveDelay,
}

impl SleepableDomain {
    pub(crate) const fn new() -> Self {
        Self::with_delay(&DELAY)
    }

    pub(crate) const fn named(name: &'static str) -> Self {
        let mut domain = Self::new();
        domain.name = Some(name);
        domain
    }

    pub(crate) const fn with_delay(delay: &'static AdaptiveDelay) -> Self {
        Self { srcu_counts: AtomicPtr::new(ptr::null_mut()), name: None, delay }
    }

    pub(crate) fn name(&self) -> Option<&'static str> {
        self.name
    }

    #[inline(always)]
    pub(crate) fn srcu_counts(&self) -> &SrcuCounts {
        match self.srcu_counts_if_any() {
            Some(srcu_counts) => srcu_counts,
            None => self.make_srcu_counts(),
        }
    }

    #[inline(always)]
    pub(crate) fn srcu_counts_if_any(&self) -> Option<&SrcuCounts> {
        // Acquire: pairs with the exchange in `make_srcu_counts`.
        let srcu_counts = NonNull::new(self.srcu_counts.load(Acquire));
        // SAFETY: they stay as long as `self` [SR-2].
        srcu_counts.map(|srcu_counts| unsafe { srcu_counts.as_ref() })
    }

    #[cold]
    #[inline(never)]
    fn make_srcu_counts(&self) -> &SrcuCounts {
        let made =
            SrcuCounts::take().expect("quiescence: no memory for the first section of a domain");
        let (empty, mine) = (ptr::null_mut(), made.as_ptr());
        // AcqRel: the thread that finds them finds them whole.
        match self.srcu_counts.compare_exchange(empty, mine, AcqRel, Acquire) {
            // SAFETY: they stay as long as `self` [SR-2].
            Ok(_) => unsafe { &*mine },
            Err(first) => {
                // SAFETY: no other thread has seen them.
                unsafe { SrcuCounts::give_back(made) };
                // SAFETY: they stay as long as `self` [SR-2].
                unsafe { &*first }
            }
        }
    }

    /// The state, which is made if there is none. One more reference is to be counted for a thread
    /// that keeps it longer than `self` lasts.
    pub(crate) fn state(&self) -> ManuallyDrop<Arc<DomainState>> {
        // SAFETY: from `into_raw`, and its reference is ours, which is not given away.
        ManuallyDrop::new(unsafe { Arc::from_raw(self.state_place().as_ptr()) })
    }

    /// The state, if there has been a need of one.
    pub(crate) fn state_if_any(&self) -> Option<&DomainState> {
        // SAFETY: `self` has a reference.
        self.state_pointer().map(|state| unsafe { &*state.as_ptr() })
    }

    /// Where the pointer to the state stands, which is made if there is none: one of its references
    /// is `self`'s.
    pub(crate) fn state_place(&self) -> &NonNull<DomainState> {
        if self.state_pointer().is_none() {
            self.make_state();
        }
        let place = ptr::from_ref(&self.srcu_counts().state);
        // SAFETY: not null, and not written to any more. A thread has found it with Acquire.
        unsafe { &*place.cast() }
    }

    fn state_pointer(&self) -> Option<NonNull<DomainState>> {
        // Acquire: pairs with the exchange in `make_state`.
        NonNull::new(self.srcu_counts_if_any()?.state.load(Acquire).cast())
    }

    #[cold]
    #[inline(never)]
    fn make_state(&self) {
        let srcu_counts = self.srcu_counts();
        // The pointer that they were made with, which may end them; a reference to them may not.
        // Acquire: as in `srcu_counts_if_any`.
        let whole = NonNull::new(self.srcu_counts.load(Acquire)).expect("made above");
        // SAFETY: ours to give if this state stays: then `drop` leaves them alone. Else it lets go
        // of them.
        let state = unsafe { DomainState::sleepable(self.name, *self.delay, whole) };
        let mine = Arc::into_raw(Arc::new(state)).cast_mut();
        let place = &srcu_counts.state;
        // AcqRel: the thread that finds it finds it whole.
        if place.compare_exchange(ptr::null_mut(), mine.cast(), AcqRel, Acquire).is_err() {
            // SAFETY: from `into_raw`, and no other thread has it.
            let mut state = unsafe { Arc::from_raw(mine) };
            let state = Arc::get_mut(&mut state).expect("no other thread has it");
            state.srcu_counts = None; // they are another domain's
        }
    }
}

impl DomainState {
    /// A sleepable domain, which owns its counts from now on.
    ///
    /// # Safety
    /// They came from [`SrcuCounts::take`] and no other code gives them back.
    pub(crate) unsafe fn sleepable(
        name: Option<&'static str>,
        delay: AdaptiveDelay,
        srcu_counts: NonNull<SrcuCounts>,
    ) -> Self {
        // A grace period begins as soon as a thread drives, and its driver says what is put off.
        let settings = Settings { policy: Engine::Poll.policy(), ..Settings::DEFAULT };
        let mut domain = Self::new(Start::ZERO, settings);
        let grace_periods = &mut domain.grace_periods;
        grace_periods.observers.declared_name = name;
        grace_periods.observers.number = Observers::next_number();
        // SAFETY: by the contract; `end` gives them back.
        let srcu_counts = unsafe { OwnSrcuCounts::new(srcu_counts) };
        grace_periods.make_sleepable(Box::new(Sections::new(srcu_counts, delay)));
        domain.srcu_counts = Some(srcu_counts);
        domain.ends = end;
        domain
    }

    /// The counts of a sleepable domain.
    ///
    /// # Panics
    /// If it is a domain of registered threads.
    #[inline]
    pub(crate) fn srcu_counts(&self) -> &SrcuCounts {
        self.srcu_counts.as_ref().expect("a sleepable domain").get()
    }
}

/// A sleepable domain ends: runs what waits in it, which may read the counts, and gives them back.
fn end(domain: &Ended<'_>) {
    domain.queues.run_all(domain);
    if let Some(srcu_counts) = domain.srcu_counts {
        // SAFETY: this domain's own, at its end; what is dropped after this does not read them.
        unsafe { srcu_counts.give_back() };
    }
}

impl Named for SleepableDomain {
    fn core(&self) -> &DomainState {
        // SAFETY: `self` has a reference.
        unsafe { self.state_place().as_ref() }
    }

    fn handle(&self) -> Handle {
        Handle::Shared(Arc::clone(&self.state()))
    }
}

impl Drop for SleepableDomain {
    fn drop(&mut self) {
        let Some(srcu_counts) = NonNull::new(*self.srcu_counts.get_mut()) else { return };
        match self.state_pointer() {
            // SAFETY: our reference. The state gives the counts back.
            Some(state) => drop(unsafe { Arc::from_raw(state.as_ptr()) }),
            None => {
                // SAFETY: made above, and used no more.
                let srcu_counts = unsafe { OwnSrcuCounts::new(srcu_counts) };
                // SAFETY: sections borrow the domain, so there are none, and there is no state.
                unsafe { srcu_counts.give_back() };
            }
        }
    }
}

#[cfg(all(test, debug_assertions, not(loom)))]
mod tests {
    use super::*;
    use crate::os::sync::{self, Mutex, Rank};

    /// A past error: the thread whose counts came too late locked the list of guards, where it may
    /// be a signal handler that has interrupted who holds the lock.
    #[test]
    fn counts_that_come_too_late_are_given_back_without_a_lock() {
        let domain = SleepableDomain::new();
        let first = domain.srcu_counts().address();
        let last = Mutex::new(Rank::ForkMutexes, ());
        let held = sync::lock(&last); // no other may be waited for
        assert_eq!(domain.make_srcu_counts().address(), first);
        drop(held);
    }
}
