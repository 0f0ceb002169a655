//! The worker: one thread, its turns and its rests.
//!
//! **This is a copy of the loop in `quiescence/src/reclaim/worker.rs`**, step by step in virtual
//! time: that one locks, waits and measures; this one says what each step costs. `grace::worker`
//! and `grace::batch` make the decisions of both. These must be kept equal by hand:
//! - the order of a turn: close open callbacks, take steps of the grace period, run ready callbacks
//!   ([`Me::work`]; there `tend`);
//! - a turn begins with the queue at which the previous one ended, skips queues that their threads
//!   have tended unless a thread is in a hurry, and leaves `has_more` ([`Me::run_queues`]; there
//!   `run_queues`);
//! - what it checks before it leaves, and when it sets `close_at` again ([`World::worker_leaves`];
//!   there `attention_or_forget`, and `tend`);
//! - when an announcement wakes it ([`World::announce`], [`World::hurry_worker`]; there `expect`,
//!   `hurry`).
//!
//! Not modelled: grace periods that are started and polled, of which a worker that knows of
//! callbacks is told; locks that are only tried; the list's lock, under which the library closes
//! all queues; several domains, tasks, hazard domains.

use grace::Urgency;
use grace::driver::TICK_NS;
use grace::worker::{
    Attention, RUNS_PER_TURN, Wants, advances, closes, first_turn, next_turn, stays, turn_is_over,
};

use super::callbacks::QueueId;
use super::options::Algorithm;
use super::report::Spending;
use super::world::{Me, ThreadId, World};
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

    /// The urgency with which the worker closes the next queue, if it does.
    fn worker_closes(&mut self, hurried: bool, queue: QueueId) -> Option<Urgency> {
        let now = self.events.now();
        let urgency = closes(hurried, now >= self.worker.close_at);
        if urgency.is_some() && queue == self.callbacks.queues.len() {
            self.worker.close_at = now.saturating_add(self.options.lazy_ns);
            return None;
        }
        urgency
    }

    fn worker_advances(&self, hurried: bool) -> bool {
        let rested = self.events.now() >= self.worker.rests_until;
        // There are no tasks.
        advances(rested, hurried, || self.domain.machine.urgency(), || false)
    }

    /// It has spent so much CPU time on steps of the grace period.
    fn worker_rests(&mut self, spent_ns: Time) {
        if let Algorithm::Library { budget: Some(budget), .. } = self.options.algorithm {
            let until = self.events.now().saturating_add(budget.rest_ns(spent_ns, TICK_NS));
            self.worker.rests_until = self.worker.rests_until.max(until);
        }
    }

    /// The queue that the worker runs next, if it has been done with so many; skips those that
    /// their threads have tended.
    fn worker_queue(&mut self, hurried: bool, done: &mut usize) -> Option<QueueId> {
        let count = self.callbacks.queues.len();
        while *done < count {
            let at = (self.worker.first + *done) % count;
            if !std::mem::take(&mut self.callbacks.queues[at].tended) || hurried {
                return Some(at);
            }
            *done += 1;
        }
        None
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

impl Me<'_, '_> {
    /// The worker's turns and rests.
    pub(super) async fn work(self) {
        loop {
            self.pause().await;
            let hurried = {
                let mut world = self.world();
                world.counted.worker_turns += 1;
                std::mem::take(&mut world.worker.hurried)
            };
            self.spend(self.costs().request_ns(), Spending::Worker).await;
            for queue in 0.. {
                let urgency = self.world().worker_closes(hurried, queue);
                let Some(urgency) = urgency else { break };
                self.close(queue, urgency).await;
            }
            if self.world().worker_advances(hurried) {
                let began_cpu_ns = self.world().threads[self.id].cpu_ns;
                if self.advance(true).await {
                    let mut world = self.world();
                    let spent_ns = world.threads[self.id].cpu_ns - began_cpu_ns;
                    world.worker_rests(spent_ns);
                }
            }
            self.run_queues(hurried).await;
            self.world().worker_leaves();
            let due = self.world().worker.due;
            if due.is_some_and(|due| due <= self.now()) {
                // It lets others run first.
                self.spend(self.costs().yield_ns(), Spending::Worker).await;
            }
        }
    }

    /// Waits until its next turn is due.
    async fn pause(self) {
        loop {
            let due = self.world().worker.due;
            match due {
                None => self.sleep().await,
                Some(due) if due > self.now() => self.sleep_for(due - self.now()).await,
                Some(_) => return,
            }
        }
    }

    /// Runs what is ready in one queue after the other, until its turn is over.
    async fn run_queues(self, hurried: bool) {
        let began = self.now();
        self.world().worker.has_more = false;
        // Whom it woke as it took steps of the grace period.
        self.spend(0, Spending::Worker).await;
        let (mut done, mut is_over) = (0, false);
        while !is_over {
            let next = self.world().worker_queue(hurried, &mut done);
            let Some(at) = next else { break };
            let mut ran = true;
            for _ in 0..RUNS_PER_TURN {
                ran = self.run(at, self.options().run_min).await != 0;
                is_over = ran && turn_is_over(self.now() - began, self.options().run_ns);
                if !ran || is_over {
                    break;
                }
            }
            self.world().worker.has_more |= ran;
            done += 1;
        }
        let mut world = self.world();
        let count = world.callbacks.queues.len();
        world.worker.first = if is_over { (world.worker.first + done) % count } else { 0 };
    }
}
