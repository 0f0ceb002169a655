//! liburcu's grace periods and its `call_rcu` thread, by its published algorithm (M. Desnoyers et
//! al., User-Level Implementations of Read-Copy Update, IEEE TPDS 23(2), 2012; userspace-rcu 0.14,
//! flavour `memb`): a fence, a pass over the readers, the flip of the phase, a second pass over
//! those that were inside, a fence. A pass that finds readers inside scans a hundred times with a
//! `pause` in between, and then sleeps until a reader leaves. Updaters that arrive while one is
//! queued join it, spin for a while, and sleep. The `call_rcu` thread takes all queued callbacks,
//! waits for a grace period, runs them, and naps for 10 ms.
//!
//! The numbers here are liburcu's, not the library's.

use std::mem;

use super::costs::ns;
use super::readers::{Kind, ReaderId};
use super::report::Spending;
use super::world::{Frame, Next, ThreadId, World};
use crate::events::Time;

/// `RCU_QS_ACTIVE_ATTEMPTS`: looks of a pass before it sleeps.
const ATTEMPTS: u32 = 100;
/// `URCU_WAIT_ATTEMPTS`: pauses of an updater that has joined, before it sleeps.
const WAIT_ATTEMPTS: u32 = 1_000;
/// So many pauses are taken at once here.
const PAUSES: u32 = 25;
/// The nap of the `call_rcu` thread.
const NAP_NS: Time = 10_000_000;

/// What its updaters share.
#[derive(Clone, Debug, Default)]
pub(super) struct Liburcu {
    /// `rcu_gp_lock` is held.
    locked: bool,
    /// Those who sleep for it.
    lockers: Vec<ThreadId>,
    /// Updaters that have joined the next grace period; the first of them leads it.
    queued: Vec<ThreadId>,
    /// Those of the one in progress.
    taken: Vec<ThreadId>,
    began: Time,
    flipped: Time,
    /// Readers that were inside when the first pass looked.
    snapshot: Vec<ReaderId>,
    /// Whether the `call_rcu` thread sleeps for want of callbacks.
    call_thread_waits: bool,
}

/// `synchronize_rcu`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Synchronize {
    step: Step,
    /// Pauses, or looks of a pass.
    looks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Joins,
    Joined,
    Leads,
    Fenced,
    ScansAll,
    Flips,
    Scans,
    AboutToSleep,
    Asleep,
    Ends,
    Ended,
}

impl Synchronize {
    pub(super) const NEW: Self = Self { step: Step::Joins, looks: 0 };
}

/// The `call_rcu` thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallThread {
    step: CallStep,
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
enum CallStep {
    Takes,
    Runs,
    Ran,
    Naps,
}

impl CallThread {
    pub(super) const NEW: Self = Self { step: CallStep::Takes, taken: 0 };
}

const GP: Spending = Spending::GracePeriods;

impl World<'_> {
    /// Whether the second pass waits for this reader.
    pub(super) fn is_waited_for(&self, id: ReaderId) -> bool {
        let reader = &self.readers[id];
        reader.place.is_some() && reader.is_inside_since_before(self.liburcu.flipped)
    }

    pub(super) fn synchronize_step(&mut self, id: ThreadId, frame: &mut Synchronize) -> Next {
        let costs = &self.options.costs;
        let now = self.events.now();
        match frame.step {
            Step::Joins => {
                self.liburcu.queued.push(id);
                let is_first = self.liburcu.queued.len() == 1;
                frame.step = if is_first { Step::Leads } else { Step::Joined };
                Next::Spend(ns(costs.machine.atomic_transfer), GP)
            }
            Step::Joined => {
                let liburcu = &self.liburcu;
                if !liburcu.queued.contains(&id) && !liburcu.taken.contains(&id) {
                    return Next::Done;
                }
                if frame.looks >= WAIT_ATTEMPTS {
                    return Next::Sleep;
                }
                frame.looks += PAUSES;
                Next::Spend(ns(u64::from(PAUSES) * costs.relax), GP)
            }
            Step::Leads => {
                if self.liburcu.locked {
                    self.liburcu.lockers.push(id);
                    return Next::Sleep;
                }
                self.liburcu.locked = true;
                self.liburcu.taken = mem::take(&mut self.liburcu.queued);
                self.liburcu.began = now;
                let is_empty = self.domain.registered.is_empty();
                frame.step = if is_empty { Step::Ended } else { Step::Fenced };
                let locks_ns = ns(2 * costs.machine.lock_transfer);
                Next::Spend(locks_ns + if is_empty { 0 } else { self.membarrier(id) }, GP)
            }
            Step::Fenced => {
                frame.step = Step::ScansAll;
                let written = self.look_at_all();
                Next::Spend(costs.scan_ns(self.domain.registered.len() as u64, written), GP)
            }
            Step::ScansAll => {
                self.counted.scans += 1;
                self.look_at_all();
                let is_inside =
                    |reader: &ReaderId| self.readers[*reader].is_inside_since_before(now + 1);
                self.liburcu.snapshot =
                    self.domain.registered.iter().copied().filter(is_inside).collect();
                frame.step = Step::Flips;
                Next::Spend(costs.announce_ns(), GP)
            }
            Step::Flips => {
                self.liburcu.flipped = now;
                frame.looks = 0;
                frame.step = Step::Scans;
                Next::Spend(costs.scan_ns(self.liburcu.snapshot.len() as u64, 0), GP)
            }
            Step::Scans => self.second_pass(id, frame),
            Step::AboutToSleep => self.sleep_for_readers(id, frame),
            Step::Asleep => {
                frame.step = Step::Scans;
                Next::Spend(self.membarrier(id), GP)
            }
            Step::Ends => {
                frame.step = Step::Ended;
                Next::Spend(self.membarrier(id), GP)
            }
            Step::Ended => {
                self.end_grace_period(id);
                Next::Done
            }
        }
    }

    /// Draws what all readers are at. Returns how many have written since.
    pub(super) fn look_at_all(&mut self) -> u64 {
        let now = self.events.now();
        let mut written = 0;
        for &reader in &self.domain.registered {
            self.readers[reader].advance(now);
            written += u64::from(self.readers[reader].take_written());
        }
        written
    }

    fn second_pass(&mut self, id: ThreadId, frame: &mut Synchronize) -> Next {
        self.counted.scans += 1;
        let now = self.events.now();
        let mut snapshot = mem::take(&mut self.liburcu.snapshot);
        (self.domain.sleeper, self.domain.marks) = (None, 0);
        snapshot.iter().for_each(|&reader| self.readers[reader].marked = false);
        snapshot.retain(|&reader| {
            self.readers[reader].advance(now);
            self.is_waited_for(reader)
        });
        self.liburcu.snapshot = snapshot;
        if self.liburcu.snapshot.is_empty() {
            frame.step = Step::Ends;
            return Next::Spend(0, GP);
        }
        frame.looks = (frame.looks + 1).min(ATTEMPTS);
        if frame.looks < ATTEMPTS {
            let inside = self.liburcu.snapshot.len() as u64;
            return Next::Spend(self.options.costs.rescan_ns(inside), GP);
        }
        // `wait_gp` begins with a fence.
        frame.step = Step::AboutToSleep;
        Next::Spend(self.membarrier(id), GP)
    }

    /// Sleeps until some reader leaves its outermost section, one of those or another: that takes
    /// the -1 away from `gp.futex`.
    fn sleep_for_readers(&mut self, id: ThreadId, frame: &mut Synchronize) -> Next {
        frame.step = Step::Asleep;
        self.counted.driver_sleeps += 1;
        self.look_at_all();
        let marked: Vec<ReaderId> = self.liburcu.snapshot.clone();
        for reader in marked {
            if self.is_waited_for(reader) {
                self.readers[reader].marked = true;
                self.domain.marks += 1;
            }
        }
        if self.domain.marks == 0 {
            return Next::Spend(0, GP);
        }
        let first = (0..self.domain.registered.len())
            .filter_map(|at| self.leaves_next(self.domain.registered[at]))
            .min();
        self.domain.sleeper = Some(id);
        match first {
            Some(first) => Next::SleepAtMost(first),
            None => Next::Sleep,
        }
    }

    /// In how long a reader that runs leaves its section, or its next one.
    fn leaves_next(&mut self, id: ReaderId) -> Option<Time> {
        let (left, kind) = (self.readers[id].leaves_in(), self.readers[id].kind);
        if left.is_some() || !self.readers[id].is_running() {
            return left;
        }
        match kind {
            Kind::Sections { section_ns, gap_ns } => {
                let random = &mut self.threads[self.worker.thread].random;
                Some(random.exponential(gap_ns) + random.exponential(section_ns))
            }
            _ => None,
        }
    }

    fn end_grace_period(&mut self, id: ThreadId) {
        self.counted.grace_periods += 1;
        self.check_end(self.liburcu.began);
        self.liburcu.locked = false;
        for waiter in mem::take(&mut self.liburcu.taken) {
            if waiter != id {
                self.wake_at_cost(waiter);
            }
        }
        for locker in mem::take(&mut self.liburcu.lockers) {
            self.wake_at_cost(locker);
        }
    }

    // ---- callbacks ----------------------------------------------------------------------------

    pub(super) fn wake_call_thread(&mut self) {
        self.pending_ns += ns(self.options.costs.machine.atomic_transfer);
        if mem::take(&mut self.liburcu.call_thread_waits) {
            self.wake_at_cost(self.worker.thread);
        }
    }

    pub(super) fn call_thread_step(&mut self, _: ThreadId, frame: &mut CallThread) -> Next {
        match frame.step {
            CallStep::Takes => {
                frame.taken = self.take_all();
                if frame.taken == 0 {
                    frame.step = CallStep::Naps;
                    self.liburcu.call_thread_waits = true;
                    return Next::Sleep;
                }
                self.counted.worker_turns += 1;
                frame.step = CallStep::Runs;
                Next::Call(Frame::Synchronize(Synchronize::NEW))
            }
            CallStep::Runs => {
                frame.step = CallStep::Ran;
                let callback_ps = self.options.costs.callback_ps(false);
                Next::Spend(ns(frame.taken * callback_ps), Spending::Callbacks)
            }
            CallStep::Ran => {
                self.finish_all_taken();
                frame.step = CallStep::Naps;
                Next::Spend(0, Spending::Callbacks)
            }
            CallStep::Naps => {
                frame.step = CallStep::Takes;
                Next::SleepFor(NAP_NS)
            }
        }
    }
}
