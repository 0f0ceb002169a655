//! The state of a domain: its grace periods, and what waits for them.
//!
//! [`charge`]: what is charged to a domain, and the local stocks of threads. [`thread_queue`]: the
//! queue of one thread, and the cookies that its callbacks wait for; [`queues`]: all of them.
//! [`head_queue`]: queues of heads that a thread of the program runs. They are in this folder since
//! they use the whole state, which contains them; and so is [`in_use`]: references to domains, and
//! the list of those in use.
//!
//! The queues check whose they are, and only [`Drop`](DomainState) has an exclusive reference, of
//! which [`Ended`] is made. An error here can free too early all the same. This file decides which
//! readers a new domain waits for, and ends domains without regard to slots. The order of the
//! fields is the order in which they are dropped. A handle has to lead to its domain. And a thread
//! recognises its slots in a domain by the address, which a weak handle keeps from being reused.

pub(crate) mod charge;
#[cfg(feature = "call_rcu")]
pub(crate) mod head_queue;
#[cfg(not(feature = "call_rcu"))]
#[path = "domain_state/no_head_queues.rs"]
pub(crate) mod head_queue;
mod in_use;
pub(crate) mod queues;
pub(crate) mod thread_queue;

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use grace::Start;
use grace::policy::Budget;

use crate::gp::engine::Settings;
use crate::gp::grace_periods::GracePeriods;
use crate::gp::slot::GpWords;
use crate::os::sync::{AtomicBool, AtomicU64, const_unless_loom};
use crate::reclaim::kept::Kept;
use crate::srcu::OwnSrcuCounts;
use charge::Charge;
use head_queue::CallbackQueues;
pub use in_use::{Handle, Named};
pub(crate) use in_use::{WeakHandle, find, forget, known, list, remember};
use queues::Queues;
use thread_queue::Ended;

/// Everything that the threads of a domain share.
// `repr(C)` for the order of the fields: see `of`.
#[repr(C)]
pub struct DomainState {
    /// First: see `of`.
    pub(crate) grace_periods: GracePeriods,
    pub(crate) charge: Charge,
    /// In a hazard domain: what was protected when it was to be freed.
    pub(crate) kept: Kept,
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
    /// Called at its end: runs or frees what waits in it.
    pub(super) ends: fn(&Ended<'_>),
    /// Of a hazard domain: frees what is kept and protected no more (`rescan`). So programs without
    /// one do not link that.
    pub(super) frees_kept: Option<fn(&Self) -> bool>,
    /// The section counts of a sleepable domain, which `ends` gives back.
    pub(super) srcu_counts: Option<OwnSrcuCounts>,
}

const _: () = assert!(std::mem::offset_of!(DomainState, grace_periods) == 0);

impl DomainState {
    const_unless_loom! {
        /// A domain without readers.
        pub(crate) fn new(start: Start, settings: Settings) -> Self {
            Self {
                grace_periods: GracePeriods::new(start, settings),
                charge: Charge::new(),
                kept: Kept::new(),
                queues: Queues::new(),
                callback_queues: CallbackQueues::new(),
                known: AtomicBool::new(false),
                budget: settings.budget,
                rests_until_ns: AtomicU64::new(0),
                ends: |domain| domain.queues.run_all(domain),
                frees_kept: None,
                srcu_counts: None,
            }
        }

        /// A domain that lives for ever and has a name.
        pub(crate) fn declared(name: &'static str) -> Self {
            let mut domain = Self::new(Start::ZERO, Settings::DEFAULT);
            domain.grace_periods.observers.declared_name = Some(name);
            domain
        }
    }

    /// The domain that contains these words, by their address.
    pub(crate) fn of(gp_words: *const GpWords) -> *const Self {
        GracePeriods::of(gp_words).cast() // its first field
    }
}

impl Drop for DomainState {
    fn drop(&mut self) {
        // First: callbacks run below may use the library, and must not find the ending domain.
        // Relaxed: no other thread has it any more.
        if self.known.load(Relaxed) {
            (crate::HOOKS.domain_ends)(self);
        }
        let ends = self.ends;
        ends(&Ended::new(self));
    }
}

impl Deref for Handle {
    type Target = DomainState;

    fn deref(&self) -> &DomainState {
        match self {
            Self::Static(domain) => domain,
            Self::Shared(domain) => domain,
        }
    }
}

impl WeakHandle {
    /// No other domain gets it while `self` exists.
    pub(super) fn address(&self) -> *const DomainState {
        match self {
            Self::Static(domain) => ptr::from_ref(*domain),
            Self::Shared(domain) => domain.as_ptr(),
        }
    }
}
