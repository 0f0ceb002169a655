//! The core of a domain: the driver of its grace-period machine.
//!
//! Whoever wants a grace period takes the lock of the machine, requests, and, if nobody drives the
//! machine at that moment, becomes its *driver*: it carries out the machine's actions and reports
//! back, until its own cookie is done. Everybody else sleeps until then; so concurrent updaters
//! share grace periods. The lock is released while the driver fences, scans or sleeps.
//!
//! A driver may also stop half-way ([`Core::advance`]): the machine remembers the step, and whoever
//! comes next goes on from there. One that gets no CPU is superseded by a waiter ([`handover`]).
//!
//! Lock order, outer first: worker, domains, queues, queue, machine, registry.

#[cfg(not(loom))]
use std::borrow::Cow;
#[cfg(not(loom))]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use grace::policy::{AnyPolicy, Budget};
#[cfg(not(loom))]
use grace::two_bank::Adaptive;
use grace::{Action, Event, Hint, Machine, NotGiven, Number, Sequence, Start, Urgency, word};

use self::handover::{Away, Conduct, Patience};
use self::protocol::Protocol;
use self::sleepers::Sleepers;

#[cfg(not(loom))]
use crate::call_rcu::lane::Lanes;
use crate::chaos::{self, Mutant, Point};
use crate::event::statistics::{Counters, Current};
use crate::event::trace;
use crate::gp::engine::Settings;
use crate::gp::registry::Registry;
use crate::gp::relay::Relay;
use crate::gp::slot::{Slot, Sort};
use crate::gp::stall::Watch;
use crate::gp::tuning;
#[cfg(not(loom))]
use crate::os::stack::Alternate;
use crate::os::sync::{
    self, AtomicBool, AtomicU32, AtomicU64, Condvar, Mutex, MutexGuard, const_unless_loom,
};
use crate::os::{fence, futex};
use crate::reclaim::limit::Charge;
use crate::reclaim::queue::Queues;
#[cfg(not(loom))]
use crate::srcu::Banks;

#[cfg(not(loom))]
mod banks;
pub(crate) mod foreign;
mod handover;
pub(crate) mod protocol;
pub(crate) mod sleepers;
mod watch;

/// Keeps what readers load away from what updaters store.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

/// Everything that is shared in a domain.
pub struct Core {
    /// What readers copy into their words; liburcu's `gp.ctr`.
    pub(crate) gp: Line<AtomicU64>,
    /// How many hold-outs the sleeping driver still waits for.
    wake: Line<AtomicU32>,
    state: Mutex<State>,
    /// Which driver is the current one, or was the last; see [`handover`].
    term: AtomicU64,
    /// Tells those who wait for the driver that a grace period has ended or the driver has left.
    turn: Condvar,
    /// How many tasks wait, for a look without the lock.
    tasks: AtomicU64,
    /// The machine's sequence, for those who only want to look.
    completed: AtomicU64,
    registry: Mutex<Registry>,
    pub(crate) queues: Queues,
    #[cfg(not(loom))]
    pub(crate) lanes: Lanes,
    pub(crate) charge: Line<Charge>,
    pub(crate) tuning: tuning::Kept,
    /// Whether `os::fork` knows of this domain.
    pub(crate) known: AtomicBool,
    /// What cookies know a domain by that may end; 0 in one that lives for ever. See
    /// [`identity`](Self::identity).
    pub(crate) number: usize,
    /// The name that the domain is declared by; see [`label`](Self::label).
    declared_name: Option<&'static str>,
    /// The name that it was given when it was made.
    pub(crate) given_name: Option<String>,
    /// What is counted by [`trace`].
    pub(crate) counters: Counters,
    /// Whether the grace period that began last found no other reader. For the size of batches.
    pub(crate) alone: AtomicBool,
    /// Heavy fences executed.
    pub(crate) fences: AtomicU64,
    /// Times that a driver went to sleep for hold-outs.
    pub(crate) sleeps: AtomicU64,
    /// Processor time that the worker has spent on grace periods here.
    pub(crate) worker_ns: AtomicU64,
    /// The worker's share of a processor, where it has one.
    pub(crate) budget: Option<Budget>,
    /// Until when the worker leaves grace periods here alone, as far as the budget goes, as
    /// `clock::monotonic_ns`. Kept here, not by the worker, which forgets domains that want nothing.
    pub(crate) rests_until_ns: AtomicU64,
    /// What the worker is to do while a grace period is wanted here.
    when_wanted: Attention,
    /// Where its readers are foreign: their words, and how they read.
    pub(crate) foreign: Option<foreign::Links>,
    /// Those of a sleepable domain. Given back after `queues` have run what is left, which may look at them.
    #[cfg(not(loom))]
    banks: Option<OwnBanks>,
}

/// Banks that a domain gives back when it ends.
#[cfg(not(loom))]
struct OwnBanks(std::ptr::NonNull<Banks>);

// SAFETY: banks may be used and given back by any thread.
#[cfg(not(loom))]
unsafe impl Send for OwnBanks {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl Sync for OwnBanks {}

#[cfg(not(loom))]
impl OwnBanks {
    fn get(&self) -> &Banks {
        // SAFETY: its own, until it is dropped.
        unsafe { self.0.as_ref() }
    }
}

#[cfg(not(loom))]
impl Drop for OwnBanks {
    fn drop(&mut self) {
        // SAFETY: its own; the domain ends, so there are no guards.
        unsafe { Banks::give_back(self.0) };
    }
}

// Not derived: it would look into the slots' cells, which belong to other threads.
impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("completed", &self.completed).finish_non_exhaustive()
    }
}

/// The machine and who drives it.
#[derive(Debug)]
pub(crate) struct State {
    protocol: Protocol,
    /// What is known of the grace period in progress.
    current: Current,
    /// What has been told of it.
    watch: Watch,
    /// Times that a driver has gone to sleep for its hold-outs.
    pauses: u32,
    driven: bool,
    /// What the driver is at.
    conduct: Conduct,
    /// Threads that wait for the driver.
    sleepers: usize,
    /// Tasks that wait.
    sleepers_to_tell: Sleepers,
}

/// How far a driver goes.
#[derive(Clone, Copy, Debug)]
enum Until {
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
struct Driver {
    /// Its number [HO-1].
    term: u64,
    /// Whether it has taken another one's place.
    took_over: bool,
    until: Until,
    me: Me,
}

/// The calling thread, as far as a driver must know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    /// How many of the registered readers are this thread's, all of them quiescent; else 0.
    pub(crate) quiescent_slots: usize,
}

impl Me {
    /// A thread that has no reader here.
    pub(crate) const NOBODY: Self = Self { quiescent_slots: 0 };
}

impl Core {
    const_unless_loom! {
        /// A domain without readers.
        pub(crate) fn new(start: Start, settings: Settings) -> Self {
            Self {
                gp: Line(AtomicU64::new(word::entered(start.number))),
                wake: Line(AtomicU32::new(0)),
                state: Mutex::new(State {
                    protocol: Protocol::Threads(Machine::new(settings.policy, start)),
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
                completed: AtomicU64::new(start.sequence.to_bits()),
                registry: Mutex::new(Registry::new(match settings.policy {
                    AnyPolicy::Token(_) => Some(Relay::new()),
                    _ => None,
                })),
                queues: Queues::new(),
                #[cfg(not(loom))]
                lanes: Lanes::new(),
                charge: Line(Charge::new()),
                tuning: tuning::Kept::new(),
                known: AtomicBool::new(false),
                number: 0,
                declared_name: None,
                given_name: None,
                counters: Counters::new(),
                alone: AtomicBool::new(false),
                fences: AtomicU64::new(0),
                sleeps: AtomicU64::new(0),
                worker_ns: AtomicU64::new(0),
                budget: settings.budget,
                rests_until_ns: AtomicU64::new(0),
                when_wanted: match settings.policy {
                    // Callbacks ask for it, and they are looked after anyway; or whoever waits sees to
                    // it.
                    AnyPolicy::Adaptive(_) => Attention::None,
                    AnyPolicy::Poll(_) => Attention::AtOnce,
                    AnyPolicy::Tick(_) | AnyPolicy::Token(_) => Attention::AtTick,
                },
                foreign: None,
                #[cfg(not(loom))]
                banks: None,
            }
        }
    }

    /// A domain that lives for ever and is known by a name.
    #[cfg(not(loom))]
    pub(crate) const fn declared(name: &'static str) -> Self {
        let mut core = Self::new(Start::ZERO, Settings::DEFAULT);
        core.declared_name = Some(name);
        core
    }

    /// The same for foreign readers.
    #[cfg(not(loom))]
    pub(crate) const fn foreign(name: &'static str, readers: foreign::Readers) -> Self {
        let mut core = Self::new(Start::ZERO, Settings::DEFAULT);
        core.declared_name = Some(name);
        core.tuning = tuning::Kept::foreign();
        let links = Some(foreign::Links::new(readers));
        // Not dropped here, which a constant may not do: it is `None`.
        std::mem::forget(std::mem::replace(&mut core.foreign, links));
        core
    }

    /// A sleepable domain, which is to be given its banks.
    #[cfg(not(loom))]
    pub(crate) fn sleepable(name: Option<&'static str>, delay: Adaptive) -> Self {
        let mut core = Self::new(Start::ZERO, Settings::DEFAULT);
        let state = core.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.protocol = Protocol::TwoBank(protocol::TwoBank::new(delay));
        core.declared_name = name;
        core.number = Self::next_number();
        core
    }

    /// A number for a domain that may end. An address would not do to know it by: it is used again once the domain has
    /// ended. Odd: see [`identity`](Self::identity).
    #[cfg(not(loom))]
    pub(crate) fn next_number() -> usize {
        static NUMBERS: AtomicUsize = AtomicUsize::new(1);
        // Relaxed: a number of its own is all that is wanted. Where a word has 32 bits a program may come to the end.
        let next = NUMBERS.fetch_update(Relaxed, Relaxed, |number| number.checked_add(2));
        next.expect("quiescence: there are no more numbers for domains")
    }

    /// What people know the domain by: its name, or else its number among those made at run time.
    #[cfg(not(loom))]
    pub(crate) fn label(&self) -> Cow<'_, str> {
        match (self.declared_name, &self.given_name) {
            (Some(name), _) => name.into(),
            (None, Some(name)) => name.into(),
            // The numbers are odd; see `identity`.
            (None, None) => format!("#{}", self.number.div_ceil(2)).into(),
        }
    }

    /// A number that no other domain has, had or will have.
    #[cfg(not(loom))]
    pub(crate) fn identity(&self) -> usize {
        // The numbers are odd and the addresses, by the alignment, are not.
        if self.number != 0 { self.number } else { std::ptr::from_ref(self).addr() }
    }

    /// Where the events of this domain happen.
    pub(crate) fn source(&self) -> trace::Source<'_> {
        #[cfg(not(loom))]
        let identity = self.identity();
        #[cfg(loom)]
        let identity = 0;
        trace::Source { identity, counters: &self.counters }
    }

    // ---- readers ------------------------------------------------------------------------------

    /// Enters a reader of the calling thread.
    pub(crate) fn register(&self, owner: usize, sort: Sort) -> &Slot {
        fence::chosen(); // before the first reader, never after
        #[cfg(not(loom))]
        let alternate = Alternate::of_this_thread(); // a system call: before the lock
        let mut registry = sync::lock(&self.registry);
        let slot = registry.register(self, owner, sort);
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
    pub(crate) unsafe fn register_at(&self, slot: *const Slot, owner: usize, sort: Sort) {
        fence::chosen();
        let alternate = Alternate::of_this_thread();
        let mut registry = self.registry_with_room();
        // SAFETY: by the contract.
        unsafe { registry.register_at(slot, self, owner, sort) };
        // SAFETY: by the contract.
        unsafe { &*slot }.set_alternate(alternate);
        drop(registry);
        fence::full(); // as in `register` [GP-5]
    }

    /// Takes out a reader of the calling thread, which is in no section.
    pub(crate) fn unregister(&self, slot: &Slot) {
        chaos::point(Point::BeforeUnregister);
        debug_assert!(slot.is_quiescent());
        // Whoever scans later takes the same lock: the sections of this reader happened before
        // [GP-5].
        sync::lock(&self.registry).unregister(slot);
        chaos::point(Point::Unregistered);
        match self.foreign_words() {
            Some(words) if slot.is_foreign() => words.wake(),
            _ => slot.report_quiescent(),
        }
    }

    /// How many threads wait for grace periods now, the driver included.
    #[cfg(not(loom))]
    pub(crate) fn waiters(&self) -> usize {
        let state = sync::lock(&self.state);
        state.sleepers + usize::from(state.driven)
    }

    /// Who reads here. Locked for a look, never for a wait.
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        sync::lock(&self.registry)
    }

    /// The number that readers record now.
    pub(crate) fn announced(&self) -> Number {
        // Relaxed: it is only told, or compared under the registry's lock.
        word::number(self.gp.0.load(Relaxed))
    }

    /// Whether its sections are no thread's.
    #[cfg(not(loom))]
    pub(crate) fn is_sleepable(&self) -> bool {
        self.banks.is_some()
    }

    /// How many readers are registered; in a sleepable domain, how many sections are in progress.
    pub(crate) fn readers(&self) -> usize {
        #[cfg(not(loom))]
        if let Some(banks) = &self.banks {
            return usize::try_from(banks.get().sections()).unwrap_or(usize::MAX);
        }
        sync::lock(&self.registry).len()
    }

    /// Calls `f` with the machine, its grace period in progress, the readers and the number that was announced
    /// last: no grace period takes a step meanwhile, and no reader comes or goes.
    #[cfg(not(loom))]
    pub(crate) fn stand_still<R>(
        &self,
        f: impl FnOnce(&Protocol, &Current, &Registry, Number) -> R,
    ) -> R {
        let state = sync::lock(&self.state);
        let registry = sync::lock(&self.registry);
        f(&state.protocol, &state.current, &registry, word::number(self.gp.0.load(Relaxed)))
    }

    /// A hold-out that was marked has left its section.
    pub(crate) fn holdout_left(&self) {
        if let Some(words) = self.foreign_words() {
            return words.wake();
        }
        // AcqRel: the decrements form one chain, so that the last one carries what all hold-outs did
        // to the sleeper [GP-7].
        if self.wake.0.fetch_sub(1, AcqRel) == 1 {
            futex::wake_all(&self.wake.0);
        }
    }

    // ---- requests -----------------------------------------------------------------------------

    /// Asks for a full grace period from now on; somebody must drive it.
    pub(crate) fn request(&self, urgency: Urgency) -> grace::Cookie {
        self.request_locked(&mut sync::lock(&self.state), urgency)
    }

    /// The lock orders the caller's update before the fence of the grace period that will serve it
    /// [GP-9].
    fn request_locked(&self, state: &mut State, urgency: Urgency) -> grace::Cookie {
        let cookie = state.protocol.snapshot();
        self.require_locked(state, cookie, urgency).expect("a snapshot of now is the machine's");
        if chaos::mutant(Mutant::EarlyCookie) && state.protocol.sequence().in_progress() {
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

    /// Whether a cookie is one that this domain can have given; [`Sequence::has_given`] argues why none that is can be
    /// far ahead. Takes the machine's lock for a moment, unless the cookie is done.
    #[cfg(not(loom))]
    pub(crate) fn has_given(&self, cookie: grace::Cookie) -> bool {
        self.sequence().is_done(cookie) || sync::lock(&self.state).protocol.has_given(cookie)
    }

    /// The cookie of a full grace period from now on, without asking for it.
    pub(crate) fn snapshot(&self) -> grace::Cookie {
        sync::lock(&self.state).protocol.snapshot() // [GP-9]
    }

    /// The same without the lock, for a caller whose last step was the atomic exchange that unlinked an object.
    ///
    /// The exchange is followed by a full fence, and then by the load of `completed`. If the load finds no grace
    /// period in progress, then the next one's begin is stored later, and its fence comes after the exchange
    /// [UL-1]. If it finds one in progress, that one ends, with Release, before the next one begins.
    pub(crate) fn snapshot_after_unlinking(&self) -> grace::Cookie {
        if !chaos::mutant(Mutant::NoUnlinkFence) {
            fence::full_after_locked(); // [UL-1]
        }
        // Relaxed: the fences order it [UL-1]; nothing is freed because of it.
        Sequence::from_bits(self.completed.load(Relaxed)).snapshot()
    }

    /// Shows those who take no lock that a grace period is in progress, before its first fence [UL-1]. Under the
    /// machine's lock.
    fn show_begin(&self, sequence: Sequence) {
        if !chaos::mutant(Mutant::UnseenBegin) {
            // Its order against the fence of the grace period is [UL-1]. Release: whoever loads this value takes the
            // grace periods before as ended, as in `complete` [GP-4].
            self.completed.store(sequence.to_bits(), chaos::release_unless(Mutant::RelaxedBegin));
        }
    }

    /// The sequence as last made visible.
    pub(crate) fn sequence(&self) -> Sequence {
        // Acquire: pairs with the Release in `complete` [GP-4]; whoever sees the grace period ended
        // may free what its hold-outs could see.
        Sequence::from_bits(self.completed.load(Acquire))
    }

    /// Waits for a full grace period. The caller is in no section of this domain.
    pub(crate) fn synchronize(&self, urgency: Urgency, me: Me) {
        let mut state = sync::lock(&self.state);
        let cookie = self.request_locked(&mut state, urgency);
        self.wait_locked(state, cookie, me, Patience::NEW);
        self.unlocked_again();
    }

    /// Waits until `cookie` is done, driving the machine if nobody does.
    ///
    /// # Panics
    /// If the cookie is not this domain's: it might never be done.
    pub(crate) fn wait(&self, cookie: grace::Cookie, urgency: Urgency, me: Me) {
        let mut state = sync::lock(&self.state);
        if let Err(not_given) = self.require_locked(&mut state, cookie, urgency) {
            drop(state);
            panic!("quiescence: {not_given}");
        }
        self.wait_locked(state, cookie, me, Patience::NEW);
        self.unlocked_again();
    }

    /// What is to be done where none of our locks is held.
    fn unlocked_again(&self) {
        trace::deliver();
        #[cfg(not(loom))]
        (crate::HOOKS.unlocked)();
    }

    /// As [`synchronize`](Self::synchronize), for a caller that takes the place of drivers at work up to so many times,
    /// wherever it finds them.
    #[cfg(loom)]
    pub(crate) fn synchronize_impatiently(&self, me: Me, take_overs: u32) {
        let mut state = sync::lock(&self.state);
        let cookie = self.request_locked(&mut state, Urgency::Normal);
        self.wait_locked(state, cookie, me, Patience::none(take_overs));
    }

    fn wait_locked<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        cookie: grace::Cookie,
        me: Me,
        mut patience: Patience,
    ) {
        let until = Until::Done(cookie);
        while !state.protocol.sequence().is_done(cookie) {
            let driver;
            if state.driven {
                if chaos::mutant(Mutant::NoSharing) {
                    return;
                }
                (state, driver) = self.await_turn(state, &mut patience, (until, me), None);
            } else {
                driver = Some(self.begin_term(until, me));
            }
            if let Some(driver) = driver {
                state = self.drive(state, driver);
            }
        }
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
            drop(self.drive(state, driver));
            self.unlocked_again();
        }
    }

    /// What the worker still has to do here, callbacks aside. Takes a lock, but for the default engine while no task
    /// waits.
    #[cfg(not(loom))]
    pub(crate) fn attention(&self) -> Attention {
        if !self.has_sleepers() && (self.banks.is_some() || self.when_wanted == Attention::None) {
            return Attention::None;
        }
        let state = sync::lock(&self.state);
        let wanted = state.protocol.is_wanted() && self.banks.is_none();
        let engine = if wanted { self.when_wanted } else { Attention::None };
        let tasks = match state.soon_ns() {
            Some(ns) => Attention::Within(ns),
            // They wait for callbacks.
            None if state.sleepers_to_tell.are_there() => Attention::AtTick,
            None => Attention::None,
        };
        engine.max(tasks)
    }

    /// How much somebody wants the grace period in progress or a later one.
    #[cfg(not(loom))]
    pub(crate) fn urgency(&self) -> Urgency {
        sync::lock(&self.state).protocol.urgency()
    }

    // ---- the driver ---------------------------------------------------------------------------

    /// Carries out the machine's actions, until there is nothing left for this driver to do.
    fn drive<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        driver: Driver,
    ) -> MutexGuard<'a, State> {
        state.driven = true;
        let driven = match &state.protocol {
            Protocol::Threads(_) => self.drive_threads(state, driver),
            #[cfg(not(loom))]
            Protocol::TwoBank(_) => self.drive_banks(state, driver),
        };
        state = match driven {
            Ok(state) => state,
            // Another driver is at work, or was: it is none of its business any more.
            Err(mut superseded) => {
                let left = superseded.conduct.superseded.saturating_sub(1);
                superseded.conduct.superseded = left; // a fork forgets them
                return superseded;
            }
        };
        state.driven = false;
        // Somebody may wait for a later grace period than this driver did.
        if state.sleepers != 0 {
            self.turn.notify_all();
        }
        self.tell_those_due(state)
    }

    /// The same, where registered threads are waited for.
    fn drive_threads<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mut driver: Driver,
    ) -> Result<MutexGuard<'a, State>, MutexGuard<'a, State>> {
        let Driver { until, me, .. } = driver;
        let mut looked = false;
        let mut tick = matches!(until, Until::MustWait { tick: true });
        loop {
            let took_over = std::mem::take(&mut driver.took_over);
            let event = match state.threads().poll() {
                Action::Idle => break,
                Action::Fence => {
                    self.show_begin(state.protocol.sequence());
                    let needed = self.fence_needed(me);
                    self.alone.store(needed.is_none(), Relaxed);
                    if !took_over {
                        self.begin(&mut state, needed);
                    }
                    match needed {
                        None => Event::Alone,
                        Some(fence) => {
                            let fence = || self.fence(fence);
                            state = self.away(state, &driver, Away::WORKS, fence)?;
                            Event::Fenced
                        }
                    }
                }
                Action::Announce(number) => {
                    self.announce(number);
                    Event::Announced
                }
                Action::Scan(number) => {
                    let mut holdouts = 0;
                    let scan = || holdouts = self.scan(number, &driver);
                    state = self.away(state, &driver, Away::WORKS, scan)?;
                    looked = true;
                    state.watch.holdouts = holdouts;
                    Event::Scanned { holdouts }
                }
                Action::Wait(hint) => {
                    let urgency = state.protocol.urgency();
                    state.current.must_wait(urgency);
                    match until {
                        // The driver before has waited; what for may have come.
                        Until::Done(_) if took_over => {}
                        Until::Done(_) => state = self.pause(state, &driver, hint)?,
                        // The tick that it waits for is this one.
                        Until::MustWait { .. } if hint == Hint::Tick && tick => tick = false,
                        // Whoever comes next looks again: the machine stays at this step.
                        Until::MustWait { .. } if hint == Hint::Tick || looked => {
                            state = self.still_drives(self.watched(state).0, &driver)?;
                            break;
                        }
                        Until::MustWait { .. } => {}
                    }
                    Event::Woken
                }
                Action::Complete(sequence) => {
                    self.complete(&mut state, sequence);
                    Event::Completed
                }
            };
            state.threads().observe(event).expect("each action is answered by its own event");
            if let Event::Completed = event {
                let to_tell = state.sleepers_to_tell.are_due();
                if to_tell || until.is_reached(state.protocol.sequence()) {
                    break;
                }
                // At most one grace period in a hold of the lock, also where none has to wait for anything.
                state = self.away(state, &driver, Away::WORKS, || ())?;
            }
        }
        Ok(state)
    }

    /// Does something that takes time without the machine's lock.
    fn unlocked<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        f: impl FnOnce(),
    ) -> MutexGuard<'a, State> {
        drop(state);
        f();
        sync::lock(&self.state)
    }

    /// Which fence the readers ask for; none if there is no reader but the calling thread's own
    /// quiescent ones. Whoever registers later sees what was published before [GP-5].
    fn fence_needed(&self, me: Me) -> Option<Needed> {
        let registry = sync::lock(&self.registry);
        if registry.len() <= me.quiescent_slots || chaos::mutant(Mutant::AlwaysAlone) {
            if !chaos::mutant(Mutant::NoFenceAlone) {
                // This grace period has no other fence; the calling thread may be a reader later [UL-1].
                fence::full_after_locked();
            }
            None
        } else if registry.needs_heavy_fence() {
            Some(Needed::Heavy)
        } else {
            Some(Needed::Full)
        }
    }

    /// Notes that a grace period begins. Only where a heavy fence follows is the clock looked at now: else it
    /// would take longer than the grace period, if there are no hold-outs.
    fn begin(&self, state: &mut State, needed: Option<Needed>) {
        let urgency = state.protocol.urgency();
        state.watch = Watch::NEW;
        state.pauses = 0;
        state.current = Current::beginning(urgency, matches!(needed, Some(Needed::Heavy)));
        trace::grace_period_began(self.source(), state.protocol.sequence(), urgency);
    }

    /// Orders what was unlinked before against what sections load after.
    fn fence(&self, needed: Needed) {
        match needed {
            Needed::Heavy => self.heavy_fence(), // [GP-1]
            // Pairs with the full fence of a QSBR reader that comes online [GP-8].
            Needed::Full => fence::full(),
        }
        chaos::point(Point::Fenced);
    }

    fn heavy_fence(&self) {
        #[cfg(loom)]
        fence::heavy(sync::lock(&self.registry).fences());
        #[cfg(not(loom))]
        fence::heavy(std::iter::empty());
        // Relaxed: a statistic.
        self.fences.fetch_add(1, Relaxed);
    }

    /// Shows readers the number of this grace period.
    fn announce(&self, number: Number) {
        sync::lock(&self.registry).link(&self.gp.0);
        // Release: pairs with the Acquire in `Slot::enter_outermost`, `renew` and `online` [GP-3]:
        // whoever records this number sees what was published before the fence.
        self.gp.0.store(word::entered(number), Release);
        self.announce_to_foreign(word::entered(number));
        chaos::point(Point::Announced);
    }

    /// Counts the hold-outs. The locks and the Acquire loads order their sections before what
    /// follows [GP-2].
    fn scan(&self, number: Number, driver: &Driver) -> usize {
        // What a superseded driver would count is of no interest.
        let Some(mut registry) = self.registry_as(driver) else { return 0 };
        let holdouts = registry.scan(number, &self.gp.0);
        drop(registry);
        if self.foreign.is_some() && holdouts == 0 && !cfg!(target_arch = "x86_64") {
            // Readers that were compiled long ago may release nothing when they lock [GP-2].
            self.heavy_fence();
        }
        holdouts
    }

    /// Looks away for a moment, or sleeps until the last hold-out has left or the tick comes.
    fn pause<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        driver: &Driver,
        hint: Hint,
    ) -> Result<MutexGuard<'a, State>, MutexGuard<'a, State>> {
        match hint {
            Hint::Again => self.away(state, driver, Away::WORKS, sync::relax),
            Hint::Sleep => {
                let before = state.pauses;
                state.pauses = before.saturating_add(1);
                match &self.foreign {
                    None => {
                        let asleep = Away::sleeps(Duration::ZERO);
                        self.away(state, driver, asleep, || self.sleep(driver))
                    }
                    Some(links) => self.sleep_beside_foreign(state, driver, links, before),
                }
            }
            Hint::Tick => {
                let state = self.still_drives(self.watched(state).0, driver)?;
                self.away(state, driver, Away::naps(sync::TICK), sync::tick)
            }
        }
    }

    /// Marks the hold-outs and sleeps until each of them has left the section it was in.
    ///
    /// A reader that leaves stores its word, passes a light fence and loads its mark; the sleeper
    /// stores the mark, executes a heavy fence and loads the word. One of them sees the other's store
    /// [GP-6], so either the reader reports or the sleeper does it in its stead, and exactly one of
    /// them does: who takes the mark away.
    fn sleep(&self, driver: &Driver) {
        chaos::point(Point::BeforeMark);
        let Some(mut registry) = self.registry_as(driver) else { return };
        // Relaxed: nobody decrements for these before it has found a mark, and the lock and the heavy
        // fence come between. Those who took a mark of a superseded driver's may still have to [HO-2].
        self.wake.0.fetch_add(registry.holdouts().count() as u32, Relaxed);
        registry.mark_holdouts();
        drop(registry);
        self.heavy_fence(); // [GP-6]
        chaos::point(Point::Marked);
        let Some(mut registry) = self.registry_as(driver) else { return };
        let number = word::number(self.gp.0.load(Relaxed)); // the driver's own store
        for slot in registry.holdouts().filter(|slot| !slot.is_holdout(number)) {
            if !chaos::mutant(Mutant::NoSecondLook) && slot.clear_waited_for() {
                self.holdout_left();
            }
        }
        registry.set_marked();
        drop(registry);
        self.sleeps.fetch_add(1, Relaxed);
        loop {
            // Acquire: pairs with the decrements [GP-7].
            match self.wake.0.load(Acquire) {
                0 => break,
                // Whoever took over has woken this one, and perhaps gone to sleep in its place.
                _ if self.is_superseded(driver) => break,
                left => _ = futex::wait(&self.wake.0, left, self.watched_asleep()),
            }
        }
    }

    /// Makes the end of a grace period visible.
    fn complete(&self, state: &mut State, sequence: Sequence) {
        // Release: pairs with the Acquire in `sequence` [GP-4].
        self.completed.store(sequence.to_bits(), Release);
        if state.sleepers != 0 {
            self.turn.notify_all();
        }
        self.note_end_to_sleepers(state, sequence);
        let current = state.current;
        trace::grace_period_ended(self.source(), sequence, current.latency_ns(), current.expedited);
    }
}

/// What a domain wants of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attention {
    /// Nothing.
    None,
    /// A look at the next tick.
    AtTick,
    /// A look so many nanoseconds from now.
    Within(u64),
    /// Another look without pause.
    AtOnce,
}

/// A fence that the registered readers ask for.
#[derive(Clone, Copy, Debug)]
enum Needed {
    /// Some reader has light fences only.
    Heavy,
    /// All are QSBR readers, which execute a full fence where they come online.
    Full,
}

impl State {
    /// # Panics
    /// If it is a sleepable domain.
    fn threads(&mut self) -> &mut Machine<AnyPolicy> {
        match &mut self.protocol {
            Protocol::Threads(machine) => machine,
            #[cfg(not(loom))]
            Protocol::TwoBank(_) => unreachable!("drive() tells them apart"),
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // First: what is run below may use the library, and finds no trace of a domain that ends.
        #[cfg(not(loom))]
        if *self.known.get_mut() {
            crate::gp::domains::forget(self);
            crate::reclaim::worker::forget(self);
            crate::reclaim::local::ended(self);
        }
        // No task waits any more: each has a handle.
        self.queues.run_all(self);
    }
}

impl Until {
    fn is_reached(self, sequence: Sequence) -> bool {
        match self {
            Self::Done(cookie) => sequence.is_done(cookie),
            Self::MustWait { .. } => true,
        }
    }
}

/// What is held across a `fork`, so that the child finds everything whole.
#[cfg(not(loom))]
pub(crate) struct Held<'a> {
    state: MutexGuard<'a, State>,
    registry: MutexGuard<'a, Registry>,
}

#[cfg(not(loom))]
impl Core {
    /// Before a `fork`.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held { state: sync::lock(&self.state), registry: sync::lock(&self.registry) }
    }

    /// In the child: only `owner`'s readers are left, nobody drives and nobody sleeps.
    pub(crate) fn after_fork(&self, held: &mut Held<'_>, owner: usize) {
        self.queues.announced.store(false, Relaxed);
        held.registry.keep_only(owner);
        self.wake.0.store(0, Relaxed);
        if let Some(words) = self.foreign_words() {
            words.futex.store(0, Relaxed);
        }
        held.state.driven = false;
        self.end_term(&mut held.state);
        held.state.sleepers = 0;
        held.state.protocol.abandon();
        held.state.sleepers_to_tell.forget();
        self.tasks.store(0, Relaxed);
    }
}
