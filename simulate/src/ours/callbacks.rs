//! Callbacks: the queue of each thread that adds some, when it is closed, and who runs how many.

use std::collections::VecDeque;

use grace::batch::{self, BATCH, BATCH_ALONE, RUN_CHUNK, RUN_SHARE};
use grace::limit::{Amount, Stock, Zone, zone};
use grace::worker::Wants;
use grace::{Segments, Urgency};

use super::costs::ns;
use super::options::Algorithm;
use super::report::Spending;
use super::world::{Frame, Next, ThreadId, World};
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

/// Asking for a grace period on behalf of what is open in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Close {
    queue: QueueId,
    urgency: Urgency,
    asked: bool,
}

/// Running some of what is ready in a queue. Gives back how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    queue: QueueId,
    least: u64,
    claimed: Option<u64>,
}

impl Run {
    pub(super) const fn new(queue: QueueId, least: u64) -> Self {
        Self { queue, least, claimed: None }
    }
}

/// The thread's part, now and then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tend {
    contents: Contents,
    step: TendStep,
}

#[derive(Clone, Copy, Debug)]
enum TendStep {
    Closes,
    Runs,
    Advances,
    Hurries,
    Ends,
}

impl Tend {
    pub(super) const fn new(contents: Contents) -> Self {
        Self { contents, step: TendStep::Closes }
    }
}

/// Waiting for a grace period at the limit, and running what is ready then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settle {
    queue: Option<QueueId>,
    step: SettleStep,
}

#[derive(Clone, Copy, Debug)]
enum SettleStep {
    Closes,
    Waits,
    Runs,
    Ran,
}

impl Settle {
    pub(super) const fn new(queue: Option<QueueId>) -> Self {
        Self { queue, step: SettleStep::Closes }
    }
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

    pub(super) const fn close(queue: QueueId, urgency: Urgency) -> Frame {
        Frame::Close(Close { queue, urgency, asked: false })
    }

    pub(super) fn close_step(&mut self, frame: &mut Close) -> Next {
        if !frame.asked {
            frame.asked = true;
            return match self.is_open(frame.queue) {
                true => Next::Spend(self.options.costs.request_ns(), Spending::GracePeriods),
                false => Next::Done,
            };
        }
        let sequence = self.domain.machine.sequence();
        let queue = &mut self.callbacks.queues[frame.queue];
        queue.segments.advance(sequence);
        let closed = queue.close();
        queue.segments.push(closed);
        if queue.segments.has_untagged() {
            let cookie = self.domain.machine.request(frame.urgency);
            queue.segments.accelerate(cookie);
        }
        Next::Done
    }

    pub(super) fn run_step(&mut self, id: ThreadId, frame: &mut Run) -> Next {
        let own = self.callbacks.of_thread.get(id) == Some(&Some(frame.queue));
        let callback_ps = self.options.costs.callback_ps(own);
        match frame.claimed {
            None => {
                let sequence = self.domain.machine.sequence();
                let queue = &mut self.callbacks.queues[frame.queue];
                self.threads[id].result = 0;
                if queue.running {
                    return Next::Done;
                }
                queue.segments.advance(sequence);
                let ready = queue.segments.ready();
                let mut claimed = batch::in_one_go(ready, frame.least, BATCH);
                if claimed == 0 {
                    return Next::Done;
                }
                if batch::is_timed(claimed) {
                    // The clock is looked at after so many.
                    let most = (self.options.run_ns * 1_000).div_ceil(callback_ps.max(1));
                    claimed = claimed.min(most.max(1).div_ceil(RUN_CHUNK) * RUN_CHUNK);
                }
                queue.running = true;
                frame.claimed = Some(claimed);
                let lock_ns = ns(self.options.costs.machine.lock);
                Next::Spend(lock_ns + ns(claimed * callback_ps), Spending::Callbacks)
            }
            Some(claimed) => {
                self.finish(frame.queue, claimed, own);
                self.threads[id].result = claimed;
                Next::Done
            }
        }
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

    pub(super) fn tend_step(&mut self, id: ThreadId, frame: &mut Tend) -> Next {
        let at = self.queue_of(id);
        match (frame.step, frame.contents) {
            (TendStep::Closes, contents) => {
                let alone = contents == Contents::Objects && self.domain.alone;
                let full = self.is_full(at, if alone { BATCH_ALONE } else { BATCH });
                frame.step = match contents {
                    Contents::Objects => TendStep::Runs,
                    Contents::Closures if full => TendStep::Advances,
                    Contents::Closures => TendStep::Ends,
                };
                if full {
                    self.trim(at);
                    return Next::Call(Self::close(at, batch::urgency(self.zone())));
                }
                Next::Spend(0, Spending::Own)
            }
            (TendStep::Runs, _) => {
                frame.step = TendStep::Advances;
                Next::Call(Frame::Run(Run::new(at, RUN_SHARE)))
            }
            (TendStep::Advances, contents) => {
                let ran = self.threads[id].result;
                let (advances, then) = match contents {
                    Contents::Objects => (batch::advances(ran, || self.wants(at)), TendStep::Ends),
                    Contents::Closures => (true, TendStep::Hurries),
                };
                frame.step = then;
                let frame = advances.then(|| self.advance(id, false)).flatten();
                frame.map_or(Next::Spend(0, Spending::Own), Next::Call)
            }
            (TendStep::Hurries, _) => {
                self.hurry_worker();
                Next::Done
            }
            (TendStep::Ends, _) => Next::Done,
        }
    }

    fn is_full(&self, at: QueueId, batch: u64) -> bool {
        let queue = &self.callbacks.queues[at];
        batch::is_full(queue.open.objects, queue.open.bytes, batch, self.options.limit)
    }

    pub(super) fn settle_step(&mut self, id: ThreadId, frame: &mut Settle) -> Next {
        match frame.step {
            SettleStep::Closes => {
                frame.step = SettleStep::Waits;
                match frame.queue {
                    Some(queue) => Next::Call(Self::close(queue, Urgency::Expedited)),
                    None => Next::Spend(0, Spending::Own),
                }
            }
            SettleStep::Waits => {
                frame.step = SettleStep::Runs;
                Next::Call(self.waits(Urgency::Expedited))
            }
            SettleStep::Runs => {
                let Some(queue) = frame.queue else { return Next::Done };
                frame.step = SettleStep::Ran;
                Next::Call(Frame::Run(Run::new(queue, self.options.run_min)))
            }
            SettleStep::Ran => {
                let Some(queue) = frame.queue else { return Next::Done };
                if self.threads[id].result != 0 && self.zone() != Zone::Free {
                    frame.step = SettleStep::Runs;
                    return Next::Spend(0, Spending::Own);
                }
                self.trim(queue);
                Next::Done
            }
        }
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
