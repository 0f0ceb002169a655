//! The state of a domain: its grace periods, and what waits for them.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use grace::Start;
use grace::policy::Budget;
use grace::srcu::AdaptiveDelay;

use crate::gp::engine::{Engine, Settings};
use crate::gp::gp_words::{GpWords, Readers};
use crate::gp::grace_periods::GracePeriods;
use crate::gp::observers::Observers;
use crate::os::sync::{AtomicBool, AtomicU64, const_unless_loom};
use crate::reclaim::charge::Charged;
use crate::reclaim::head_queue::CallbackQueues;
use crate::reclaim::thread_queue::Queues;
use crate::srcu::driver::{self, Sections, Unfinished};
use crate::srcu::{OwnSrcuCounts, SrcuCounts, track};

/// Everything that the threads of a domain share.
// `repr(C)` for the order of the fields: see `of`.
#[repr(C)]
pub struct DomainState {
    /// First, and its first field is `grace_periods`: see `of`.
    pub(crate) charged: Charged,
    pub(crate) queues: Queues,
    pub(crate) callback_queues: CallbackQueues,
    /// Whether the domain is in the list of those in use.
    pub(crate) known: AtomicBool,
    /// The limit on the share of a CPU that the worker spends on grace periods here, if any.
    pub(crate) budget: Option<Budget>,
    /// Until when the budget has the worker leave grace periods here alone, as
    /// `clock::monotonic_ns`. Kept here, not by the worker, which forgets domains that need
    /// nothing.
    pub(crate) rests_until_ns: AtomicU64,
    /// The section counts of a sleepable domain. Given back after `queues` have run what is left,
    /// which may read them.
    srcu_counts: Option<OwnSrcuCounts>,
}

const _: () = assert!(std::mem::offset_of!(DomainState, charged) == 0);

impl Deref for DomainState {
    type Target = Charged;

    #[inline(always)]
    fn deref(&self) -> &Charged {
        &self.charged
    }
}

impl std::fmt::Debug for DomainState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DomainState")
            .field("grace_periods", &self.grace_periods)
            .finish_non_exhaustive()
    }
}

impl DomainState {
    const_unless_loom! {
        /// A domain without readers.
        pub(crate) fn new(start: Start, settings: Settings) -> Self {
            Self {
                charged: Charged::new(start, settings),
                queues: Queues::new(),
                callback_queues: CallbackQueues::new(),
                known: AtomicBool::new(false),
                budget: settings.budget,
                rests_until_ns: AtomicU64::new(0),
                srcu_counts: None,
            }
        }

        /// A domain that lives for ever and has a name.
        pub(crate) fn declared(name: &'static str) -> Self {
            let mut domain = Self::new(Start::ZERO, Settings::DEFAULT);
            domain.charged.grace_periods.observers.declared_name = Some(name);
            domain
        }

        /// The same for liburcu readers.
        pub(crate) fn liburcu(name: &'static str, readers: Readers) -> Self {
            let mut domain = Self::declared(name);
            domain.charged.grace_periods.make_liburcu(readers);
            domain
        }

        /// A domain of hazard pointers.
        pub(crate) fn hazard(name: Option<&'static str>) -> Self {
            let mut domain = Self::new(Start::ZERO, Settings::DEFAULT);
            domain.charged.grace_periods.observers.declared_name = name;
            domain.charged.grace_periods.make_hazard();
            domain
        }
    }

    /// A sleepable domain, which owns its counts from now on.
    ///
    /// # Safety
    /// They came from [`SrcuCounts::take`] and no other code gives them back.
    pub(crate) unsafe fn sleepable(
        name: Option<&'static str>,
        delay: AdaptiveDelay,
        srcu_counts: NonNull<SrcuCounts>,
    ) -> Self {
        // A grace period begins as soon as a thread drives; `srcu` says what is put off.
        let settings = Settings { policy: Engine::Poll.policy(), ..Settings::DEFAULT };
        let mut domain = Self::new(Start::ZERO, settings);
        let grace_periods = &mut domain.charged.grace_periods;
        grace_periods.observers.declared_name = name;
        grace_periods.observers.number = Observers::next_number();
        // SAFETY: `self.srcu_counts` keeps them until the grace periods have been dropped, which
        // are in `charged`, declared before it.
        let sections = unsafe { Sections::new(srcu_counts, delay) };
        grace_periods.make_sleepable(Box::new(sections));
        // SAFETY: by the contract.
        domain.srcu_counts = Some(unsafe { OwnSrcuCounts::new(srcu_counts) });
        domain
    }

    /// Gives up the counts without giving them back: another domain has them, and this one ends.
    pub(crate) fn let_srcu_counts_go(&mut self) {
        if let Some(srcu_counts) = self.srcu_counts.take() {
            std::mem::forget(srcu_counts);
        }
    }

    /// The counts of a sleepable domain.
    ///
    /// # Panics
    /// If it is a domain of registered threads.
    #[inline]
    pub(crate) fn srcu_counts(&self) -> &SrcuCounts {
        self.srcu_counts.as_ref().expect("a sleepable domain").get()
    }

    /// The sections that the grace period in progress waits for; `None` in a domain of registered
    /// threads, and if there is none in progress.
    pub(crate) fn unfinished_sections(&self) -> Option<Unfinished> {
        driver::unfinished_sections(&self.grace_periods, self.srcu_counts.as_ref()?.get())
    }

    /// The oldest guard that is tracked, and how many are.
    pub(crate) fn oldest_guard(&self) -> Option<(track::Live, usize)> {
        track::oldest(self.srcu_counts.as_ref()?.get().address())
    }

    /// The domain that contains these words, by their address.
    pub(crate) fn of(gp_words: *const GpWords) -> *const Self {
        GracePeriods::of(gp_words).cast() // the first field of its first field
    }
}

impl Drop for DomainState {
    fn drop(&mut self) {
        // First: callbacks run below may use the library, and must not find the ending domain.
        // Relaxed: no other thread has it any more.
        if self.known.load(Relaxed) {
            (crate::HOOKS.reclaim.domain_ends)(self);
        }
        if self.hazards {
            return (crate::HOOKS.reclaim.hazard_domain_ends)(self);
        }
        self.queues.run_all(self, &[]);
    }
}
