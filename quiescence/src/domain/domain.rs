//! Domains: sets of readers, and the grace periods that wait for these readers only.

use std::panic::Location;

use grace::Urgency;

use crate::domain::guard::Global;
use crate::domain::names::Private;
use crate::domain::own_section::may_wait;
use crate::domain::tag::DomainTag;
use crate::reclaim::domain_state::{self, DomainState};

/// A domain: a set of readers. They delay its grace periods and no others.
///
/// Most programs need only the global domain, which the free functions of this crate use;
/// [`Domain::global`] has the methods that have no free function. A separate domain pays off if
/// some sections are much longer than others. Cloning returns another handle to the same domain.
/// When the last handle to a domain made with [`Domain::new`] is dropped, the callbacks still
/// queued in it run, and the objects are dropped, at once: no thread can be reading in it any more.
/// (The worker holds a handle while it attends to the domain; then the worker's handle is the
/// last.)
///
/// [`Domain::read`] looks the domain up in a thread-local table; [`Domain::reader`] and
/// [`read`](crate::read) do not.
///
/// ```
/// use quiescence::{Domain, Rcu};
///
/// let domain = Domain::new();
/// let config = Rcu::new_in("v1", domain.clone());
/// let guard = domain.read();
/// assert_eq!(*config.load(&guard), "v1");
/// drop(guard);
/// config.store("v2");
/// domain.synchronize(); // no thread reads "v1" any more
/// ```
#[derive(Clone, Copy)]
// Transparent, so that `Srcu`, which has a place for the tag, can deref to the domain.
#[repr(transparent)]
pub struct Domain<K: DomainTag = Private> {
    tag: K,
}

impl Domain<Global> {
    /// The global domain as a value, for code that is generic over domains.
    pub const fn global() -> Self {
        Self { tag: Global }
    }
}

impl<K: DomainTag> Domain<K> {
    /// The domain that `tag` names, for domains declared with [`domain!`](crate::domain!).
    pub const fn of(tag: K) -> Self {
        Self { tag }
    }

    pub(crate) fn tag(&self) -> &K {
        &self.tag
    }

    pub(crate) fn into_tag(self) -> K {
        self.tag
    }

    /// The domain's state, for everything but reading.
    pub(crate) fn core(&self) -> &DomainState {
        domain_state::known(&self.tag)
    }

    /// Begins a read-side critical section of this domain. If its readers are threads, this returns
    /// a [`Guard`](crate::Guard), as [`read`](crate::read) does; in a sleepable domain it does what
    /// [`Srcu::read`](crate::Srcu::read) does.
    ///
    /// # Panics
    /// If a thread's sections are nested 2^32 deep.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> K::Section<'_> {
        self.tag.enter(Location::caller())
    }

    /// Waits for a full grace period: when this returns, every section of this domain that had
    /// begun before the call has ended.
    ///
    /// Everything the caller did before the call is visible to every section that begins during the
    /// call or later. Everything done in the sections waited for is visible to the caller
    /// afterwards.
    ///
    /// The rest holds for domains whose readers are threads. A sleepable domain does not know which
    /// threads are in a section, so it never panics here: see [`Srcu`](crate::Srcu).
    ///
    /// # Progress and cost
    /// Blocks for as long as the longest of those sections. Spins for a few microseconds, then
    /// sleeps on a futex until the last holdout wakes it; under
    /// [`Engine::Tick`](crate::tuning::Engine::Tick) and
    /// [`Engine::Token`](crate::tuning::Engine::Token) it sleeps one tick at a time instead.
    /// Executes one heavy fence (one more if it sleeps on the futex) and scans the readers once;
    /// neither, if no other thread is registered. Concurrent callers share grace periods.
    ///
    /// # Panics
    /// If the calling thread is itself in a section of this domain, on which it would deadlock. The
    /// message names both places.
    #[track_caller]
    pub fn synchronize(&self) {
        synchronize(&self.tag, Urgency::Normal, Location::caller());
    }

    /// Like [`synchronize`](Self::synchronize), but spins longer before it sleeps: for callers to
    /// whom latency matters more than CPU time.
    ///
    /// # Panics
    /// As [`synchronize`](Self::synchronize).
    #[track_caller]
    pub fn synchronize_expedited(&self) {
        synchronize(&self.tag, Urgency::Expedited, Location::caller());
    }
}

/// [`Domain::synchronize`], with the place of the call.
pub(crate) fn synchronize<K: DomainTag>(
    tag: &K,
    urgency: Urgency,
    location: &'static Location<'static>,
) {
    let core = domain_state::known(tag);
    // Again if a waker has begun a section on this thread meanwhile: `may_wait` panics then.
    while !core.grace_periods.synchronize(urgency, may_wait(core, "synchronize", location)) {}
}
