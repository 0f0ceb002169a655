//! The grace periods of a domain: who asks for them, who drives, who waits.
//!
//! The thread that wants a grace period takes the lock of the machine, requests, and, if no thread
//! drives the machine at that moment, becomes its *driver*: it carries out the machine's actions
//! ([`steps`]) until its own cookie is done ([`driver`]). Other threads that wait sleep meanwhile;
//! so concurrent updaters share grace periods. The lock is released while the driver fences, scans
//! or sleeps.
//!
//! A driver may also stop half-way ([`GracePeriods::advance`]): the machine remembers the step, and
//! the next driver continues from there. A driver that gets no CPU is superseded by a waiter
//! ([`handover`]).
//!
//! [`steps`] ensures that no grace period ends early. It also decides, from the domain's own
//! sequence, which cookie a request gets and whether a wait is over. An error here leaves a thread
//! asleep, or has it wait again. The order of locks is in `os/lock_rank.rs`.

use std::sync::atomic::Ordering::Relaxed;

pub(crate) use grace::worker::Attention;
use grace::{Cookie, Number, Urgency, word};

use self::patience::{Conduct, Patience};
use self::sleepers::Sleepers;

use crate::event::statistics::Counters;
use crate::event::trace;
use crate::gp::stall::Current;
use crate::os::{clock, lock_rank};

mod counted;
mod driver;
mod handover;
mod liburcu;
pub(crate) mod patience;
pub(crate) mod sleepers;
mod steps;
mod watch;

pub(crate) use counted::Counted;
pub(crate) use steps::{Driver, GracePeriods, Locked, Me};

/// What drivers and waiters know of each other, under the machine's lock.
#[derive(Debug)]
pub(crate) struct State {
    /// What is known of the grace period in progress.
    pub(crate) current: Current,
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

impl State {
    pub(crate) const NEW: Self = Self {
        current: Current::NONE,
        driven: false,
        put_off_until_ns: 0,
        conduct: Conduct::NEW,
        sleepers: 0,
        sleepers_to_tell: Sleepers::NONE,
    };
}

/// How soon the worker comes back to a domain whose lock another thread holds, or whose driver may
/// leave: less than a tick, since tasks may wait.
pub(crate) const BUSY_NS: u64 = 1_000_000;

/// When a driver stops.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// This cookie is done.
    Done(Cookie),
    /// When it would have to wait, or one grace period has ended.
    MustWait {
        /// Whether the driver is the worker, at a tick.
        tick: bool,
    },
}

impl Locked<'_> {
    /// Asks for the grace period that `cookie` stands for; a thread must drive it.
    ///
    /// # Panics
    /// If the cookie is not this domain's: it might never be done. Cookies of users are, by
    /// [`has_given`](GracePeriods::has_given).
    pub(crate) fn require(&mut self, cookie: Cookie, urgency: Urgency) {
        let hurries =
            self.machine().urgency() == Urgency::Background && urgency > Urgency::Background;
        self.need(cookie, urgency);
        if hurries && self.put_off_until_ns != 0 {
            self.put_off_until_ns = 0;
            if self.driven {
                self.conduct.away.least_ns = 0; // ends its nap
                self.domain().turn.notify_all();
            }
        }
    }
}

impl GracePeriods {
    /// This domain as the source of events.
    pub(crate) fn source(&self) -> trace::Source<'_> {
        self.observers.source()
    }

    /// This domain's counters.
    pub(crate) fn counters(&self) -> &Counters {
        &self.observers.counters
    }

    // ---- what is told of it -------------------------------------------------------------------

    /// The number that readers record now.
    pub(crate) fn announced(&self) -> Number {
        // Relaxed: only reported, or compared under the registry's lock.
        word::number(self.gp_words.gp.load(Relaxed))
    }

    /// Whether this domain can have given `cookie`; `grace::Sequence::has_given` argues why such a
    /// cookie is not far ahead. Takes the machine's lock for a moment, unless the cookie is done.
    pub(crate) fn has_given(&self, cookie: Cookie) -> bool {
        self.sequence().is_done(cookie) || self.lock().machine().sequence().has_given(cookie)
    }

    // ---- waiting ------------------------------------------------------------------------------

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
        let mut state = self.lock();
        let cookie = state.request(Urgency::Normal);
        self.drive_until(state, cookie, me, Patience::none(take_overs));
    }

    /// Drives the machine, or waits for the thread that does, until `cookie` is done; or until a
    /// waker has begun a section on this thread.
    fn drive_until(&self, mut state: Locked<'_>, cookie: Cookie, me: Me, mut patience: Patience) {
        let until = Until::Done(cookie);
        let mut begins_section = false;
        while !begins_section && !state.machine().sequence().is_done(cookie) {
            let driver = if state.driven {
                //~ no-sharing
                self.await_turn(&mut state, &mut patience, (until, me), None)
            } else {
                Some(state.begin_term(until, me))
            };
            if let Some(driver) = driver {
                begins_section = self.drive(&mut state, driver) && me.reads_in(self);
            }
        }
        drop(state);
        self.unlocked_again();
    }

    /// Takes those steps of the grace period in progress or wanted that need no waiting.
    pub(crate) fn advance(&self, me: Me) {
        self.advance_at(me, false);
    }

    /// The same, at a tick or not: at one, a grace period that waits for it begins, or scans again.
    pub(crate) fn advance_at(&self, me: Me, tick: bool) {
        let Some(mut state) = self.try_lock() else { return };
        if !state.machine().is_wanted() {
            return;
        }
        let until = Until::MustWait { tick };
        let driver = match state.driven {
            false => Some(state.begin_term(until, me)),
            true => self.take_over_in_passing(clock::monotonic_ns(), &mut state, (until, me)),
        };
        if let Some(driver) = driver {
            self.drive(&mut state, driver);
            drop(state);
            self.unlocked_again();
        }
    }

    // ---- what the worker asks -----------------------------------------------------------------

    /// What the worker still has to do here, callbacks aside. Takes no lock if no task waits and
    /// grace periods here need no worker. Else it tries one; if another thread holds it, the worker
    /// is to come back.
    pub(crate) fn attention(&self) -> Attention {
        if !self.has_sleepers() && self.when_wanted == Attention::None {
            return Attention::None;
        }
        // Under every engine: a worker without a pause would keep the lock's holder off its CPU.
        let Some(state) = self.try_lock() else {
            return Attention::Within(BUSY_NS);
        };
        let wanted = state.machine().is_wanted();
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
        Some(self.try_lock()?.machine().urgency())
    }

    // ---- what the steps tell ------------------------------------------------------------------

    /// A grace period has ended.
    fn note_end(&self, state: &mut State, sequence: grace::Sequence) {
        if state.sleepers != 0 {
            self.turn.notify_all();
        }
        self.note_end_to_sleepers(state, sequence);
        let current = state.current;
        trace::grace_period_ended(self.source(), sequence, current.latency_ns(), current.expedited);
    }

    /// In a child process: no thread drives, and none sleeps.
    fn forget_others(&self, state: &mut State) {
        state.current.number = None;
        state.driven = false;
        state.conduct.superseded = 0;
        state.sleepers = 0;
        self.tasks_forgotten.store(state.sleepers_to_tell.forget(), Relaxed);
        self.tasks.store(0, Relaxed);
    }
}
