//! The steps of a grace period: all that decides that one has begun, and that it has ended.
//!
//! What a driver does with a domain's machine it does here, a step at a time ([`Locked::step`]): it
//! fences, announces, scans, completes. The files around this one say when: who drives, who waits,
//! for how long, and who is told.
//!
//! **Whatever those files do, no grace period ends early**, unless they break the rules below that
//! no type enforces. The machine, the registry, the number that `completed` shows and the numbers
//! of terms are private here, and a step is carried out as a whole: the scan and the report of what
//! it found are one function. So other files can take a step too often or too late, ask for grace
//! periods that nobody wants, wake threads for nothing or leave them asleep. They cannot report a
//! fence, a scan or an end that did not happen.
//! - [`Locked`] is the only way to the machine. It knows whose it is, so no machine is driven with
//!   the readers of another domain.
//! - A [`Driver`] is made by [`Locked::begin_term`] or by [`Locked::take_over`], which end the term
//!   of the one before, and cannot be copied: what a superseded driver has found is discarded
//!   [HO-1]. No other file can give it another's term. It stays on its thread, whose readers [`Me`]
//!   names.
//! - [`Readers`], the locked registry, is given out to be read. That suffices to set and clear
//!   marks in slots; but these only decide who wakes the driver, and each driver that was woken
//!   scans again.
//!
//! The rules that no type enforces: only [`GracePeriods::announce`] stores into `gp_words.gp`. Only
//! its owner writes a slot's word, by the functions of [`crate::gp::slot`] and `gp/qsbr.rs`; the
//! owner registers it under its own token, and unregisters it outside its sections. These functions
//! are safe, though a thread that calls them for another one's slot ends a section that is in
//! progress. The sections of a sleepable domain are counted, and `srcu/driver.rs` has to wait for
//! them before it calls [`Locked::end_counted`] [SR-3]; it has to call [`Locked::begin`] and
//! [`Locked::show_begin`] before it reads the counts. These two only record and show what the
//! machine says: the former is in `watch.rs`.

mod liburcu;

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use grace::driver::{Needed, fence_needed};
use grace::policy::AnyPolicy;
use grace::{Action, Cookie, Event, Machine, Number, Sequence, Start, Urgency, word};

use super::patience::{Away, Patience};
use super::{Attention, Counted, State, Until};
use crate::gp::engine::Settings;
use crate::gp::observers::Observers;
use crate::gp::registry::Registry;
use crate::gp::relay::Relay;
use crate::gp::slot::{GpWords, ReaderKind, Slot};
use crate::gp::tuning::{AtomicTuning, Kind};
use crate::os::fence;
use crate::os::forking::{self, AtFork, Wanted};
use crate::os::sync::{
    self, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Rank, const_unless_loom,
};

/// The grace-period state of a domain. The rest is in [`DomainState`], which is dropped first.
///
/// [`DomainState`]: crate::reclaim::domain_state::DomainState
// C layout, so that `gp_words` comes first: see `of`.
#[repr(C)]
pub(crate) struct GracePeriods {
    pub(crate) gp_words: GpWords,
    steps: Mutex<Steps>,
    /// The number of the current term, or of the last one; see [`super::handover`].
    term: AtomicU64,
    /// The machine's sequence, to be read without the lock.
    completed: AtomicU64,
    registry: Mutex<Registry>,
    /// Whether the last grace period to begin found no other reader: a hint, also for batch sizes.
    pub(crate) alone: AtomicBool,
    /// If hazard pointers protect the objects that wait here: then a grace period is a heavy fence,
    /// and this scan of the hazard slots afterwards finds the protected ones. (A program without
    /// such a domain does not link it.)
    pub(crate) hazards: Option<fn() -> Vec<usize>>,
    /// The readers of a sleepable domain.
    pub(super) counted: Option<Box<dyn Counted>>,
    /// Notified when a grace period has ended, the driver has left, or its nap must end.
    pub(super) turn: Condvar,
    /// How many tasks wait, to be read without the lock.
    pub(super) tasks: AtomicU64,
    /// The highest number of the tasks that a child process has forgotten.
    pub(super) tasks_forgotten: AtomicU64,
    pub(crate) tuning: AtomicTuning,
    pub(crate) observers: Observers,
    /// What the worker is to do while a grace period is wanted here.
    pub(super) when_wanted: Attention,
}

/// What the lock of the machine guards.
#[derive(Debug)]
struct Steps {
    machine: Machine<AnyPolicy>,
    /// What drivers and waiters know of each other.
    state: State,
}

impl AtFork for Steps {}
impl AtFork for Registry {}

/// A domain whose machine is locked. Drivers pass it on by reference: moved, it is copied through
/// memory, piece by piece.
pub(crate) struct Locked<'a> {
    domain: &'a GracePeriods,
    /// `None` while [`unlocked`](Self::unlocked) or [`wait`](Self::wait) has released it.
    steps: Option<MutexGuard<'a, Steps>>,
}

impl Locked<'_> {
    #[inline]
    fn steps(&self) -> &Steps {
        self.steps.as_ref().expect("locked")
    }

    #[inline]
    fn steps_mut(&mut self) -> &mut Steps {
        self.steps.as_mut().expect("locked")
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.steps().state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.steps_mut().state
    }
}

/// The registry, locked, to be read.
pub(crate) struct Readers<'a>(MutexGuard<'a, Registry>);

impl Deref for Readers<'_> {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.0
    }
}

/// A driver in its term.
#[derive(Debug)]
pub(crate) struct Driver {
    /// The number of the term [HO-1].
    term: u64,
    /// The address of its domain.
    domain: usize,
    /// Whether it has superseded another driver.
    pub(super) took_over: bool,
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
    owner: usize,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl Me {
    /// A thread that has no reader here.
    pub(crate) const NOBODY: Self = Self { owner: 0, _stays_on_its_thread: PhantomData };

    pub(crate) fn this_thread() -> Self {
        Self { owner: crate::os::thread::token(), ..Self::NOBODY }
    }

    /// To the system all of loom's threads are one.
    #[cfg(loom)]
    pub(crate) fn owner(owner: usize) -> Self {
        Self { owner, ..Self::NOBODY }
    }

    /// Whether it is in a section of the domain, or online.
    pub(super) fn reads_in(self, domain: &GracePeriods) -> bool {
        sync::lock(&domain.registry).reads(self.owner)
    }
}

const _: () = assert!(std::mem::offset_of!(GracePeriods, gp_words) == 0);

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
                steps: Mutex::new(Rank::GracePeriods, Steps {
                    machine: Machine::new(settings.policy, start),
                    state: State::NEW,
                }),
                term: AtomicU64::new(0),
                completed: AtomicU64::new(start.sequence.to_bits()),
                registry: Mutex::new(Rank::Registry, Registry::new(match settings.policy {
                    AnyPolicy::Token(_) => Some(Relay::new()),
                    _ => None,
                })),
                alone: AtomicBool::new(false),
                hazards: None,
                counted: None,
                turn: Condvar::new(),
                tasks: AtomicU64::new(0),
                tasks_forgotten: AtomicU64::new(0),
                tuning: AtomicTuning::new(Kind::Threads),
                observers: Observers::new(),
                when_wanted: Attention::while_wanted(&settings.policy),
            }
        }
    }

    // ---- readers ------------------------------------------------------------------------------

    /// Registers a reader of the calling thread.
    pub(crate) fn register(&self, owner: usize, reader_kind: ReaderKind) -> &Slot {
        let core = ptr::from_ref(self).cast();
        // SAFETY: the registry is this domain's; no slot is given.
        let slot = unsafe { Registry::register(&self.registry, None, core, owner, reader_kind) };
        // SAFETY: the registry's, which frees no slot while `self` lives.
        unsafe { &*slot }
    }

    /// Unregisters a reader of the calling thread, which is in no section.
    pub(crate) fn unregister(&self, slot: &Slot) {
        //~ point before-unregister
        debug_assert!(slot.is_quiescent());
        // A thread that scans later takes the same lock: the sections of this reader happened
        // before [GP-5].
        sync::lock(&self.registry).unregister(slot);
        //~ point unregistered
        match self.gp_words.liburcu_words() {
            Some(words) => words.wake(),
            // The next owner finds the mark and keeps it: see `Slot::adopt`.
            None => slot.report_quiescent(),
        }
    }

    /// The readers of this domain. The lock is never held during a wait.
    pub(crate) fn registry(&self) -> Readers<'_> {
        Readers(sync::lock(&self.registry))
    }

    /// The same, if no thread holds the lock.
    pub(super) fn registry_unless_busy(&self) -> Option<Readers<'_>> {
        sync::try_lock(&self.registry).map(Readers)
    }

    /// The same for a driver that is to change the marks of its holdouts; `None` if another driver
    /// has taken its place [HO-1].
    pub(super) fn registry_as(&self, driver: &Driver) -> Option<Readers<'_>> {
        let registry = self.registry();
        let may = !self.is_superseded(driver); //~ superseded-driver-marks
        may.then_some(registry)
    }

    // ---- requests and waits -------------------------------------------------------------------

    /// Waits for a full grace period. The caller is in no section of this domain. Returns whether
    /// it has ended, as [`wait`](Self::wait).
    #[must_use]
    pub(crate) fn synchronize(&self, urgency: Urgency, me: Me) -> bool {
        let mut state = self.lock();
        let cookie = state.request(urgency);
        self.drive_until(state, cookie, me, Patience::NEW);
        self.sequence().is_done(cookie) //~ no-sharing
    }

    /// Waits until `cookie` is done, driving the machine if no thread does. Returns false if it is
    /// not: a waker has begun a section on this thread meanwhile, which the grace period might wait
    /// for.
    ///
    /// # Panics
    /// As [`Locked::require`].
    #[must_use]
    pub(crate) fn wait(&self, cookie: Cookie, urgency: Urgency, me: Me) -> bool {
        let mut state = self.lock();
        state.require(cookie, urgency);
        self.drive_until(state, cookie, me, Patience::NEW);
        self.sequence().is_done(cookie) //~ no-sharing
    }

    // ---- cookies ------------------------------------------------------------------------------

    /// The cookie of a full grace period from now on, without asking for it.
    pub(crate) fn snapshot(&self) -> Cookie {
        self.lock().machine().snapshot() // [GP-9]
    }

    /// As [`GracePeriods::snapshot`] without the lock, for a caller whose last step was the atomic
    /// exchange that unlinked an object.
    ///
    /// The exchange is followed by a full fence, and then by the load of `completed`. If the load
    /// finds no grace period in progress, then the beginning of the next one is stored later, and
    /// its fence comes after the exchange [UL-1]. If it finds one in progress, that one ends, with
    /// Release, before the next one begins.
    #[inline]
    pub(crate) fn snapshot_after_unlinking(&self) -> Cookie {
        fence::full_after_locked(); // [UL-1] //~ no-unlink-fence
        // Relaxed: the fences order it [UL-1]; nothing is freed because of it.
        Sequence::from_bits(self.completed.load(Relaxed)).snapshot() //~ served-by-the-present
    }

    /// The sequence as last made visible.
    #[inline]
    pub(crate) fn sequence(&self) -> Sequence {
        // Acquire: pairs with the Release in `complete` [GP-4]; the thread that sees the grace
        // period ended may free what its holdouts could see.
        Sequence::from_bits(self.completed.load(Acquire)) //~ relaxed-poll
    }

    // ---- the machine --------------------------------------------------------------------------

    pub(crate) fn lock(&self) -> Locked<'_> {
        Locked { domain: self, steps: Some(sync::lock(&self.steps)) }
    }

    /// The same, if no thread holds the lock.
    pub(crate) fn try_lock(&self) -> Option<Locked<'_>> {
        Some(Locked { domain: self, steps: Some(sync::try_lock(&self.steps)?) })
    }

    /// Whether another driver has taken the place of this one. Under the machine's lock or the
    /// registry's.
    pub(crate) fn is_superseded(&self, driver: &Driver) -> bool {
        // Relaxed: see `next_term`.
        self.term.load(Relaxed) != driver.term || driver.domain != ptr::from_ref(self).addr()
    }

    /// Which fence the readers require; `None` if the only readers are `own` quiescent ones of the
    /// calling thread. A reader that registers later sees what was published before [GP-5].
    fn fence_needed(&self, own: impl FnOnce(&Registry) -> usize) -> Option<Needed> {
        //~ hazard-no-fence:
        if self.hazards.is_some() {
            return Some(Needed::Heavy); // for the slots of hazard pointers [HP-1]
        }
        let registry = sync::lock(&self.registry);
        //~ always-alone:
        let needed = fence_needed(registry.len(), own(&registry), registry.light());
        //~ no-fence-alone:
        if needed.is_none() {
            // This grace period has no other fence; the calling thread may be a reader later
            // [UL-1].
            fence::full_after_locked();
        }
        needed
    }

    /// Orders what was unlinked before against what sections load after.
    pub(super) fn fence(&self, needed: Needed) {
        match needed {
            Needed::Heavy => self.heavy_fence(), // [GP-1]
            // Pairs with the full fence of a QSBR reader that comes online [GP-8], or with those of
            // readers that all execute full fences [GP-1].
            Needed::Full => {
                fence::full(); //~ no-own-fence
            }
        }
        //~ point fenced
    }

    pub(crate) fn heavy_fence(&self) {
        if cfg!(loom) {
            fence::heavy(sync::lock(&self.registry).fences());
        } else {
            fence::heavy(std::iter::empty());
        }
        // Relaxed: a statistic.
        self.counters().heavy_fences.fetch_add(1, Relaxed);
    }

    /// Announces the number of this grace period to readers.
    fn announce(&self, number: Number) {
        sync::lock(&self.registry).link(&self.gp_words.gp);
        // Release: pairs with the Acquire in `Slot::enter_outermost`, `renew` and `online` [GP-3]:
        // a thread that records this number sees what was published before the fence.
        self.gp_words.gp.store(word::entered(number), Release);
        if let Some(words) = self.gp_words.liburcu_words() {
            words.ctr.store(word::entered(number), Release); // [GP-3]
        }
        //~ point announced
    }

    /// Counts the holdouts. The locks and the Acquire loads order their sections before what
    /// follows [GP-2].
    fn scan(&self, number: Number, driver: &Driver) -> usize {
        // The count of a superseded driver would not be used.
        let Some(Readers(mut registry)) = self.registry_as(driver) else { return 0 };
        let holdouts = registry.scan(number, &self.gp_words.gp);
        drop(registry);
        if self.gp_words.links().is_some() && holdouts == 0 && !cfg!(target_arch = "x86_64") {
            // Readers compiled long ago may not release at each store to their word [GP-2].
            self.heavy_fence();
        }
        holdouts
    }

    // ---- across a `fork` ----------------------------------------------------------------------

    /// Before a `fork`: has the locks taken.
    pub(crate) fn hold<'o>(&'o self, wanted: &mut Wanted<'_, 'o>) {
        wanted.add(Rank::GracePeriods, &self.steps);
        wanted.add(Rank::Registry, &self.registry);
    }

    /// In the child: only the calling thread's readers are left.
    pub(crate) fn after_fork(&self) {
        forking::assert_in_child();
        // SAFETY: there is no other thread, so no other reader.
        unsafe { self.keep_only(crate::os::thread::token()) };
    }

    /// Only `owner`'s readers are left, no thread drives and none sleeps. The grace period in
    /// progress starts again from its fence. If a handler has forked on the driver's own thread,
    /// that driver finds itself superseded when the handler returns.
    ///
    /// # Safety
    /// No other reader will use its slot again, nor what it has seen.
    pub(crate) unsafe fn keep_only(&self, owner: usize) {
        let mut locked = self.lock();
        // SAFETY: by the contract.
        unsafe { sync::lock(&self.registry).keep_only(owner) };
        self.gp_words.wake.0.left.store(0, Relaxed);
        if let Some(words) = self.gp_words.liburcu_words() {
            words.futex.store(0, Relaxed);
        }
        locked.next_term();
        locked.observe(Event::Abandoned);
        self.forget_others(&mut locked);
    }
}

impl<'a> Locked<'a> {
    // ---- requests -----------------------------------------------------------------------------

    /// Asks for a full grace period from now on; a thread must drive it.
    pub(crate) fn request(&mut self, urgency: Urgency) -> Cookie {
        let cookie = self.machine().snapshot();
        self.require(cookie, urgency);
        //~ served-by-the-present
        cookie
    }

    /// Asks for the grace period that `cookie` stands for. The lock orders the caller's update
    /// before the fence of a later one [GP-9].
    ///
    /// # Panics
    /// As [`require`](Self::require).
    pub(super) fn need(&mut self, cookie: Cookie, urgency: Urgency) {
        self.steps_mut().machine.require(cookie, urgency).expect("the domain's own cookie");
    }

    /// The machine, to be read.
    pub(crate) fn machine(&self) -> &Machine<AnyPolicy> {
        &self.steps().machine
    }

    /// What the next [`step`](Self::step) is; the caller waits before a `Wait`.
    pub(crate) fn poll(&mut self) -> Action {
        self.steps_mut().machine.poll()
    }

    // ---- terms --------------------------------------------------------------------------------

    /// Relaxed: terms begin under the machine's lock, and are compared under that or the registry's
    /// [HO-1].
    fn next_term(&mut self) -> u64 {
        let number = self.domain.term.load(Relaxed).wrapping_add(1);
        self.domain.term.store(number, Relaxed);
        number
    }

    /// Begins a term; one in progress has ended.
    pub(crate) fn begin_term(&mut self, until: Until, me: Me) -> Driver {
        let domain = ptr::from_ref(self.domain).addr();
        Driver { term: self.next_term(), domain, took_over: false, until, me }
    }

    /// The same for a caller that holds the registry's lock, too: so the driver whose term ends
    /// sets no mark any more.
    pub(super) fn take_over(&mut self, _: &Readers<'_>, until: Until, me: Me) -> Driver {
        self.conduct.steps = self.conduct.steps.wrapping_add(1);
        Driver { took_over: true, ..self.begin_term(until, me) }
    }

    /// Whose it is.
    pub(super) fn domain(&self) -> &'a GracePeriods {
        self.domain
    }

    /// Counts a step of a driver. False if another one has taken its place: then it changes nothing
    /// any more [HO-1].
    #[inline]
    pub(crate) fn still_drives(&mut self, driver: &Driver) -> bool {
        //~ superseded-driver-reports:
        if self.domain.is_superseded(driver) {
            return false;
        }
        self.conduct.steps = self.conduct.steps.wrapping_add(1);
        true
    }

    // ---- without the lock ---------------------------------------------------------------------

    /// Calls `f` without the lock. If the caller drives, it finds out afterwards whether it still
    /// does.
    #[inline(always)]
    pub(crate) fn unlocked(&mut self, f: impl FnOnce()) {
        self.steps = None;
        f();
        self.steps = Some(sync::lock(&self.domain.steps));
    }

    /// Sleeps without the lock until the [turn](GracePeriods::turn) is notified, but no longer than
    /// `most`; may return early. Returns whether `most` has passed.
    pub(crate) fn wait(&mut self, most: Duration) -> bool {
        let steps = self.steps.take().expect("locked");
        let (steps, late) = sync::wait_at_most(&self.domain.turn, steps, Some(most));
        self.steps = Some(steps);
        late
    }

    // ---- steps --------------------------------------------------------------------------------

    /// Carries out the pending action, of which a `Wait` is over, and reports it to the machine.
    /// Returns what was reported; `None` if nothing was to be done, or another driver has taken the
    /// place of this one.
    pub(super) fn step(&mut self, driver: &Driver) -> Option<Event> {
        let domain = self.domain;
        if domain.is_superseded(driver) {
            return None;
        }
        self.conduct.away = Away::WORKS;
        let event = match self.poll() {
            Action::Idle => return None,
            Action::Fence => {
                match self.begin_with(|registry| registry.quiescent(driver.me.owner)) {
                    None => Event::Alone,
                    Some(fence) => {
                        self.unlocked(|| domain.fence(fence));
                        Event::Fenced
                    }
                }
            }
            Action::Announce(number) => {
                domain.announce(number);
                Event::Announced
            }
            Action::Scan(number) => {
                let mut holdouts = 0;
                self.unlocked(|| holdouts = domain.scan(number, driver));
                Event::Scanned { holdouts }
            }
            Action::Wait(_) => Event::Woken,
            Action::Complete(sequence) => {
                self.complete(sequence);
                Event::Completed
            }
        };
        if !self.still_drives(driver) {
            return None;
        }
        self.observe(event);
        Some(event)
    }

    /// A grace period begins. Which fence it needs: as [`GracePeriods::fence_needed`].
    fn begin_with(&mut self, own: impl FnOnce(&Registry) -> usize) -> Option<Needed> {
        assert!(!self.domain.is_sleepable(), "sections that are counted are in no registry");
        self.show_begin();
        let needed = self.domain.fence_needed(own);
        self.domain.alone.store(needed.is_none(), Relaxed);
        // Next to a heavy fence a clock costs little; without one it takes longer than a grace
        // period without holdouts.
        self.begin(matches!(needed, Some(Needed::Heavy)));
        needed
    }

    /// Shows threads that take no lock that a grace period is in progress, before its first fence
    /// [UL-1].
    pub(crate) fn show_begin(&self) {
        let sequence = self.machine().sequence();
        // Its order against the fence of the grace period is [UL-1]. Release: a thread that loads
        // this value takes the earlier grace periods as ended, as in `complete` [GP-4].
        //~ unseen-begin {
        //~ relaxed-begin:
        self.domain.completed.store(sequence.to_bits(), Release);
        //~ }
    }

    /// Tells the machine of an event, which it waits for.
    fn observe(&mut self, event: Event) {
        let observed = self.steps_mut().machine.observe(event);
        assert!(observed.is_ok(), "each action is answered by its own event");
    }

    /// Ends the grace period in progress, which is at its fence and has no registered reader to
    /// wait for.
    fn end_alone(&mut self) {
        self.observe(Event::Alone);
        self.complete(self.machine().sequence());
        self.observe(Event::Completed);
    }

    /// The same in a sleepable domain, for the driver that has waited for its sections [SR-3].
    pub(crate) fn end_counted(&mut self) {
        assert!(self.domain.is_sleepable(), "readers that are registered are scanned");
        self.end_alone();
    }

    /// Makes the end of a grace period visible.
    fn complete(&mut self, sequence: Sequence) {
        // Release: pairs with the Acquire in `sequence` [GP-4].
        self.domain.completed.store(sequence.to_bits(), Release);
        self.domain.note_end(self, sequence);
    }
}
