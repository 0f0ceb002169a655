//! The domains in use, so that a fork, the end of the process, reports and statistics find them.

use std::sync::atomic::Ordering::Relaxed;

use crate::gp::gp_words::GpWords;
use crate::os::sync::{self, Mutex, MutexGuard, Rank};
use crate::reclaim::by_domain::ByDomain;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::handle::{Handle, Named, WeakHandle};

/// The list. A domain that ends takes itself out ([`forget`]).
static DOMAINS: Mutex<ByDomain<WeakHandle>> = Mutex::new(Rank::Domains, ByDomain::new());

/// The domain of that name, added when it is used for the first time.
pub(crate) fn known<N: Named>(name: &N) -> &DomainState {
    let core = name.core();
    // Relaxed: `remember` polls again under a lock.
    if !core.known.load(Relaxed) {
        remember(&name.handle());
    }
    core
}

/// Adds a domain, when it is used for the first time.
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

/// A domain that is known ends. None of our locks is held.
pub(crate) fn forget(core: &DomainState) {
    let forgotten = sync::lock(&DOMAINS).remove(core);
    drop(forgotten);
}

/// The domains in use, so many at most, and how many there are.
pub(crate) fn list(max: usize) -> (Vec<Handle>, usize) {
    let domains = sync::lock(&DOMAINS);
    (domains.iter().filter_map(WeakHandle::upgrade).take(max).collect(), domains.len())
}

/// The domain whose reader side is at this address, if it is still the one with this identity.
pub(crate) fn find(gp_words: *const GpWords, identity: usize) -> Option<Handle> {
    let domains = sync::lock(&DOMAINS);
    let handle = domains.get(DomainState::of(gp_words)).and_then(WeakHandle::upgrade);
    // Before the handle may go, which may be the last, and run callbacks.
    drop(domains);
    handle.filter(|handle| handle.identity() == identity)
}

/// The list, locked across a `fork`.
pub(crate) type Held = MutexGuard<'static, ByDomain<WeakHandle>>;

/// Before a `fork`: locks the list, and keeps alive what is in it.
pub(crate) fn hold() -> (Held, Vec<Handle>) {
    let domains = sync::lock(&DOMAINS);
    let handles = domains.iter().filter_map(WeakHandle::upgrade).collect();
    (domains, handles)
}
