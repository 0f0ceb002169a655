//! Domains: a set of readers, and the grace periods that wait for just those.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

use grace::Urgency;

use crate::domain::guard::Global;
use crate::domain::names::Private;
use crate::domain::tag::DomainTag;
use crate::event::statistics::Statistics;
use crate::gp::grace_periods::{Attention, Me};
use crate::gp::tuning::Tuning;
use crate::reclaim::defer::{self, Patience};
use crate::reclaim::domain_state::{self, DomainState};
use crate::reclaim::local;
use crate::reclaim::retire::{AtLimit, Retire, WithSize};
use crate::reclaim::weigh::Weigh;
use crate::reclaim::worker;

/// A domain: its readers hold up its own grace periods and no others.
///
/// Most programs need the global one only, which the free functions of this crate use;
/// [`Domain::global`] has the methods for which there is no free function. A separate domain pays
/// off if some sections are much longer than others. Cloning gives another handle of the same
/// domain. When the last handle of a domain made with [`Domain::new`] is dropped, what is still
/// queued in it is run at once: no thread can read in it any more. (The worker has a handle while
/// it attends to the domain; then the worker's is the last.)
///
/// [`Domain::read`] looks the domain up in a table of the thread; [`Domain::reader`] and
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

/// A full grace period of one domain, to ask about later: one that has been requested, or the next.
///
/// See [`Domain::start_poll`] and [`Domain::cookie`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a cookie is for poll() or wait()"]
pub struct Cookie {
    cookie: grace::Cookie,
    domain: usize,
}

impl Cookie {
    /// The cookie as a number, for interfaces that cannot pass a `Cookie`;
    /// [`Domain::cookie_from_bits`] makes it a cookie again.
    pub const fn to_bits(self) -> u64 {
        self.cookie.to_bits()
    }
}

impl Domain<Global> {
    /// The global domain, as a value: for code that is generic over domains.
    pub const fn global() -> Self {
        Self { tag: Global }
    }
}

impl<K: DomainTag> Domain<K> {
    /// The domain that `tag` names; for those declared with [`domain!`](crate::domain!).
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

    /// Begins a read-side critical section of this domain: as [`read`](crate::read), with a
    /// [`Guard`](crate::Guard), where readers are threads; as [`Srcu::read`](crate::Srcu::read) in
    /// a sleepable one.
    ///
    /// # Panics
    /// If a thread's sections are nested 2^32 deep.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> K::Section<'_> {
        self.tag.enter(Location::caller())
    }

    /// Waits for a full grace period: every section of this domain that had begun when this was
    /// called has ended when it returns.
    ///
    /// What the caller did before is visible to every section that begins during the call or later;
    /// what those sections that were waited for did is visible to the caller afterwards.
    ///
    /// What follows holds where readers are threads. A sleepable domain cannot know which threads
    /// are in a section, so nothing panics there: see [`Srcu`](crate::Srcu).
    ///
    /// # Progress and cost
    /// Blocking: as long as the longest of those sections lasts. Spins for a few microseconds, then
    /// sleeps on a futex that the last holdout wakes; under
    /// [`Engine::Tick`](crate::tuning::Engine::Tick) and
    /// [`Engine::Token`](crate::tuning::Engine::Token) it sleeps a tick at a time instead. One
    /// heavy fence (one more if it sleeps on the futex) and one pass over the readers; neither if
    /// no other thread is registered. Concurrent callers share grace periods.
    ///
    /// # Panics
    /// If the calling thread is itself in a section of this domain, for which it would wait for
    /// ever; the message names both places.
    #[track_caller]
    pub fn synchronize(&self) {
        synchronize(&self.tag, Urgency::Normal, Location::caller());
    }

    /// As [`synchronize`](Self::synchronize), but spins longer before it sleeps: for callers that
    /// would rather spend CPU time than wait.
    ///
    /// # Panics
    /// As [`synchronize`](Self::synchronize).
    #[track_caller]
    pub fn synchronize_expedited(&self) {
        synchronize(&self.tag, Urgency::Expedited, Location::caller());
    }

    /// Asks for a full grace period, from now on, without waiting.
    ///
    /// The cookie is for [`poll`](Self::poll) and [`wait`](Self::wait). Does as much of the work as
    /// can be done without waiting for readers or (under
    /// [`Engine::Tick`](crate::tuning::Engine::Tick)) for the tick. That may be a whole grace
    /// period, its fence included; the rest is done by the next thread that updates or waits, or by
    /// `poll`, and under engines other than [`Engine::Adaptive`](crate::tuning::Engine::Adaptive)
    /// by the worker. In a child made by `fork` the worker starts with the first call there, even
    /// of `poll`. May be called inside a section.
    pub fn start_poll(&self) -> Cookie {
        let cookie = self.core().grace_periods.request(Urgency::Normal);
        self.advance();
        self.named(cookie)
    }

    /// Does what can be done without waiting. If the engine works at the tick, the worker does the
    /// rest; or the caller, if the system gives the worker no thread.
    pub(crate) fn advance(&self) {
        let core = self.core();
        core.grace_periods.advance(Me::this_thread());
        // Relaxed: a stale `true` is corrected by the worker's own check under its lock, as for
        // callbacks.
        if !core.queues.announced.load(Relaxed)
            && core.grace_periods.attention() != Attention::None
            && !worker::announce(&self.tag.handle())
        {
            core.grace_periods.advance_at_tick(Me::this_thread());
        }
    }

    /// The cookie of a full grace period from now on, without requesting one: another thread may.
    /// If none does, [`poll`](Self::poll) stays `false`, and [`wait`](Self::wait) requests it.
    pub fn cookie(&self) -> Cookie {
        self.named(self.core().grace_periods.snapshot())
    }

    /// Whether the grace period of `cookie` has ended. If it is in progress and no thread drives
    /// it, this takes a step of it; if the engine works at the tick, it leaves that to the worker.
    /// Never waits.
    ///
    /// # Panics
    /// If the cookie is another domain's.
    pub fn poll(&self, cookie: Cookie) -> bool {
        let core = self.core();
        let wanted = self.own(cookie);
        if core.grace_periods.sequence().is_done(wanted) {
            return true;
        }
        self.advance();
        core.grace_periods.sequence().is_done(wanted)
    }

    /// Waits until the grace period of `cookie` has ended, requesting it if no thread has.
    ///
    /// # Panics
    /// If the cookie is another domain's, or if its grace period has not ended and the calling
    /// thread is in a section of this domain.
    #[track_caller]
    pub fn wait(&self, cookie: Cookie) {
        wait(self.core(), self.own(cookie), "wait", Location::caller());
    }

    /// Calls `f` after a grace period, on the worker thread or on a thread in
    /// [`barrier`](Self::barrier).
    ///
    /// The call is *lazy*: it waits for other callbacks before a grace period is requested, for at
    /// most [`Tuning::lazy`]; see [`call_hurry`](Self::call_hurry). Nothing is allocated for
    /// closures of up to four words. Whatever waits at an orderly end of the process is run then,
    /// as far as sections of other threads allow.
    ///
    /// The callbacks that one thread queues in one domain run in order. A callback may queue
    /// others, itself included, and must not call `barrier`, which panics there. If it panics, the
    /// panic is reported like any other and counted, and the rest still run. The worker is one
    /// thread for the whole process: a callback that blocks holds up those of all domains.
    ///
    /// # Progress and cost
    /// A few plain stores to memory of the thread's own; once in many calls a lock and a step of a
    /// grace period. At the domain's limit ([`Tuning::objects_max`], [`Tuning::bytes_max`]) it
    /// waits until the worker has made room: **do not hold a lock then that callbacks take, or that
    /// readers take in their sections**, or use [`try_call`](Self::try_call). (In a [sleepable
    /// domain](crate::Srcu#at-the-limit) it waits for 10 ms at most.)
    ///
    /// # Errors
    /// At the limit, where a thread may not wait: `f`, in an [`AtLimit`]. In a section of
    /// registered threads the first closure of a thread is still taken, and the next one refused
    /// until there is room for it. In a callback one closure is taken for each callback that has
    /// run.
    pub fn call<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), AtLimit<F>> {
        defer::call(&self.tag, f, Patience::Waits)
    }

    /// As [`call`](Self::call), but waits for no other callbacks: the worker attends to the domain
    /// now.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn call_hurry<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), AtLimit<F>> {
        defer::call(&self.tag, f, Patience::Waits)?;
        worker::hurry(&self.tag.handle());
        Ok(())
    }

    /// As [`call`](Self::call), but never waits: at the limit it gives `f` back.
    ///
    /// # Errors
    /// At the limit.
    pub fn try_call<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), AtLimit<F>> {
        defer::call(&self.tag, f, Patience::Never)
    }

    /// Drops `object`, a [`Box`], an [`Arc`](std::sync::Arc) or another owner, after a grace
    /// period.
    ///
    /// What it owns must be unreachable for readers that begin their sections from now on; for what
    /// an [`Rcu`](crate::Rcu) points to, its own methods ensure that. It is dropped by this thread
    /// when it retires again outside of sections (a QSBR reader: at a quiescent state), or on the
    /// worker thread, or on a thread in [`barrier`](Self::barrier); never by a reader. Nothing is
    /// allocated per object. A drop that panics is reported and counted, and stops no other.
    /// Without any further call it is dropped within [`Tuning::lazy`], a tick and a grace period.
    ///
    /// **An object whose drop takes a lock** must not be retired this way by threads that hold the
    /// lock: this very call may drop an earlier object. Use `call(move || drop(object))` instead.
    /// **A lock that readers take in their sections** must not be held either if the limit may be
    /// reached, since this then waits for those readers; or use [`try_retire`](Self::try_retire).
    ///
    /// # Progress and cost
    /// A few plain stores to memory of the thread's own; at every ninth call a lock of the thread's
    /// own and the drops of some earlier objects; once in some hundred to 16,384 calls a step of a
    /// grace period. At the domain's limit ([`Tuning::objects_max`], [`Tuning::bytes_max`]) it
    /// waits for a grace period; then this object is queued, or dropped at once if there is still
    /// no room. It never waits for anything but sections. (In a [sleepable
    /// domain](crate::Srcu#at-the-limit) it waits for 10 ms at most, and then exceeds the limit.)
    ///
    /// # Errors
    /// In a section of registered threads, of whatever domain, a thread may not wait. There its
    /// first object that finds no room is taken above the limit, and the thread waits when its
    /// outermost section ends; a second one is given back, in an [`AtLimit`]. (A QSBR reader waits
    /// at its next quiescent state.)
    ///
    /// # Panics
    /// In debug builds, if the memory of a box waits already, which is possible only with unsafe
    /// code; the message names both places.
    #[track_caller]
    pub fn retire<P: Retire>(&self, object: P) -> Result<(), AtLimit<P>> {
        defer::retire(&self.tag, object, Patience::Waits)
    }

    /// As [`retire`](Self::retire), for an owner of `bytes` bytes: one whose size is not known, or
    /// that owns more than [`Retire::bytes`] says.
    ///
    /// ```
    /// let slabs: Vec<Vec<u8>> = (0..16).map(|_| vec![0; 65_536]).collect();
    /// let domain = quiescence::Domain::global();
    /// domain.retire_sized(slabs, 16 * 65_536).expect("not in a section");
    /// assert!(domain.statistics().bytes_waiting >= 16 * 65_536);
    /// # domain.barrier();
    /// ```
    ///
    /// # Errors
    /// As [`retire`](Self::retire).
    #[track_caller]
    pub fn retire_sized<P: Send + 'static>(
        &self,
        object: P,
        bytes: usize,
    ) -> Result<(), AtLimit<WithSize<P>>> {
        defer::retire(&self.tag, WithSize::new(object, bytes), Patience::Waits)
    }

    /// As [`retire`](Self::retire), but never waits: at the limit it gives the object back.
    ///
    /// # Errors
    /// At the limit. It may be reached early, since other threads have taken room: see
    /// [`Tuning::objects_max`].
    #[track_caller]
    pub fn try_retire<P: Retire>(&self, object: P) -> Result<(), AtLimit<P>> {
        defer::retire(&self.tag, object, Patience::Never)
    }

    /// Waits until everything that was queued in this domain before, by any thread, has run.
    ///
    /// Blocking: for grace periods, and for callbacks, many of which it runs itself; so do not call
    /// it under a lock that they take, or in a section of another domain whose end they wait for.
    ///
    /// # Panics
    /// If the calling thread is in a section of this domain (also one that a callback has just
    /// begun on it and leaked, if there is still a grace period to wait for), or is running a
    /// callback: both would wait for themselves.
    #[track_caller]
    pub fn barrier(&self) {
        let (core, location) = (self.core(), Location::caller());
        may_wait(core, "barrier", location);
        assert!(
            !crate::reclaim::running::in_callback(),
            "quiescence: barrier() is called by a callback, which it would wait for; \
             queue the work with call() instead"
        );
        defer::barrier(core, || may_wait(core, "barrier", location));
    }

    /// The cookie of this domain whose [`Cookie::to_bits`] is `bits`.
    ///
    /// A cookie is at most two grace periods ahead when it is given, and later falls behind. So a
    /// number further ahead is no cookie of this domain, and is refused: no grace period would
    /// reach it soon, and a thread that waited for it would wait for ever. A number of another
    /// domain that is behind cannot be told apart: it counts as a grace period that ended long ago.
    ///
    /// Takes a lock for a moment, unless the grace period has ended.
    ///
    /// # Panics
    /// If this domain cannot have given it; see
    /// [`try_cookie_from_bits`](Self::try_cookie_from_bits).
    ///
    /// ```
    /// let domain = quiescence::Domain::global();
    /// let bits = domain.start_poll().to_bits();
    /// domain.wait(domain.cookie_from_bits(bits));
    /// ```
    #[track_caller]
    pub fn cookie_from_bits(&self, bits: u64) -> Cookie {
        match self.try_cookie_from_bits(bits) {
            Some(cookie) => cookie,
            None => panic!("quiescence: {bits:#x}: {}", grace::NotGiven),
        }
    }

    /// As [`cookie_from_bits`](Self::cookie_from_bits); `None` for a number that this domain cannot
    /// have given.
    ///
    /// ```
    /// let domain = quiescence::Domain::new();
    /// assert!(domain.try_cookie_from_bits(1 << 40).is_none());
    /// ```
    pub fn try_cookie_from_bits(&self, bits: u64) -> Option<Cookie> {
        let cookie = grace::Cookie::from_bits(bits);
        self.core().grace_periods.has_given(cookie).then(|| self.named(cookie))
    }

    /// The limits of deferral in this domain, as they are set now.
    pub fn tuning(&self) -> Tuning {
        self.core().grace_periods.tuning.get()
    }

    /// Sets the limits of deferral in this domain, from now on. If more waits already than a new
    /// limit allows, nothing is lost: the thread that retires next waits. Room that threads have
    /// taken already counts against a new limit until they defer again.
    pub fn tune(&self, tuning: Tuning) {
        self.core().grace_periods.tuning.set(tuning);
        worker::retune(&self.tag.handle());
    }

    /// Counts of what has happened in this domain.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(self.core())
    }

    fn named(&self, cookie: grace::Cookie) -> Cookie {
        Cookie { cookie, domain: self.core().grace_periods.observers.identity() }
    }

    pub(crate) fn own(&self, cookie: Cookie) -> grace::Cookie {
        assert!(
            cookie.domain == self.core().grace_periods.observers.identity(),
            "quiescence: this cookie is another domain's"
        );
        cookie.cookie
    }
}

impl<K: DomainTag> fmt::Debug for Domain<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("sequence", &self.core().grace_periods.sequence())
            .field("readers", &self.core().grace_periods.readers())
            .finish_non_exhaustive()
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

/// Waits until the grace period of `cookie` has ended; the user has called `what`.
pub(crate) fn wait(
    core: &DomainState,
    cookie: grace::Cookie,
    what: &str,
    location: &'static Location<'static>,
) {
    while !core.grace_periods.sequence().is_done(cookie) {
        // Not done if a waker has begun a section on this thread meanwhile: `may_wait` panics now.
        let me = may_wait(core, what, location);
        let _: bool = core.grace_periods.wait(cookie, Urgency::Normal, me);
    }
}

/// The calling thread, which is about to wait for a grace period.
///
/// # Panics
/// If it would wait for itself.
fn may_wait(core: &DomainState, what: &str, location: &'static Location<'static>) -> Me {
    if let Some(section) = local::section_in(core) {
        refuse(what, location, section);
    }
    Me::this_thread()
}

#[cold]
#[track_caller]
fn refuse(what: &str, location: &Location<'_>, section: local::Section) -> ! {
    let began = match section.began {
        Some(began) => began.to_string(),
        None => String::from("an unknown place"),
    };
    if section.qsbr {
        panic!(
            "quiescence: {what}() at {location} would wait for ever: this thread is a QSBR reader of \
             the same domain, online since {began}; use Qsbr::synchronize or Qsbr::while_offline, \
             or, in a task, synchronize_async"
        );
    }
    panic!(
        "quiescence: {what}() at {location} would wait for ever: this thread is inside a read-side \
         critical section of the same domain, begun at {began}; drop the guard first"
    );
}

/// A handle of a shared domain.
impl<K: DomainTag> Weigh for Domain<K> {
    const OWNS: bool = false;
}
