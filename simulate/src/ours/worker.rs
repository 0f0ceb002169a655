//! The worker: one thread, its turns and its rests.
//!
//! **This is a copy of the loop in `quiescence/src/reclaim/worker.rs`**, step by step in virtual
//! time: that one locks, waits and measures; this one says what each step costs. `grace::worker`
//! and `grace::batch` make the decisions of both. These must be kept equal by hand:
//! - the order of a turn: close open callbacks, take steps of the grace period, run ready callbacks
//!   ([`World::worker_step`]; there `tend`);
//! - a turn begins with the queue at which the previous one ended, skips queues that their threads
//!   have tended unless a thread is in a hurry, and leaves `has_more` ([`World::worker_runs`];
//!   there `run_queues`);
//! - what it checks before it leaves, and when it sets `close_at` again ([`World::worker_leaves`];
//!   there `attention_or_forget`, and `tend`);
//! - when an announcement wakes it ([`World::announce`], [`World::hurry_worker`]; there `expect`,
//!   `hurry`).
//!
//! Not modelled: grace periods that are started and polled, of which a worker that knows of
//! callbacks is told; locks that are only tried; the list's lock, under which the library closes
//! all queues; several domains, tasks, hazard domains.

use grace::driver::TICK_NS;
use grace::worker::{
    Attention, RUNS_PER_TURN, Wants, advances, closes, first_turn, next_turn, stays, turn_is_over,
};

use super::callbacks::{QueueId, Run};
use super::options::Algorithm;
use super::report::Spending;
use super::world::{Frame, Next, ThreadId, World};
use crate::events::Time;

/// What the worker knows of the domain.
#[derive(Clone, Debug, Default)]
pub(super) struct Worker {
    pub(super) thread: ThreadId,
    announced: bool,
    hurried: bool,
    has_more: bool,
    /// The queue from which its next turn runs what is ready.
    first: QueueId,
    /// When its next turn is; none if there is nothing to do.
    due: Option<Time>,
    close_at: Time,
    rests_until: Time,
}

/// A turn of the worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkerFrame {
    step: Step,
    /// Whether some thread hurried when the turn began.
    hurried: bool,
    /// Queues that it is done with.
    queues: usize,
    turns: usize,
    /// When it began to run what is ready.
    runs_began: Time,
    /// Its CPU time when it began to take steps of the grace period.
    began_cpu_ns: Time,
}

#[derive(Clone, Copy, Debug, Default)]
enum Step {
    #[default]
    Pauses,
    Closes,
    Advances,
    Advanced,
    Runs,
    Ran,
    Leaves,
}

impl World<'_> {
    fn attention(&self) -> Attention {
        match self.domain.machine.is_wanted() {
            true => self.domain.while_wanted,
            false => Attention::None,
        }
    }

    /// There are callbacks: the worker is to know.
    pub(super) fn announce(&mut self) {
        if std::mem::replace(&mut self.worker.announced, true) {
            return;
        }
        let now = self.events.now();
        self.worker.close_at = now.saturating_add(self.options.lazy_ns);
        self.worker.due = Some(self.due(first_turn(self.attention())));
        self.wake_at_cost(self.worker.thread);
    }

    /// The worker is to see to it now.
    pub(super) fn hurry_worker(&mut self) {
        self.worker.hurried = true;
        self.announce();
        let now = self.events.now();
        self.worker.due = Some(self.worker.due.unwrap_or(now).min(now));
        self.wake_at_cost(self.worker.thread);
    }

    pub(super) fn worker_step(&mut self, id: ThreadId, frame: &mut WorkerFrame) -> Next {
        let now = self.events.now();
        match frame.step {
            Step::Pauses => match self.worker.due {
                None => Next::Sleep,
                Some(due) if due > now => Next::SleepFor(due - now),
                Some(_) => {
                    self.counted.worker_turns += 1;
                    frame.hurried = std::mem::take(&mut self.worker.hurried);
                    frame.queues = 0;
                    frame.step = Step::Closes;
                    Next::Spend(self.options.costs.request_ns(), Spending::Worker)
                }
            },
            Step::Closes => self.worker_closes(frame),
            Step::Advances => self.worker_advances(id, frame),
            Step::Advanced => {
                let spent_ns = self.threads[id].cpu_ns - frame.began_cpu_ns;
                if let Algorithm::Library { budget: Some(budget), .. } = self.options.algorithm {
                    let until = now.saturating_add(budget.rest_ns(spent_ns, TICK_NS));
                    self.worker.rests_until = self.worker.rests_until.max(until);
                }
                self.begin_runs(frame);
                Next::Spend(0, Spending::Worker)
            }
            Step::Runs | Step::Ran => self.worker_runs(id, frame),
            Step::Leaves => {
                self.worker_leaves();
                frame.step = Step::Pauses;
                match self.worker.due {
                    // It lets others run first.
                    Some(due) if due <= now => {
                        Next::Spend(self.options.costs.yield_ns(), Spending::Worker)
                    }
                    _ => Next::Spend(0, Spending::Worker),
                }
            }
        }
    }

    /// One queue after the other.
    fn worker_closes(&mut self, frame: &mut WorkerFrame) -> Next {
        let now = self.events.now();
        let urgency = closes(frame.hurried, now >= self.worker.close_at);
        match urgency.filter(|_| frame.queues < self.callbacks.queues.len()) {
            Some(urgency) => {
                frame.queues += 1;
                Next::Call(Self::close(frame.queues - 1, urgency))
            }
            None => {
                if urgency.is_some() {
                    self.worker.close_at = now.saturating_add(self.options.lazy_ns);
                }
                frame.step = Step::Advances;
                Next::Spend(0, Spending::Worker)
            }
        }
    }

    fn worker_advances(&mut self, id: ThreadId, frame: &mut WorkerFrame) -> Next {
        let rested = self.events.now() >= self.worker.rests_until;
        let urgency = || self.domain.machine.urgency();
        // There are no tasks.
        if advances(rested, frame.hurried, urgency, || false)
            && let Some(drive) = self.advance(id, true)
        {
            frame.began_cpu_ns = self.threads[id].cpu_ns;
            frame.step = Step::Advanced;
            return Next::Call(drive);
        }
        self.begin_runs(frame);
        Next::Spend(0, Spending::Worker)
    }

    fn begin_runs(&mut self, frame: &mut WorkerFrame) {
        frame.queues = 0;
        frame.turns = 0;
        frame.runs_began = self.events.now();
        self.worker.has_more = false;
        frame.step = Step::Runs;
    }

    fn worker_runs(&mut self, id: ThreadId, frame: &mut WorkerFrame) -> Next {
        let count = self.callbacks.queues.len();
        if matches!(frame.step, Step::Ran) {
            let ran = self.threads[id].result != 0;
            let taken_ns = self.events.now() - frame.runs_began;
            let is_over = ran && turn_is_over(taken_ns, self.options.run_ns);
            frame.turns = if ran && !is_over { frame.turns - 1 } else { 0 };
            if frame.turns == 0 {
                self.worker.has_more |= ran;
                frame.queues += 1;
            }
            if is_over {
                self.worker.first = (self.worker.first + frame.queues) % count;
                frame.step = Step::Leaves;
                return Next::Spend(0, Spending::Worker);
            }
            frame.step = Step::Runs;
        }
        while frame.queues < count {
            let at = (self.worker.first + frame.queues) % count;
            if frame.turns == 0 {
                if std::mem::take(&mut self.callbacks.queues[at].tended) && !frame.hurried {
                    frame.queues += 1;
                    continue;
                }
                frame.turns = RUNS_PER_TURN;
            }
            frame.step = Step::Ran;
            return Next::Call(Frame::Run(Run::new(at, self.options.run_min)));
        }
        self.worker.first = 0;
        frame.step = Step::Leaves;
        Next::Spend(0, Spending::Worker)
    }

    fn worker_leaves(&mut self) {
        let now = self.events.now();
        let asked = self.attention();
        let queues = 0..self.callbacks.queues.len();
        let wants = queues.map(|queue| self.wants(queue)).max().unwrap_or(Wants::Nothing);
        let worker = &mut self.worker;
        worker.close_at = worker.close_at.min(now.saturating_add(self.options.lazy_ns));
        if !stays(asked, wants) {
            worker.announced = false;
            worker.due = None;
            return;
        }
        let turn = next_turn(asked, wants, worker.hurried || worker.has_more);
        self.worker.due = Some(self.due(turn));
    }

    /// When that turn is.
    fn due(&self, turn: Attention) -> Time {
        let now = self.events.now();
        match turn {
            Attention::AtOnce => now,
            Attention::Within(ns) => now + ns,
            Attention::AtTick => now + TICK_NS,
            Attention::None => self.worker.close_at.max(now),
        }
    }
}
