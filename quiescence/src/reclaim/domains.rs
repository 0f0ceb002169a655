//! The domains in use, so that a fork, the end of the process, reports and statistics find them.

use std::sync::atomic::Ordering::Relaxed;

use crate::gp::gp_words::GpWords;
use crate::os::sync::{self, Mutex, MutexGuard, Rank, const_unless_loom};
use crate::reclaim::by_address::ByAddress;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::handle::{Handle, Named, WeakHandle};

const_unless_loom! {
    /// The list. A domain that ends takes itself out ([`forget`]).
    static DOMAINS: Mutex<ByAddress<WeakHandle>> = Mutex::new(Rank::Domains, ByAddress::new());
}

/// The domain that `name` names; adds it to the list when it is used for the first time.
pub(crate) fn known<N: Named + ?Sized>(name: &N) -> &DomainState {
    let core = name.core();
    // Relaxed: `remember` checks again under a lock.
    if !core.known.load(Relaxed) {
        remember(&name.handle());
    }
    core
}

/// Adds a domain to the list, unless it is in it.
#[cold]
pub(crate) fn remember(handle: &Handle) {
    (crate::HOOKS.gp.first_use)();
    let mut domains = sync::lock(&DOMAINS);
    if !handle.known.swap(true, Relaxed) {
        domains.insert(handle.downgrade());
    }
    drop(domains);
    (crate::HOOKS.gp.unlocked)();
}

/// A domain in the list ends. No lock of the library is held.
pub(crate) fn forget(core: &DomainState) {
    let forgotten = sync::lock(&DOMAINS).remove(core);
    drop(forgotten);
}

/// The domains in use, at most `max` of them, and how many there are.
pub(crate) fn list(max: usize) -> (Vec<Handle>, usize) {
    let domains = sync::lock(&DOMAINS);
    (domains.iter().filter_map(WeakHandle::upgrade).take(max).collect(), domains.len())
}

/// The domain that contains these words, if it is still the one with this identity.
pub(crate) fn find(gp_words: *const GpWords, identity: usize) -> Option<Handle> {
    let domains = sync::lock(&DOMAINS);
    let handle = domains.get(DomainState::of(gp_words)).and_then(WeakHandle::upgrade);
    // Unlock before the handle may be dropped: it may be the last, and run callbacks.
    drop(domains);
    handle.filter(|handle| handle.identity() == identity)
}

/// The list, locked across a `fork`.
pub(crate) type Held = MutexGuard<'static, ByAddress<WeakHandle>>;

/// Before a `fork`: locks the list, and keeps alive what is in it.
pub(crate) fn hold() -> (Held, Vec<Handle>) {
    let domains = sync::lock(&DOMAINS);
    let handles = domains.iter().filter_map(WeakHandle::upgrade).collect();
    (domains, handles)
}
