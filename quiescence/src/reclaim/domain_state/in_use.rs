//! References to domains: those that keep a domain alive, and those that only remember it; and the
//! list of the domains in use, by which a fork, the end of the process, reports and statistics find
//! them.
//!
//! A reference is an `Arc` or a `Weak`, which alone decide when a domain ends, or a `&'static`.
//! [`super`] decides which domain it leads to.
//!
//! A fork does not reach a domain that is missing here: in the child its locks stay locked, and the
//! readers of threads that are gone hold its grace periods up. So an error here makes a thread wait
//! for ever, and frees nothing.

#![deny(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use super::DomainState;
use crate::gp::slot::GpWords;
use crate::os::forking::{self, AtFork, ForkMutex, Held};
use crate::os::sync::{Rank, const_unless_loom};
use crate::reclaim::by_address::ByAddress;

/// A domain that is kept alive.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub enum Handle {
    /// It lives for ever.
    Static(&'static DomainState),
    /// It lives while a handle to it exists.
    Shared(Arc<DomainState>),
}

impl Handle {
    /// Whether the domain ends with this one, as far as others do not make another one of it.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Self::Shared(domain) if Arc::strong_count(domain) == 1)
    }

    pub(crate) fn downgrade(&self) -> WeakHandle {
        match self {
            Self::Static(domain) => WeakHandle::Static(domain),
            Self::Shared(domain) => WeakHandle::Shared(Arc::downgrade(domain)),
        }
    }
}

/// A domain that is remembered without being kept alive.
#[derive(Clone, Debug)]
pub(crate) enum WeakHandle {
    Static(&'static DomainState),
    Shared(Weak<DomainState>),
}

impl WeakHandle {
    #[inline(never)]
    pub(crate) fn upgrade(&self) -> Option<Handle> {
        match self {
            Self::Static(domain) => Some(Handle::Static(domain)),
            Self::Shared(domain) => domain.upgrade().map(Handle::Shared),
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Self::Static(_) => true,
            Self::Shared(domain) => domain.strong_count() != 0,
        }
    }
}

/// A type that names a domain: a [`Handle`], or one of the types by which users name domains.
#[doc(hidden)]
pub trait Named {
    /// The domain.
    fn core(&self) -> &DomainState;

    /// The domain, kept alive.
    fn handle(&self) -> Handle;
}

impl Named for Handle {
    fn core(&self) -> &DomainState {
        self
    }

    fn handle(&self) -> Handle {
        self.clone()
    }
}

// ---- the list -----------------------------------------------------------------------------------

const_unless_loom! {
    /// The list. A domain that ends takes itself out ([`forget`]).
    static DOMAINS: ForkMutex<ByAddress<WeakHandle>> =
        ForkMutex::new(Rank::Domains, ByAddress::new());
}

/// The domain that `name` names; adds it to the list when it is used for the first time.
pub(crate) fn known<N: Named + ?Sized>(name: &N) -> &DomainState {
    let domain = name.core();
    // Relaxed: `remember` checks again under a lock.
    if !domain.known.load(Relaxed) {
        remember(&name.handle());
    }
    domain
}

/// Adds a domain to the list, unless it is in it.
#[cold]
pub(crate) fn remember(handle: &Handle) {
    forking::watch();
    let mut domains = DOMAINS.lock();
    if !handle.known.swap(true, Relaxed) {
        domains.insert::<DomainState>(&**handle, handle.downgrade());
    }
    drop(domains);
    (crate::HOOKS.unlocked)();
}

/// A domain in the list ends. No lock of the library is held.
pub(crate) fn forget(domain: &DomainState) {
    let forgotten = DOMAINS.lock().remove(domain);
    drop(forgotten);
}

/// The domains in use, at most `max` of them, and how many there are.
pub(crate) fn list(max: usize) -> (Vec<Handle>, usize) {
    let domains = DOMAINS.lock();
    (alive(&domains, max), domains.len())
}

/// The domain that contains these words, if it is still the one with this identity.
pub(crate) fn find(gp_words: *const GpWords, identity: usize) -> Option<Handle> {
    let domains = DOMAINS.lock();
    let handle = domains.get(DomainState::of(gp_words)).and_then(WeakHandle::upgrade);
    // Unlock before the handle may be dropped: it may be the last, and run callbacks.
    drop(domains);
    handle.filter(|handle| handle.grace_periods.observers.identity() == identity)
}

/// Handles of domains that have not ended, of at most so many.
fn alive(domains: &ByAddress<WeakHandle>, max: usize) -> Vec<Handle> {
    domains.iter().filter_map(WeakHandle::upgrade).take(max).collect()
}

impl AtFork for ByAddress<WeakHandle> {
    fn hold(&self, held: &mut Held) {
        // A domain of which these are the last handles meanwhile ends when they are dropped, and
        // runs callbacks then.
        let handles = alive(self, usize::MAX);
        held.keep(handles, |handles, wanted| {
            for domain in handles {
                domain.queues.hold(wanted);
                domain.callback_queues.hold(wanted);
                domain.grace_periods.hold(wanted);
            }
        });
    }

    /// Only the forking thread is left. Its domains are kept alive by `hold`.
    fn in_child(&mut self) {
        for domain in self.iter().filter_map(WeakHandle::upgrade) {
            let callback_queues = domain.callback_queues.after_fork();
            domain.queues.after_fork(&domain, callback_queues);
            // Relaxed: the child has this thread only.
            domain.queues.announced.store(false, Relaxed);
            domain.grace_periods.after_fork();
        }
    }
}
