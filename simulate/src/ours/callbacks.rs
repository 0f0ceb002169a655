//! Callbacks: the queue of each thread that adds some, when it is closed, and who runs how many.

use std::collections::VecDeque;

use grace::batch::{self, BATCH, BATCH_ALONE, ROUND, RUN_CHUNK};
use grace::limit::{Amount, Stock, Zone, zone};
use grace::worker::Wants;
use grace::{Segments, Urgency};

use super::costs::ns;
use super::options::Algorithm;
use super::report::Spending;
use super::world::{Me, ThreadId, World};
use crate::events::Time;

pub(super) type QueueId = usize;

/// What a thread queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Retired objects, which it frees itself.
    Objects,
    /// Closures, which the worker runs.
    Closures,
}

/// The callbacks of one thread.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) segments: Segments,
    pub(super) stock: Stock,
    /// How much it takes and keeps of the limit at once, as found last.
    pub(super) chunk: Amount,
    /// Callbacks that no grace period was asked for yet; and how many others have not finished.
    open: Amount,
    closed: u64,
    /// Whether some thread runs its callbacks.
    running: bool,
    /// Whether its own thread has, since the worker asked last.
    pub(super) tended: bool,
    /// When callbacks were added, how many, of how many bytes each: those that have not finished.
    ages: VecDeque<(Time, u64, u64)>,
}

impl Queue {
    /// Closes what is open. Returns how many callbacks that is.
    const fn close(&mut self) -> u64 {
        let closed = self.open.objects;
        self.open = Amount::NONE;
        self.closed += closed;
        closed
    }
}

/// All of them, and what is charged.
#[derive(Clone, Debug, Default)]
pub(super) struct Callbacks {
    pub(super) queues: Vec<Queue>,
    /// The queue of each thread that has one.
    pub(super) of_thread: Vec<Option<QueueId>>,
    pub(super) charged: Amount,
    pub(super) waiting: Amount,
}

impl World<'_> {
    /// The queue of a thread that adds.
    pub(super) fn queue_of(&mut self, id: ThreadId) -> QueueId {
        if self.callbacks.of_thread.len() <= id {
            self.callbacks.of_thread.resize(id + 1, None);
        }
        if let Some(queue) = self.callbacks.of_thread[id] {
            return queue;
        }
        let queue = self.callbacks.queues.len();
        self.callbacks.queues.push(Queue {
            segments: Segments::new(self.domain.machine.sequence()),
            stock: Stock::EMPTY,
            chunk: Amount::NONE,
            open: Amount::NONE,
            closed: 0,
            running: false,
            tended: false,
            ages: VecDeque::new(),
        });
        self.callbacks.of_thread[id] = Some(queue);
        queue
    }

    pub(super) fn zone(&self) -> Zone {
        zone(self.callbacks.charged, self.options.limit)
    }

    /// Adds a callback that has been admitted.
    pub(super) fn add_callback(&mut self, id: ThreadId, bytes: u64) {
        let now = self.events.now();
        let at = self.queue_of(id);
        let queue = &mut self.callbacks.queues[at];
        queue.open = queue.open.plus(Amount::object(bytes));
        match queue.ages.back_mut() {
            Some(last) if last.0 == now && last.2 == bytes => last.1 += 1,
            _ => queue.ages.push_back((now, 1, bytes)),
        }
        let waiting = self.callbacks.waiting.plus(Amount::object(bytes));
        self.callbacks.waiting = waiting;
        let counted = &mut self.counted.callbacks;
        counted.queued += 1;
        counted.waiting_peak = counted.waiting_peak.max(waiting.objects);
        counted.waiting_bytes_peak = counted.waiting_bytes_peak.max(waiting.bytes);
    }

    /// An object was freed where its thread had waited for a grace period.
    pub(super) fn count_freed(&mut self) {
        self.counted.callbacks.queued += 1;
        self.counted.callbacks.run += 1;
        self.pending_ns += ns(self.options.costs.callback_ps(true));
    }

    /// Whether all that was added to a queue has run.
    pub(super) fn is_empty(&self, at: QueueId) -> bool {
        self.callbacks.queues[at].ages.is_empty()
    }

    pub(super) fn wants(&self, at: QueueId) -> Wants {
        Wants::of(&self.callbacks.queues[at].segments, self.is_empty(at))
    }

    /// Whether a queue has callbacks that no grace period was asked for yet.
    pub(super) fn is_open(&self, at: QueueId) -> bool {
        let queue = &self.callbacks.queues[at];
        queue.open != Amount::NONE || queue.segments.has_untagged()
    }

    /// Asks for a grace period on behalf of what is open in a queue.
    fn close(&mut self, at: QueueId, urgency: Urgency) {
        let sequence = self.domain.machine.sequence();
        let queue = &mut self.callbacks.queues[at];
        queue.segments.advance(sequence);
        let closed = queue.close();
        queue.segments.push(closed);
        if queue.segments.has_untagged() {
            let cookie = self.domain.machine.request(urgency);
            queue.segments.accelerate(cookie);
        }
    }

    /// How many of the ready callbacks of a queue, each of which takes so long, are run in one go:
    /// none if another thread runs some.
    fn claim(&mut self, at: QueueId, least: u64, callback_ps: u64) -> u64 {
        let sequence = self.domain.machine.sequence();
        let queue = &mut self.callbacks.queues[at];
        if queue.running {
            return 0;
        }
        queue.segments.advance(sequence);
        let mut claimed = batch::in_one_go(queue.segments.ready(), least, BATCH);
        if batch::is_timed(claimed) {
            // The clock is looked at after so many.
            let most = (self.options.run_ns * 1_000).div_ceil(callback_ps.max(1));
            claimed = claimed.min(most.max(1).div_ceil(RUN_CHUNK) * RUN_CHUNK);
        }
        queue.running = claimed != 0;
        claimed
    }

    /// So many callbacks have run.
    fn finish(&mut self, at: QueueId, count: u64, own: bool) {
        let now = self.events.now();
        let queue = &mut self.callbacks.queues[at];
        queue.running = false;
        queue.segments.take(count);
        queue.closed -= count;
        queue.tended |= own;
        let mut freed = Amount { objects: count, bytes: 0 };
        let mut left = count;
        while left != 0 {
            let Some(oldest) = queue.ages.front_mut() else { break };
            let some = left.min(oldest.1);
            freed.bytes += some * oldest.2;
            self.times.callback_ages.record_many(now - oldest.0, some);
            oldest.1 -= some;
            left -= some;
            if oldest.1 == 0 {
                queue.ages.pop_front();
            }
        }
        self.callbacks.waiting = self.callbacks.waiting.minus(freed);
        self.counted.callbacks.run += count;
        let returned = if own { queue.stock.give_back(freed, queue.chunk) } else { freed };
        self.uncharge(returned);
    }

    fn is_full(&self, at: QueueId, batch: u64) -> bool {
        let queue = &self.callbacks.queues[at];
        batch::is_full(queue.open.objects, queue.open.bytes, batch, self.options.limit)
    }

    /// Callbacks that liburcu's thread takes, all at once: how many there are in all queues.
    pub(super) fn take_all(&mut self) -> u64 {
        self.callbacks.queues.iter_mut().map(Queue::close).sum()
    }

    /// They have run.
    pub(super) fn finish_all_taken(&mut self) {
        for at in 0..self.callbacks.queues.len() {
            let taken = self.callbacks.queues[at].closed;
            if taken != 0 {
                self.finish(at, taken, false);
            }
        }
    }

    /// The thread that adds has the worker know of it.
    pub(super) fn announce_callbacks(&mut self) {
        match self.options.algorithm {
            Algorithm::Library { .. } => self.announce(),
            Algorithm::Liburcu => self.wake_call_thread(),
        }
    }
}

impl Me<'_, '_> {
    /// Asks for a grace period on behalf of what is open in a queue.
    pub(super) async fn close(self, at: QueueId, urgency: Urgency) {
        if self.world().is_open(at) {
            self.spend(self.costs().request_ns(), Spending::GracePeriods).await;
            self.world().close(at, urgency);
        }
    }

    /// Runs some of what is ready in a queue, at least so many. Returns how many.
    pub(super) async fn run(self, at: QueueId, least: u64) -> u64 {
        let own = self.world().callbacks.of_thread.get(self.id) == Some(&Some(at));
        let callback_ps = self.costs().callback_ps(own);
        let claimed = self.world().claim(at, least, callback_ps);
        if claimed != 0 {
            let taken_ns = ns(self.costs().machine.lock) + ns(claimed * callback_ps);
            self.spend(taken_ns, Spending::Callbacks).await;
            self.world().finish(at, claimed, own);
        }
        claimed
    }

    /// The thread's part, now and then.
    pub(super) async fn tend(self, contents: Contents) {
        let is_objects = contents == Contents::Objects;
        let (at, full) = {
            let mut world = self.world();
            let at = world.queue_of(self.id);
            let alone = is_objects && world.domain.alone;
            (at, world.is_full(at, if alone { BATCH_ALONE } else { BATCH }))
        };
        if full {
            self.world().trim(at);
            let urgency = batch::urgency(self.world().zone());
            self.close(at, urgency).await;
        } else {
            self.spend(0, Spending::Own).await;
        }
        if is_objects {
            let ran = self.run(at, ROUND.1).await;
            if batch::advances(ran, || self.world().wants(at)) {
                self.advance(false).await;
            }
        } else if full {
            self.advance(false).await;
            self.world().hurry_worker();
        }
    }

    /// Waits for a grace period at the limit, and runs what is ready then in its queue if it is to
    /// run any.
    pub(super) async fn settle(self, runs: Option<QueueId>) {
        match runs {
            Some(at) => self.close(at, Urgency::Expedited).await,
            None => self.spend(0, Spending::Own).await,
        }
        self.waits(Urgency::Expedited).await;
        let Some(at) = runs else { return };
        loop {
            let ran = self.run(at, self.options().run_min).await;
            let mut world = self.world();
            if ran == 0 || world.zone() == Zone::Free {
                return world.trim(at);
            }
        }
    }
}
