//! The grace-period state of a domain: the machine, its readers and its driver.
//!
//! The thread that wants a grace period takes the lock of the machine, requests, and, if no thread
//! drives the machine at that moment, becomes its *driver*: it carries out the machine's actions
//! and reports back ([`driver`]), until its own cookie is done. Other threads that wait sleep
//! meanwhile; so concurrent updaters share grace periods. The lock is released while the driver
//! fences, scans or sleeps.
//!
//! A driver may also stop half-way ([`GracePeriods::advance`]): the machine remembers the step, and
//! the next driver continues from there. A driver that gets no CPU is superseded by a waiter
//! ([`handover`]).
//!
//! The order of locks is in `os/lock_rank.rs`.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::Event;
use grace::policy::AnyPolicy;
pub(crate) use grace::worker::Attention;
use grace::{Machine, NotGiven, Number, Sequence, Start, Urgency, word};

use self::handover::{Conduct, Patience};
use self::sleepers::Sleepers;

use crate::event::statistics::{Counters, Current};
use crate::event::trace;
use crate::gp::engine::Settings;
use crate::gp::gp_words::GpWords;
use crate::gp::gp_words::{Links, Readers};
use crate::gp::observers::Observers;
use crate::gp::registry::Registry;
use crate::gp::relay::Relay;
use crate::gp::slot::{ReaderKind, Slot};
use crate::gp::stall::Watch;
use crate::gp::tuning::{AtomicTuning, Kind};
use crate::os::forking::{AtFork, Held};
use crate::os::sync::{
    self, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Rank, const_unless_loom,
};
use crate::os::{clock, stack::Alternate};
use crate::os::{fence, lock_rank};

mod driver;
pub(crate) mod liburcu;
pub(crate) mod handover;
pub(crate) mod sleepers;
mod watch;

/// The grace-period state of a domain. The rest is in [`DomainState`], which is dropped first.
///
/// [`DomainState`]: crate::reclaim::domain_state::DomainState
// C layout, so that `gp_words` comes first: see `of`.
#[repr(C)]
pub(crate) struct GracePeriods {
    pub(crate) gp_words: GpWords,
    pub(crate) state: Mutex<State>,
    /// The number of the current term, or of the last one; see [`handover`].
    term: AtomicU64,
    /// Notified when a grace period has ended, the driver has left, or its nap must end.
    pub(crate) turn: Condvar,
    /// How many tasks wait, to be read without the lock.
    tasks: AtomicU64,
    /// The highest number of the tasks that a child process has forgotten.
    tasks_forgotten: AtomicU64,
    /// The machine's sequence, to be read without the lock.
    completed: AtomicU64,
    registry: Mutex<Registry>,
    pub(crate) tuning: AtomicTuning,
    pub(crate) observers: Observers,
    /// Whether the last grace period to begin found no other reader: a hint, also for batch sizes.
    pub(crate) alone: AtomicBool,
    /// What the worker is to do while a grace period is wanted here.
    when_wanted: Attention,
    /// If hazard pointers protect the objects that wait here: then a grace period is a heavy fence,
    /// and this scan of the hazard slots afterwards finds the protected ones. (A program without
    /// such a domain does not link it.)
    pub(crate) hazards: Option<fn() -> Vec<usize>>,
    /// The readers of a sleepable domain.
    counted: Option<Box<dyn Counted>>,
}

// Not derived: that would read the slots' cells, which belong to other threads.
impl std::fmt::Debug for GracePeriods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GracePeriods").field("completed", &self.completed).finish_non_exhaustive()
    }
}

/// The machine and its driver.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) machine: Machine<AnyPolicy>,
    /// The number of the latest grace period that has begun.
    begun: Option<u64>,
    /// What is known of the grace period in progress.
    pub(crate) current: Current,
    /// What has been reported of it.
    pub(crate) watch: Watch,
    /// How often a driver has slept for holdouts in this grace period.
    pauses: u32,
    pub(crate) driven: bool,
    /// Until when the driver's next step is put off, as `clock::monotonic_ns`, unless a thread
    /// comes that waits; 0 if it is not.
    pub(crate) put_off_until_ns: u64,
    /// What the driver is doing.
    pub(crate) conduct: Conduct,
    /// Threads that wait for the driver.
    pub(crate) sleepers: usize,
    /// Tasks that wait.
    pub(crate) sleepers_to_tell: Sleepers,
}

/// Readers that are counted, and not registered: those of a sleepable domain.
///
/// To the domain's machine they are no readers. It begins a grace period, and their driver ends it
/// ([`GracePeriods::end_alone`]) once all sections that had been counted by then have ended.
pub(crate) trait Counted: Send + Sync {
    /// How many sections are in progress.
    fn sections(&self) -> u64;

    /// Carries out the actions of the domain's machine, until `driver.until` is reached or another
    /// driver has taken over. The caller has set `driven`.
    fn drive<'a>(
        &self,
        domain: &'a GracePeriods,
        state: MutexGuard<'a, State>,
        driver: &Driver,
    ) -> MutexGuard<'a, State>;
}

/// How soon the worker comes back to a domain whose lock another thread holds, or whose driver may
/// leave: less than a tick, since tasks may wait.
pub(crate) const BUSY_NS: u64 = 1_000_000;

/// When a driver stops.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// This cookie is done.
    Done(grace::Cookie),
    /// When it would have to wait, or one grace period has ended.
    MustWait {
        /// Whether the driver is the worker, at a tick.
        tick: bool,
    },
}

/// A driver in its term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    /// The number of its term [HO-1].
    term: u64,
    /// Whether it has superseded another driver.
    took_over: bool,
    pub(crate) until: Until,
    me: Me,
}

/// Tells a driver which readers are the calling thread's own.
///
/// Not how many there are, nor whether they are quiescent. That is checked under the registry's
/// lock whenever it decides something: the wakers that a driver calls between two grace periods are
/// the user's code, and may begin sections on this thread, register it, or end its readers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    /// As [`Slot::owner`].
    pub(super) owner: usize,
}

impl Me {
    /// A thread that has no reader here.
    pub(crate) const NOBODY: Self = Self { owner: 0 };

    pub(crate) fn this_thread() -> Self {
        Self { owner: crate::os::thread::token() }
    }

    /// To the system all of loom's threads are one.
    #[cfg(loom)]
    pub(crate) fn owner(owner: usize) -> Self {
        Self { owner }
    }
}

const _: () = assert!(std::mem::offset_of!(GracePeriods, gp_words) == 0);

impl AtFork for State {}
impl AtFork for Registry {}

impl GracePeriods {
    /// The grace periods whose words for readers are at `gp_words`.
    pub(crate) fn of(gp_words: *const GpWords) -> *const Self {
        gp_words.cast() // the first field
    }

    const_unless_loom! {
        /// A domain without readers.
        pub(crate) fn new(start: Start, settings: Settings) -> Self {
            Self {
                gp_words: GpWords::new(word::entered(start.number), settings.readers_fence),
                state: Mutex::new(Rank::GracePeriods, State {
                    machine: Machine::new(settings.policy, start),
                    begun: None,
                    current: Current::NONE,
                    watch: Watch::NEW,
                    pauses: 0,
                    driven: false,
                    put_off_until_ns: 0,
                    conduct: Conduct::NEW,
                    sleepers: 0,
                    sleepers_to_tell: Sleepers::NONE,
                }),
                term: AtomicU64::new(0),
                turn: Condvar::new(),
                tasks: AtomicU64::new(0),
                tasks_forgotten: AtomicU64::new(0),
                completed: AtomicU64::new(start.sequence.to_bits()),
                registry: Mutex::new(Rank::Registry, Registry::new(match settings.policy {
                    AnyPolicy::Token(_) => Some(Relay::new()),
                    _ => None,
                })),
                tuning: AtomicTuning::new(Kind::Threads),
                observers: Observers::new(),
                alone: AtomicBool::new(false),
                when_wanted: Attention::while_wanted(&settings.policy),
                hazards: None,
                counted: None,
            }
        }
    }

    /// Makes this a domain of liburcu readers.
    pub(crate) const fn make_liburcu(&mut self, readers: Readers) {
        self.tuning = AtomicTuning::new(Kind::Liburcu);
        let links = Some(Links::new(readers));
        // The old value is `None`, forgotten because a constant may not drop it.
        std::mem::forget(std::mem::replace(&mut self.gp_words.liburcu, links));
    }

    /// Makes this a sleepable domain.
    pub(crate) fn make_sleepable(&mut self, counted: Box<dyn Counted>) {
        self.counted = Some(counted);
        self.when_wanted = Attention::None;
    }

    /// Makes this a domain of hazard pointers.
    pub(crate) const fn make_hazard(&mut self, scan: fn() -> Vec<usize>) {
        self.hazards = Some(scan);
        self.tuning = AtomicTuning::new(Kind::Hazard);
    }

    /// This domain as the source of events.
    pub(crate) fn source(&self) -> trace::Source<'_> {
        self.observers.source()
    }

    /// This domain's counters.
    pub(crate) fn counters(&self) -> &Counters {
        &self.observers.counters
    }

    // ---- readers ------------------------------------------------------------------------------

    /// Registers a reader of the calling thread.
    pub(crate) fn register(&self, owner: usize, reader_kind: ReaderKind) -> &Slot {
        fence::chosen(); // before the first reader, never after
        let alternate = Alternate::of_this_thread(); // a system call: before the lock
        let mut registry = sync::lock(&self.registry);
        let slot = registry.register(std::ptr::from_ref(self).cast(), owner, reader_kind);
        // SAFETY: the registry frees no slot while `self` lives.
        let slot = unsafe { &*slot };
        slot.alternate.set(alternate);
        drop(registry);
        // A full fence besides the lock [GP-5]: a reader that a scan or an `Alone` did not see sees
        // what was published before them.
        fence::full();
        slot
    }

    /// Registers a reader of the calling thread whose slot is in the program's own memory.
    ///
    /// # Safety
    /// As [`Registry::register_at`].
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
        unsafe { &*slot }.alternate.set(alternate);
        drop(registry);
        fence::full(); // as in `register` [GP-5]
    }

    /// Unregisters a reader of the calling thread, which is in no section.
    pub(crate) fn unregister(&self, slot: &Slot) {
        //~ point before-unregister
        debug_assert!(slot.is_quiescent());
        // Read now: once unregistered, the slot may be another thread's, or gone.
        let liburcu_words = self.gp_words.liburcu_words().filter(|_| slot.is_liburcu());
        // A thread that scans later takes the same lock: the sections of this reader happened
        // before [GP-5].
        sync::lock(&self.registry).unregister(slot);
        //~ point unregistered
        match liburcu_words {
            Some(words) => words.wake(),
            // The next owner finds the mark and keeps it: see `Slot::adopt`.
            None => slot.report_quiescent(),
        }
    }

    /// How many threads wait for grace periods now, the driver included.
    pub(crate) fn waiters(&self) -> usize {
        let state = sync::lock(&self.state);
        state.sleepers + usize::from(state.driven)
    }

    /// The readers of this domain. The lock is never held during a wait.
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        sync::lock(&self.registry)
    }

    /// The number that readers record now.
    pub(crate) fn announced(&self) -> Number {
        // Relaxed: only reported, or compared under the registry's lock.
        word::number(self.gp_words.gp.load(Relaxed))
    }

    /// Whether this is a sleepable domain, whose sections belong to no thread.
    pub(crate) fn is_sleepable(&self) -> bool {
        self.counted.is_some()
    }

    /// How many readers are registered; in a sleepable domain, how many sections are in progress.
    pub(crate) fn readers(&self) -> usize {
        match &self.counted {
            None => sync::lock(&self.registry).len(),
            Some(counted) => usize::try_from(counted.sections()).unwrap_or(usize::MAX),
        }
    }

    /// Calls `f` with the machine, its grace period in progress, the readers and the number that
    /// was announced last. Meanwhile no grace period takes a step, and no reader registers or
    /// unregisters.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn stand_still<R>(
        &self,
        f: impl FnOnce(&Machine<AnyPolicy>, &Current, &Registry, Number) -> R,
    ) -> R {
        let state = sync::lock(&self.state);
        let registry = sync::lock(&self.registry);
        f(&state.machine, &state.current, &registry, word::number(self.gp_words.gp.load(Relaxed)))
    }

    // ---- requests -----------------------------------------------------------------------------

    /// Asks for a full grace period from now on; a thread must drive it.
    pub(crate) fn request(&self, urgency: Urgency) -> grace::Cookie {
        self.request_locked(&mut sync::lock(&self.state), urgency)
    }

    /// As [`request`](Self::request), but `None` if another thread holds the lock: the worker does
    /// not wait.
    pub(crate) fn request_unless_busy(&self, urgency: Urgency) -> Option<grace::Cookie> {
        let mut state = sync::try_lock(&self.state)?;
        Some(self.request_locked(&mut state, urgency))
    }

    /// The lock orders the caller's update before the fence of the grace period that will serve it
    /// [GP-9].
    pub(crate) fn request_locked(&self, state: &mut State, urgency: Urgency) -> grace::Cookie {
        let cookie = state.machine.snapshot();
        self.require_locked(state, cookie, urgency).expect("a snapshot of now is the machine's");
        //~ served-by-the-present
        cookie
    }

    fn require_locked(
        &self,
        state: &mut State,
        cookie: grace::Cookie,
        urgency: Urgency,
    ) -> Result<(), NotGiven> {
        let hurries =
            state.machine.urgency() == Urgency::Background && urgency > Urgency::Background;
        state.machine.require(cookie, urgency)?;
        if hurries && state.put_off_until_ns != 0 {
            state.put_off_until_ns = 0;
            if state.driven {
                state.conduct.away.least_ns = 0; // ends its nap
                self.turn.notify_all();
            }
        }
        Ok(())
    }

    /// Asks for the grace period that `cookie` stands for; a thread must drive it.
    pub(crate) fn require(&self, cookie: grace::Cookie, urgency: Urgency) -> Result<(), NotGiven> {
        self.require_locked(&mut sync::lock(&self.state), cookie, urgency)
    }

    /// Whether this domain can have given `cookie`; [`Sequence::has_given`] argues why such a
    /// cookie is not far ahead. Takes the machine's lock for a moment, unless the cookie is done.
    pub(crate) fn has_given(&self, cookie: grace::Cookie) -> bool {
        self.sequence().is_done(cookie)
            || sync::lock(&self.state).machine.sequence().has_given(cookie)
    }

    /// The cookie of a full grace period from now on, without asking for it.
    pub(crate) fn snapshot(&self) -> grace::Cookie {
        sync::lock(&self.state).machine.snapshot() // [GP-9]
    }

    /// As [`snapshot`](Self::snapshot) without the lock, for a caller whose last step was the
    /// atomic exchange that unlinked an object.
    ///
    /// The exchange is followed by a full fence, and then by the load of `completed`. If the load
    /// finds no grace period in progress, then the beginning of the next one is stored later, and
    /// its fence comes after the exchange [UL-1]. If it finds one in progress, that one ends, with
    /// Release, before the next one begins.
    #[inline]
    pub(crate) fn snapshot_after_unlinking(&self) -> grace::Cookie {
        fence::full_after_locked(); // [UL-1] //~ no-unlink-fence
        // Relaxed: the fences order it [UL-1]; nothing is freed because of it.
        Sequence::from_bits(self.completed.load(Relaxed)).snapshot() //~ served-by-the-present
    }

    /// Shows threads that take no lock that a grace period is in progress, before its first fence
    /// [UL-1]. Under the machine's lock.
    pub(crate) fn show_begin(&self, sequence: Sequence) {
        // Its order against the fence of the grace period is [UL-1]. Release: a thread that loads
        // this value takes the earlier grace periods as ended, as in `complete` [GP-4].
        //~ unseen-begin {
        //~ relaxed-begin:
        self.completed.store(sequence.to_bits(), Release);
        //~ }
    }

    /// The sequence as last made visible.
    #[inline]
    pub(crate) fn sequence(&self) -> Sequence {
        // Acquire: pairs with the Release in `complete` [GP-4]; the thread that sees the grace
        // period ended may free what its holdouts could see.
        Sequence::from_bits(self.completed.load(Acquire)) //~ relaxed-poll
    }

    /// Waits for a full grace period. The caller is in no section of this domain. Returns whether
    /// it has ended, as [`wait`](Self::wait).
    #[must_use]
    pub(crate) fn synchronize(&self, urgency: Urgency, me: Me) -> bool {
        let mut state = sync::lock(&self.state);
        let cookie = self.request_locked(&mut state, urgency);
        self.wait_locked(state, cookie, me, Patience::NEW)
    }

    /// Waits until `cookie` is done, driving the machine if no thread does. Returns false if it is
    /// not: a waker has begun a section on this thread meanwhile, which the grace period might wait
    /// for.
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
        self.wait_locked(state, cookie, me, Patience::NEW)
    }

    /// A grace period that has nothing to wait for: the only readers are `own` ones of the caller,
    /// which reads by none of them, and no other thread wants a grace period. The readers' words
    /// are not loaded, so a QSBR reader need not go offline. Returns false if that is not so, or
    /// not certain: then nothing has been waited for.
    pub(crate) fn synchronize_alone(&self, own: usize) -> bool {
        // Relaxed: a hint, which may save the lock; the registry is asked below.
        if !self.alone.load(Relaxed) {
            return false;
        }
        let Some(mut state) = sync::try_lock(&self.state) else { return false };
        let is_wanted = state.driven || state.machine.is_wanted();
        //~ alone-beside-driver:
        if is_wanted {
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

    /// What must be done without any of the library's locks.
    pub(crate) fn unlocked_again(&self) {
        lock_rank::assert_none_held("what runs under no lock is done");
        trace::deliver();
        (crate::HOOKS.unlocked)();
    }

    /// As [`synchronize`](Self::synchronize), for a caller that supersedes the drivers that it
    /// finds at work, up to `take_overs` times.
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
        let mut begins_section = false;
        while !begins_section && !state.machine.sequence().is_done(cookie) {
            let driver;
            if state.driven {
                //~ no-sharing
                (state, driver) = self.await_turn(state, &mut patience, (until, me), None);
            } else {
                driver = Some(self.begin_term(until, me));
            }
            if let Some(driver) = driver {
                let woke;
                (state, woke) = self.drive(state, driver);
                begins_section = woke && sync::lock(&self.registry).reads(me.owner);
            }
        }
        let is_over = state.machine.sequence().is_done(cookie);
        drop(state);
        self.unlocked_again();
        is_over
    }

    /// Takes those steps of the grace period in progress or wanted that need no waiting.
    pub(crate) fn advance(&self, me: Me) {
        self.advance_at(me, false);
    }

    /// The same, at a tick: a grace period that waits for the tick begins, or scans again.
    pub(crate) fn advance_at_tick(&self, me: Me) {
        self.advance_at(me, true);
    }

    fn advance_at(&self, me: Me, tick: bool) {
        let Some(mut state) = sync::try_lock(&self.state) else { return };
        if !state.machine.is_wanted() {
            return;
        }
        let until = Until::MustWait { tick };
        let driver = match state.driven {
            false => Some(self.begin_term(until, me)),
            true => self.take_over_in_passing(clock::monotonic_ns(), &mut state, (until, me)),
        };
        if let Some(driver) = driver {
            drop(self.drive(state, driver).0);
            self.unlocked_again();
        }
    }

    /// What the worker still has to do here, callbacks aside. Takes no lock if no task waits and
    /// grace periods here need no worker. Else it tries one; if another thread holds it, the worker
    /// is to come back.
    pub(crate) fn attention(&self) -> Attention {
        if !self.has_sleepers() && self.when_wanted == Attention::None {
            return Attention::None;
        }
        // Under every engine: a worker without a pause would keep the lock's holder off its CPU.
        let Some(state) = sync::try_lock(&self.state) else {
            return Attention::Within(BUSY_NS);
        };
        let wanted = state.machine.is_wanted();
        let engine = if wanted { self.when_wanted } else { Attention::None };
        let tasks = match state.sleepers_to_tell.are_there() {
            false => Attention::None,
            true if wanted => Attention::Within(self.soon_ns(&state)),
            // They wait for callbacks.
            true => Attention::AtTick,
        };
        engine.max(tasks)
    }

    /// In how many nanoseconds the worker is to check a domain again whose tasks wait for a grace
    /// period.
    fn soon_ns(&self, state: &State) -> u64 {
        // The present driver may leave before the grace period that the tasks wait for ends. If no
        // thread drives, a registered reader that leaves does not tell the worker.
        let least_ns = if state.driven || self.counted.is_none() { BUSY_NS } else { 0 };
        state.put_off_until_ns.saturating_sub(clock::monotonic_ns()).max(least_ns)
    }

    /// How urgently the grace period in progress or a later one is wanted; `None` if another thread
    /// holds the lock.
    pub(crate) fn urgency(&self) -> Option<Urgency> {
        Some(sync::try_lock(&self.state)?.machine.urgency())
    }

    // ---- across a `fork` ----------------------------------------------------------------------

    /// Before a `fork`: has the locks taken.
    pub(crate) fn hold(&'static self, held: &mut Held) {
        held.add(Rank::GracePeriods, &self.state);
        held.add(Rank::Registry, &self.registry);
    }

    /// In the child: only `owner`'s readers are left, no thread drives and none sleeps.
    pub(crate) fn after_fork(&self, owner: usize) {
        let state = &mut *sync::lock(&self.state);
        sync::lock(&self.registry).keep_only(owner);
        self.gp_words.wake.0.left.store(0, Relaxed);
        if let Some(words) = self.gp_words.liburcu_words() {
            words.futex.store(0, Relaxed);
        }
        state.driven = false;
        state.begun = None; // the grace period starts again from its fence
        self.end_term(state);
        state.sleepers = 0;
        state.machine.observe(Event::Abandoned).expect("fits every step");
        self.tasks_forgotten.store(state.sleepers_to_tell.forget(), Relaxed);
        self.tasks.store(0, Relaxed);
    }
}
