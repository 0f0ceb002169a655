//! What a domain has for its grace periods: the machine, its readers, and who drives it.
//!
//! The thread that wants a grace period takes the lock of the machine, requests, and, if no thread
//! drives the machine at that moment, becomes its *driver*: it carries out the machine's actions
//! and reports back ([`driver`]), until its own cookie is done. Everybody else sleeps until then;
//! so concurrent updaters share grace periods. The lock is released while the driver fences, scans
//! or sleeps.
//!
//! A driver may also stop half-way ([`GracePeriods::advance`]): the machine remembers the step, and
//! the next thread continues from there. One that gets no CPU is superseded by a waiter
//! ([`handover`]).
//!
//! The order of locks is in `os/lock_rank.rs`.

#[cfg(not(loom))]
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use grace::policy::AnyPolicy;
#[cfg(not(loom))]
use grace::srcu::AdaptiveDelay;
pub(crate) use grace::worker::Attention;
use grace::{Machine, NotGiven, Number, Sequence, Start, Urgency, word};

use self::handover::{Conduct, Patience};
use self::protocol::Protocol;
use self::sleepers::Sleepers;

#[cfg(not(loom))]
pub(crate) use self::forked::{HeldMachine, HeldRegistry};
use crate::chaos::{self, Mutant, Point};
use crate::event::statistics::{Counters, Current};
use crate::event::trace;
use crate::gp::engine::Settings;
use crate::gp::gp_words::GpWords;
#[cfg(not(loom))]
use crate::gp::gp_words::{Links, Readers};
use crate::gp::observers::Observers;
use crate::gp::reader::{ReaderKind, Slot};
use crate::gp::registry::Registry;
use crate::gp::relay::Relay;
use crate::gp::stall::Watch;
use crate::gp::tuning;
#[cfg(not(loom))]
use crate::os::stack::Alternate;
use crate::os::sync::{
    self, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Rank, const_unless_loom,
};
use crate::os::{fence, lock_rank};

mod driver;
#[cfg(not(loom))]
mod forked;
pub(crate) mod liburcu;
pub(crate) mod handover;
pub(crate) mod protocol;
pub(crate) mod sleepers;
#[cfg(not(loom))]
pub(crate) mod srcu;
mod watch;

/// What a domain has for its grace periods. What else it has is beside this, in [`DomainState`],
/// which is dropped first.
///
/// [`DomainState`]: crate::reclaim::domain_state::DomainState
// In the order of C: see `of`.
#[repr(C)]
pub struct GracePeriods {
    pub(crate) gp_words: GpWords,
    pub(crate) state: Mutex<State>,
    /// Which driver is the current one, or was the last; see [`handover`].
    term: AtomicU64,
    /// Tells those who wait for the driver that a grace period has ended or the driver has left.
    pub(crate) turn: Condvar,
    /// How many tasks wait, for a look without the lock.
    tasks: AtomicU64,
    /// The number of the last of those that a child process has forgotten.
    #[cfg(not(loom))]
    tasks_forgotten: AtomicU64,
    /// The machine's sequence, for those who only want to look.
    completed: AtomicU64,
    registry: Mutex<Registry>,
    pub(crate) tuning: tuning::Kept,
    pub(crate) observers: Observers,
    /// Whether the grace period that began last found no other reader. For the size of batches.
    pub(crate) alone: AtomicBool,
    /// What the worker is to do while a grace period is wanted here.
    when_wanted: Attention,
    /// Whether hazard pointers protect what waits here: then a grace period is a heavy fence, and
    /// what is protected is found by a scan of their slots afterwards.
    pub(crate) hazards: bool,
    /// Where the sections of a sleepable domain are counted.
    #[cfg(not(loom))]
    counted: Option<srcu::CountedRef>,
}

// Not derived: it would look into the slots' cells, which belong to other threads.
impl std::fmt::Debug for GracePeriods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GracePeriods").field("completed", &self.completed).finish_non_exhaustive()
    }
}

/// The machine and who drives it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) protocol: Protocol,
    /// The number of the grace period that has begun last.
    begun: Option<u64>,
    /// What is known of the grace period in progress.
    pub(crate) current: Current,
    /// What has been told of it.
    pub(crate) watch: Watch,
    /// Times that a driver has gone to sleep for its holdouts.
    pauses: u32,
    pub(crate) driven: bool,
    /// What the driver is at.
    pub(crate) conduct: Conduct,
    /// Threads that wait for the driver.
    sleepers: usize,
    /// Tasks that wait.
    pub(crate) sleepers_to_tell: Sleepers,
}

/// When the worker comes back to a domain whose lock another thread holds: sooner than a tick,
/// since tasks may wait.
#[cfg(not(loom))]
pub(crate) const BUSY_NS: u64 = 1_000_000;

/// How far a driver goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// This cookie is done.
    Done(grace::Cookie),
    /// There is something to wait for, or one grace period has ended.
    MustWait {
        /// Whether a tick has come: the driver is the worker.
        tick: bool,
    },
}

/// A driver in its term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    /// Its number [HO-1].
    term: u64,
    /// Whether it has taken another one's place.
    took_over: bool,
    pub(crate) until: Until,
    me: Me,
}

/// The calling thread, as far as a driver must know it: which readers are its own.
///
/// Not how many, nor whether they are quiescent. That is looked at under the registry's lock at the
/// moment when it decides something: the wakers that a driver calls between two grace periods are
/// the user's code, and may begin sections on this thread, register it, or end its readers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    /// As [`Slot::owner`].
    pub(super) owner: usize,
}

impl Me {
    /// A thread that has no reader here.
    pub(crate) const NOBODY: Self = Self { owner: 0 };

    #[cfg(not(loom))]
    pub(crate) fn this_thread() -> Self {
        Self { owner: crate::os::thread::token() }
    }

    /// Loom's threads are one to the system.
    #[cfg(loom)]
    pub(crate) fn owner(owner: usize) -> Self {
        Self { owner }
    }
}

const _: () = assert!(std::mem::offset_of!(GracePeriods, gp_words) == 0);

impl Deref for GracePeriods {
    type Target = GpWords;

    #[inline(always)]
    fn deref(&self) -> &GpWords {
        &self.gp_words
    }
}

impl GracePeriods {
    /// The grace periods that have this reader side, by its address.
    pub(crate) fn of(gp_words: *const GpWords) -> *const Self {
        gp_words.cast() // their first field
    }

    const_unless_loom! {
        /// A domain without readers.
        pub(crate) fn new(start: Start, settings: Settings) -> Self {
            Self {
                gp_words: GpWords::new(word::entered(start.number), settings.readers_fence),
                state: Mutex::new(Rank::GracePeriods, State {
                    protocol: Protocol::Threads(Machine::new(settings.policy, start)),
                    begun: None,
                    current: Current::NONE,
                    watch: Watch::NEW,
                    pauses: 0,
                    driven: false,
                    conduct: Conduct::NEW,
                    sleepers: 0,
                    sleepers_to_tell: Sleepers::NONE,
                }),
                term: AtomicU64::new(0),
                turn: Condvar::new(),
                tasks: AtomicU64::new(0),
                #[cfg(not(loom))]
                tasks_forgotten: AtomicU64::new(0),
                completed: AtomicU64::new(start.sequence.to_bits()),
                registry: Mutex::new(Rank::Registry, Registry::new(match settings.policy {
                    AnyPolicy::Token(_) => Some(Relay::new()),
                    _ => None,
                })),
                tuning: tuning::Kept::new(),
                observers: Observers::new(),
                alone: AtomicBool::new(false),
                when_wanted: Attention::while_wanted(&settings.policy),
                hazards: false,
                #[cfg(not(loom))]
                counted: None,
            }
        }
    }

    /// Its readers are to be liburcu ones.
    #[cfg(not(loom))]
    pub(crate) const fn make_liburcu(&mut self, readers: Readers) {
        self.tuning = tuning::Kept::liburcu();
        let links = Some(Links::new(readers));
        // Not dropped here, which a constant may not do: it is `None`.
        std::mem::forget(std::mem::replace(&mut self.gp_words.liburcu, links));
    }

    /// It is to be a sleepable domain's.
    #[cfg(not(loom))]
    pub(crate) fn make_sleepable(&mut self, name: Option<&'static str>, delay: AdaptiveDelay) {
        let state = self.state.get_mut();
        state.protocol = Protocol::Srcu(protocol::SrcuProtocol::new(delay));
        self.observers.declared_name = name;
        self.observers.number = Observers::next_number();
    }

    /// Hazard pointers are to protect what waits in it.
    #[cfg(not(loom))]
    pub(crate) const fn make_hazard(&mut self) {
        self.hazards = true;
        self.tuning = tuning::Kept::hazard();
    }

    /// What people know the domain by: see [`Observers::label`].
    #[cfg(not(loom))]
    pub(crate) fn label(&self) -> Cow<'_, str> {
        self.observers.label()
    }

    /// A number that no other domain has, had or will have.
    #[cfg(not(loom))]
    pub(crate) fn identity(&self) -> usize {
        self.observers.identity()
    }

    /// Where the events of this domain happen.
    pub(crate) fn source(&self) -> trace::Source<'_> {
        self.observers.source()
    }

    /// What has been counted here.
    pub(crate) fn counters(&self) -> &Counters {
        &self.observers.counters
    }

    // ---- readers ------------------------------------------------------------------------------

    /// Enters a reader of the calling thread.
    pub(crate) fn register(&self, owner: usize, reader_kind: ReaderKind) -> &Slot {
        fence::chosen(); // before the first reader, never after
        #[cfg(not(loom))]
        let alternate = Alternate::of_this_thread(); // a system call: before the lock
        let mut registry = sync::lock(&self.registry);
        let slot = registry.register(std::ptr::from_ref(self).cast(), owner, reader_kind);
        // SAFETY: the registry never gives slots back while `self` lives.
        let slot = unsafe { &*slot };
        #[cfg(not(loom))]
        slot.set_alternate(alternate);
        drop(registry);
        // A full fence beside the lock [GP-5]: a reader that a scan or an `Alone` did not see sees
        // what was published before them.
        fence::full();
        slot
    }

    /// Enters a reader of the calling thread whose slot is its program's.
    ///
    /// # Safety
    /// As [`Registry::register_at`].
    #[cfg(not(loom))]
    pub(crate) unsafe fn register_at(
        &self,
        slot: *const Slot,
        owner: usize,
        reader_kind: ReaderKind,
    ) {
        fence::chosen();
        let alternate = Alternate::of_this_thread();
        let mut registry = self.registry_with_room();
        // SAFETY: by the contract.
        unsafe { registry.register_at(slot, std::ptr::from_ref(self).cast(), owner, reader_kind) };
        // SAFETY: by the contract.
        unsafe { &*slot }.set_alternate(alternate);
        drop(registry);
        fence::full(); // as in `register` [GP-5]
    }

    /// Takes out a reader of the calling thread, which is in no section.
    pub(crate) fn unregister(&self, slot: &Slot) {
        chaos::point(Point::BeforeUnregister);
        debug_assert!(slot.is_quiescent());
        // Asked now: once it is unregistered it may be another thread's, or gone.
        let liburcu_words = self.liburcu_words().filter(|_| slot.is_liburcu());
        // The thread that scans later takes the same lock: the sections of this reader happened
        // before [GP-5].
        sync::lock(&self.registry).unregister(slot);
        chaos::point(Point::Unregistered);
        match liburcu_words {
            Some(words) => words.wake(),
            // The next owner finds the mark and keeps it: see `Slot::adopt`.
            None => slot.report_quiescent(),
        }
    }

    /// How many threads wait for grace periods now, the driver included.
    #[cfg(not(loom))]
    pub(crate) fn waiters(&self) -> usize {
        let state = sync::lock(&self.state);
        state.sleepers + usize::from(state.driven)
    }

    /// The readers of this domain. Locked for a look, never for a wait.
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        sync::lock(&self.registry)
    }

    /// The number that readers record now.
    pub(crate) fn announced(&self) -> Number {
        // Relaxed: it is only told, or compared under the registry's lock.
        word::number(self.gp.load(Relaxed))
    }

    /// Whether its sections are no thread's.
    #[cfg(not(loom))]
    pub(crate) fn is_sleepable(&self) -> bool {
        self.counted.is_some()
    }

    /// How many readers are registered; in a sleepable domain, how many sections are in progress.
    pub(crate) fn readers(&self) -> usize {
        #[cfg(not(loom))]
        if let Some(counted) = &self.counted {
            return usize::try_from(counted.get().sections()).unwrap_or(usize::MAX);
        }
        sync::lock(&self.registry).len()
    }

    /// Calls `f` with the machine, its grace period in progress, the readers and the number that
    /// was announced last: no grace period takes a step meanwhile, and no reader comes or goes.
    #[cfg(not(loom))]
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn stand_still<R>(
        &self,
        f: impl FnOnce(&Protocol, &Current, &Registry, Number) -> R,
    ) -> R {
        let state = sync::lock(&self.state);
        let registry = sync::lock(&self.registry);
        f(&state.protocol, &state.current, &registry, word::number(self.gp.load(Relaxed)))
    }

    // ---- requests -----------------------------------------------------------------------------

    /// Asks for a full grace period from now on; somebody must drive it.
    pub(crate) fn request(&self, urgency: Urgency) -> grace::Cookie {
        self.request_locked(&mut sync::lock(&self.state), urgency)
    }

    /// The same for the worker, which waits for no lock: none where another thread holds it.
    #[cfg(not(loom))]
    pub(crate) fn request_unless_busy(&self, urgency: Urgency) -> Option<grace::Cookie> {
        let mut state = sync::try_lock(&self.state)?;
        Some(self.request_locked(&mut state, urgency))
    }

    /// The lock orders the caller's update before the fence of the grace period that will serve it
    /// [GP-9].
    fn request_locked(&self, state: &mut State, urgency: Urgency) -> grace::Cookie {
        let cookie = state.protocol.snapshot();
        self.require_locked(state, cookie, urgency).expect("a snapshot of now is the machine's");
        if chaos::mutant(Mutant::ServedByThePresent) && state.protocol.sequence().in_progress() {
            return grace::Cookie::from_bits(cookie.to_bits().wrapping_sub(2));
        }
        cookie
    }

    fn require_locked(
        &self,
        state: &mut State,
        cookie: grace::Cookie,
        urgency: Urgency,
    ) -> Result<(), NotGiven> {
        if state.protocol.require(cookie, urgency)? && state.driven {
            state.conduct.away.least = Duration::ZERO; // its nap is over
            self.turn.notify_all();
        }
        Ok(())
    }

    /// Asks for what a cookie of this domain stands for; somebody must drive it.
    #[cfg(not(loom))]
    pub(crate) fn require(&self, cookie: grace::Cookie, urgency: Urgency) -> Result<(), NotGiven> {
        self.require_locked(&mut sync::lock(&self.state), cookie, urgency)
    }

    /// Whether a cookie is one that this domain can have given; [`Sequence::has_given`] argues why
    /// none that is can be far ahead. Takes the machine's lock for a moment, unless the cookie is
    /// done.
    #[cfg(not(loom))]
    pub(crate) fn has_given(&self, cookie: grace::Cookie) -> bool {
        self.sequence().is_done(cookie) || sync::lock(&self.state).protocol.has_given(cookie)
    }

    /// The cookie of a full grace period from now on, without asking for it.
    pub(crate) fn snapshot(&self) -> grace::Cookie {
        sync::lock(&self.state).protocol.snapshot() // [GP-9]
    }

    /// The same without the lock, for a caller whose last step was the atomic exchange that
    /// unlinked an object.
    ///
    /// The exchange is followed by a full fence, and then by the load of `completed`. If the load
    /// finds no grace period in progress, then the next one's begin is stored later, and its fence
    /// comes after the exchange [UL-1]. If it finds one in progress, that one ends, with Release,
    /// before the next one begins.
    #[inline]
    pub(crate) fn snapshot_after_unlinking(&self) -> grace::Cookie {
        if !chaos::mutant(Mutant::NoUnlinkFence) {
            fence::full_after_locked(); // [UL-1]
        }
        // Relaxed: the fences order it [UL-1]; nothing is freed because of it.
        Sequence::from_bits(self.completed.load(Relaxed)).snapshot()
    }

    /// Shows those who take no lock that a grace period is in progress, before its first fence
    /// [UL-1]. Under the machine's lock.
    pub(crate) fn show_begin(&self, sequence: Sequence) {
        if !chaos::mutant(Mutant::UnseenBegin) {
            // Its order against the fence of the grace period is [UL-1]. Release: the thread that
            // loads this value takes the grace periods before as ended, as in `complete` [GP-4].
            self.completed.store(sequence.to_bits(), chaos::release_unless(Mutant::RelaxedBegin));
        }
    }

    /// The sequence as last made visible.
    #[inline]
    pub(crate) fn sequence(&self) -> Sequence {
        // Acquire: pairs with the Release in `complete` [GP-4]; the thread that sees the grace
        // period ended may free what its holdouts could see.
        Sequence::from_bits(self.completed.load(Acquire))
    }

    /// Waits for a full grace period. The caller is in no section of this domain. Returns whether
    /// it has ended, as [`wait`](Self::wait).
    #[must_use]
    pub(crate) fn synchronize(&self, urgency: Urgency, me: Me) -> bool {
        let mut state = sync::lock(&self.state);
        let cookie = self.request_locked(&mut state, urgency);
        let is_over = self.wait_locked(state, cookie, me, Patience::NEW);
        self.unlocked_again();
        is_over
    }

    /// Waits until `cookie` is done, driving the machine if no thread does. Returns whether it is:
    /// not where a waker has begun a section on this thread meanwhile, which the grace period might
    /// wait for.
    ///
    /// # Panics
    /// If the cookie is not this domain's: it might never be done.
    #[must_use]
    pub(crate) fn wait(&self, cookie: grace::Cookie, urgency: Urgency, me: Me) -> bool {
        let mut state = sync::lock(&self.state);
        if let Err(not_given) = self.require_locked(&mut state, cookie, urgency) {
            drop(state);
            panic!("quiescence: {not_given}");
        }
        let is_over = self.wait_locked(state, cookie, me, Patience::NEW);
        self.unlocked_again();
        is_over
    }

    /// The same, where there is nothing to wait for: no reader but `own` ones of the caller, which
    /// reads by none of them, and no grace period that others want. Their words are not looked at,
    /// so a QSBR reader need not go offline for it. Returns false where that is not so, or perhaps
    /// not: then nothing has been waited for.
    pub(crate) fn synchronize_alone(&self, own: usize) -> bool {
        // Relaxed: a hint, which spares the lock; the registry is asked below.
        if !self.alone.load(Relaxed) {
            return false;
        }
        let Some(mut state) = sync::try_lock(&self.state) else { return false };
        let is_wanted = state.driven || state.protocol.is_wanted();
        if is_wanted && !chaos::mutant(Mutant::AloneBesideDriver) {
            return false;
        }
        self.request_locked(&mut state, Urgency::Normal);
        let is_over = self.drive_alone(&mut state, own);
        drop(self.tell_those_due(state).0);
        if is_over {
            self.unlocked_again();
        }
        is_over
    }

    /// What is to be done where none of our locks is held.
    fn unlocked_again(&self) {
        lock_rank::assert_none_held("what runs under no lock is done");
        trace::deliver();
        #[cfg(not(loom))]
        (crate::HOOKS.gp.unlocked)();
    }

    /// As [`synchronize`](Self::synchronize), for a caller that takes the place of drivers at work
    /// up to so many times, wherever it finds them.
    #[cfg(loom)]
    pub(crate) fn synchronize_impatiently(&self, me: Me, take_overs: u32) {
        let mut state = sync::lock(&self.state);
        let cookie = self.request_locked(&mut state, Urgency::Normal);
        self.wait_locked(state, cookie, me, Patience::none(take_overs));
    }

    /// As [`wait`](Self::wait).
    fn wait_locked<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        cookie: grace::Cookie,
        me: Me,
        mut patience: Patience,
    ) -> bool {
        let until = Until::Done(cookie);
        while !state.protocol.sequence().is_done(cookie) {
            let driver;
            if state.driven {
                if chaos::mutant(Mutant::NoSharing) {
                    return true;
                }
                (state, driver) = self.await_turn(state, &mut patience, (until, me), None);
            } else {
                driver = Some(self.begin_term(until, me));
            }
            if let Some(driver) = driver {
                let woke;
                (state, woke) = self.drive(state, driver);
                if woke
                    && !state.protocol.sequence().is_done(cookie)
                    && sync::lock(&self.registry).reads(me.owner)
                {
                    return false;
                }
            }
        }
        true
    }

    /// Goes as far with the grace period in progress or wanted as is possible without waiting.
    pub(crate) fn advance(&self, me: Me) {
        self.advance_at(me, false);
    }

    /// The same, at a tick: a grace period that waits for it begins, or is looked at.
    pub(crate) fn advance_at_tick(&self, me: Me) {
        self.advance_at(me, true);
    }

    fn advance_at(&self, me: Me, tick: bool) {
        let Some(mut state) = sync::try_lock(&self.state) else { return };
        if !state.protocol.is_wanted() {
            return;
        }
        let until = Until::MustWait { tick };
        let driver = match state.driven {
            false => Some(self.begin_term(until, me)),
            true => self.take_over_in_passing(&mut state, (until, me)),
        };
        if let Some(driver) = driver {
            drop(self.drive(state, driver).0);
            self.unlocked_again();
        }
    }

    /// What the worker still has to do here, callbacks aside. Tries a lock, but for the default
    /// engine while no task waits; where another thread holds it, the worker is to come back.
    #[cfg(not(loom))]
    pub(crate) fn attention(&self) -> Attention {
        if !self.has_sleepers() && (self.counted.is_some() || self.when_wanted == Attention::None) {
            return Attention::None;
        }
        // Whatever the engine: without a pause it would keep the holder of the lock from its CPU.
        let Some(state) = sync::try_lock(&self.state) else {
            return Attention::Within(BUSY_NS);
        };
        let wanted = state.protocol.is_wanted() && self.counted.is_none();
        let engine = if wanted { self.when_wanted } else { Attention::None };
        let tasks = match state.soon_ns() {
            Some(ns) => Attention::Within(ns),
            // They wait for callbacks.
            None if state.sleepers_to_tell.are_there() => Attention::AtTick,
            None => Attention::None,
        };
        engine.max(tasks)
    }

    /// How much somebody wants the grace period in progress or a later one, as far as can be told
    /// without waiting for the lock.
    #[cfg(not(loom))]
    pub(crate) fn urgency(&self) -> Option<Urgency> {
        Some(sync::try_lock(&self.state)?.protocol.urgency())
    }
}
