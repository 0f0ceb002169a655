//! Queues of callbacks that wait for grace periods.
//!
//! A thread writes callbacks into the [stream](crate::reclaim::stream) of a queue of its own: no
//! lock, no atomic read-modify-write. From time to time the thread itself or the worker *closes*
//! what has been written: counts it and asks for a grace period on its behalf. [`grace::Segments`]
//! says how many callbacks, from the front, wait for which cookie; when the cookie is done they are
//! ready and are run, a few at a time.
//!
//! **Who closes and runs, when, and how many, is decided here and elsewhere**
//! ([`crate::reclaim::defer`], `at_limit`, `queues`, the worker), **and cannot be unsound:** the
//! callbacks are [`waiting`]'s, which hands none to a caller. An error here loses count, runs too
//! many at once, or leaves a thread waiting.
//!
//! **Invariant [TQ-2]: one thread at a time runs the callbacks of a queue**, first in, first out;
//! so they run in order, and a queue whose count of finished callbacks has reached a mark has run
//! all that came before the mark [DQ-2]. The runner claims some under the lock, runs them without
//! it, and records under the lock how many have finished. A callback may add to this very queue,
//! which takes no lock; if it tries to run the queue, it finds a runner and does nothing.
//!
//! **Invariant [TQ-3]: what waits is charged.** A callback is admitted by
//! [`charge`](crate::reclaim::domain_state::charge) before it is written; its room is free again
//! right before it runs: a callback that queues itself again finds the room that it had.
//!
//! The callbacks of a thread that has ended move to a queue that all such threads share: see
//! [`queues`](super::queues).

#![cfg_attr(not(test), deny(unsafe_code))]

#[cfg(test)]
mod tests;
#[allow(unsafe_code, reason = "what owns callbacks")]
mod waiting;

pub(crate) use grace::worker::Wants;
#[cfg(test)]
pub(crate) use tests::add;
use waiting::{Claimed, Locked};
pub(crate) use waiting::{Ended, OwnQueue, Queue, Shared};

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::batch::{self, RUN_CHUNK};
use grace::limit::Amount;
use grace::{Cookie, Urgency};

use crate::event::statistics::Callbacks;
use crate::event::trace;
use crate::os::clock;
use crate::os::sync::{AtomicBool, AtomicU64, Condvar};
use crate::os::user_code::{self, Site};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::running::running_callbacks;

/// Callbacks in a full batch, at most; fewer in models.
pub(crate) const BATCH: u64 = if cfg!(loom) { 2 } else { batch::BATCH };

/// The same for objects while grace periods find no other reader.
pub(crate) const BATCH_ALONE: u64 = if cfg!(loom) { 2 } else { batch::BATCH_ALONE };

/// The most callbacks that are moved. A longer queue is worth its pages; and the thread that moves
/// them holds locks.
const MOVED_MAX: u64 = 1_024;

/// What a queue contains: each thread has one queue of either sort in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Retired objects, which the thread that retired them frees itself.
    Objects,
    /// Closures, which the worker runs.
    Closures,
}

/// What is noted of a queue.
#[derive(Debug, Default)]
struct Notes {
    /// Signalled when the thread that ran callbacks has stopped.
    stopped: Condvar,
    /// Bytes that had been added when callbacks were last counted; approximate if the count ran
    /// during an addition.
    bytes_counted: AtomicU64,
    /// Bytes of the callbacks that have finished. Written under the lock.
    bytes_finished: AtomicU64,
    /// The owner is gone; no thread adds any more.
    orphan: AtomicBool,
    /// The owner has run callbacks itself since the worker last asked.
    tended: AtomicBool,
}

/// Who waits for a queue, under its lock.
#[derive(Debug, Default)]
struct Waits {
    /// Threads that wait for the runner to stop.
    waiters: u32,
    /// Barriers that wait for this queue: nothing moves out of it meanwhile [TQ-5].
    barriers: u32,
}

/// `added - finished`, for counts that wrap; 0 if `finished` is ahead of `added`.
fn bytes_between(finished: u64, added: u64) -> u64 {
    added.wrapping_sub(finished).cast_signed().max(0).cast_unsigned()
}

impl Queue {
    /// Asks for a grace period on behalf of all that is open.
    pub(crate) fn close(&self, domain: &DomainState, urgency: Urgency) {
        self.lock().close(domain, urgency, true);
    }

    /// The same for the worker, which does not wait for the lock [W-2]. Returns false if another
    /// thread was in the way.
    pub(crate) fn close_unless_busy(&self, domain: &DomainState, urgency: Urgency) -> bool {
        self.try_lock().is_some_and(|mut locked| locked.close(domain, urgency, false))
    }

    /// What the worker should do for this queue: if another thread holds the lock, it is to come
    /// back [W-2].
    pub(crate) fn wants(&self) -> Wants {
        let Some(locked) = self.try_lock() else { return Wants::Looks };
        Wants::of(locked.segments(), self.is_empty())
    }

    /// Whether all that was added has run.
    pub(crate) fn is_empty(&self) -> bool {
        // `finished` is loaded first, so it is never more than what was added.
        self.finished() == self.written() // [DQ-2]
    }

    /// How many were ever added and have finished, and the bytes that wait.
    pub(crate) fn counts(&self) -> Callbacks {
        // `finished` is loaded before `written`, so `run <= queued`: what happens between the two
        // loads is counted in `queued` only.
        let run = self.finished();
        Callbacks { bytes_waiting: self.bytes_waiting(), queued: self.written(), run }
    }

    fn bytes_waiting(&self) -> u64 {
        bytes_between(self.notes.bytes_finished.load(Relaxed), self.bytes())
    }

    /// The cookie that its oldest callbacks wait for; asks for one if they are open. `None` if some
    /// are ready, or there are none; and if there is a runner, which it waits for as
    /// [`wait_for_runner`](Self::wait_for_runner) does.
    pub(crate) fn request_oldest(&self, domain: &DomainState, urgency: Urgency) -> Option<Cookie> {
        let mut locked = self.lock();
        if locked.has_runner() {
            self.wait_to_stop(locked);
            return None;
        }
        locked.ripen(domain);
        if locked.segments().ready() == 0 && locked.segments().awaited().is_none() {
            locked.close(domain, urgency, true);
        }
        locked.segments().awaited().filter(|_| locked.segments().ready() == 0)
    }

    /// A barrier waits for what has been added so far: until [`end_barrier`](Self::end_barrier)
    /// nothing moves out of the queue [TQ-5]. Returns how many that are.
    pub(crate) fn begin_barrier(&self) -> u64 {
        let mut locked = self.lock();
        locked.waits().barriers += 1;
        self.written()
    }

    pub(crate) fn end_barrier(&self) {
        self.lock().waits().barriers -= 1;
    }

    /// Whether the owner has run callbacks itself since the last call; clears the note. The worker
    /// then leaves the queue to the owner, which can reuse the memory that it frees.
    pub(crate) fn take_tended(&self) -> bool {
        // Relaxed: a hint; at worst the worker comes a tick later or in vain.
        self.notes.tended.load(Relaxed) && self.notes.tended.swap(false, Relaxed)
    }

    /// Whether it is the calling thread's.
    pub(crate) fn is_own(&self) -> bool {
        self.own_stock().is_some() && !self.is_orphan()
    }

    /// Whether its owner is gone.
    pub(crate) fn is_orphan(&self) -> bool {
        self.notes.orphan.load(Acquire) // pairs with the Release in `mark_orphan`
    }
}

impl OwnQueue<'_> {
    /// Whether none of its callbacks is ready or waits for a grace period: all are open.
    pub(crate) fn is_all_open(self) -> bool {
        // A hint. It is mostly the worker that counts some and asks for a grace period for them;
        // the owner, which may see an old count, looks here again at its next additions.
        self.counted() == self.finished()
    }

    /// Whether its open callbacks are a [full batch](batch::is_full) of `batch`.
    pub(crate) fn is_full(self, domain: &DomainState, batch: u64) -> bool {
        let bytes = bytes_between(self.notes.bytes_counted.load(Relaxed), self.bytes());
        batch::is_full(self.written() - self.counted(), bytes, batch, domain.limit())
    }

    /// The thread adds no more; what is left of its local stock goes back to the domain.
    pub(crate) fn mark_orphan(self, domain: &DomainState) {
        self.local_stock().empty(domain); //~ lost-local-stock
        // Release: pairs with the Acquire in `is_orphan`; what was added comes before.
        self.notes.orphan.store(true, Release); //~ relaxed-orphan
    }
}

// ---- run ----------------------------------------------------------------------------------------

impl Queue {
    /// Runs about `least` of the ready callbacks ([`batch::in_one_go`]), unless the queue has a
    /// runner. Returns how many.
    pub(crate) fn run_some(&self, domain: &DomainState, least: u64) -> u64 {
        self.run_locked(self.lock(), domain, least, self.is_orphan())
    }

    /// The same for the worker: none if another thread holds the lock [W-2].
    pub(crate) fn run_some_unless_busy(&self, domain: &DomainState, least: u64) -> u64 {
        // One go only (`all` is false): the worker comes back, in this turn or in the next one.
        self.try_lock().map_or(0, |locked| self.run_locked(locked, domain, least, false))
    }

    /// At the end of a domain: runs what has been added, or about a batch of it. Returns how many.
    pub(crate) fn run_all(&self, domain: &Ended<'_>) -> u64 {
        let mut locked = self.lock();
        locked.end(domain);
        self.run_locked(locked, domain, u64::MAX, true)
    }

    fn run_locked<'q>(
        &'q self,
        mut locked: Locked<'q>,
        domain: &'q DomainState,
        least: u64,
        all: bool,
    ) -> u64 {
        let mut count = 0;
        while let Some(mut claimed) = locked.claim(domain, least) {
            //~ point before-callbacks
            let made = self.run(domain, &mut claimed);
            count += made.objects;
            locked = claimed.finish(made.bytes);
            if locked.waits().waiters != 0 {
                self.notes.stopped.notify_all();
            }
            // The queue of an ended thread: while this thread is its runner, no other thread can
            // run it to settle what the ended one owed. So run all that is ready, about a batch.
            if !all || count > BATCH {
                drop(locked);
                break;
            }
        }
        if count != 0 {
            domain.grace_periods.tell_of_room();
        }
        count
    }

    /// Runs what was claimed, without the lock; less if that takes too long. Returns what it has
    /// run.
    fn run(&self, domain: &DomainState, claimed: &mut Claimed<'_>) -> Amount {
        let mut panicked = 0;
        // Without a clock if there are few.
        let ends_ns = batch::is_timed(claimed.len())
            .then(|| clock::monotonic_ns().saturating_add(domain.grace_periods.tuning.run_ns()));
        let (left, made) = running_callbacks(&domain.grace_periods, |running| {
            while claimed.ran() < claimed.len() {
                let until = (claimed.ran() / RUN_CHUNK + 1) * RUN_CHUNK;
                // Many under one catch: where one panics, the next round goes on behind it.
                let some = || claimed.run_until(until, running);
                panicked += u64::from(!user_code::caught(Site::Callback, some));
                if claimed.ran().is_multiple_of(RUN_CHUNK)
                    && ends_ns.is_some_and(|ends_ns| clock::monotonic_ns() >= ends_ns)
                {
                    break;
                }
            }
            (running.room(), running.made.get())
        });
        if panicked != 0 {
            domain.grace_periods.counters().callbacks_panicked.fetch_add(panicked, Relaxed);
        }
        match self.own_stock().filter(|_| !self.is_orphan()) {
            Some(local_stock) => {
                self.notes.tended.store(true, Relaxed); // see `take_tended`
                local_stock.give_back(domain, left);
            }
            None => domain.charge.give_back(left), //~ lost-room
        }
        //~ uncharged-twice
        trace::callbacks_run(domain.grace_periods.source(), made.objects);
        made
    }

    /// Waits for the queue's runner, if there is one; may return before it stops. Returns whether
    /// there was one.
    pub(crate) fn wait_for_runner(&self) -> bool {
        let locked = self.lock();
        let is_running = locked.has_runner();
        if is_running {
            self.wait_to_stop(locked);
        }
        is_running
    }

    fn wait_to_stop(&self, mut locked: Locked<'_>) {
        locked.waits().waiters += 1;
        locked = locked.wait(&self.notes.stopped);
        locked.waits().waiters -= 1;
    }

    /// How many threads wait for the runner.
    #[cfg(test)]
    pub(crate) fn waiters(&self) -> u32 {
        self.lock().waits().waiters
    }
}

// ---- where threads are gone ---------------------------------------------------------------------

impl Queue {
    /// Moves all callbacks of a queue whose thread is gone to a shared queue, that of `shared`.
    /// Returns how many; `None` if none moved, since it is a shared queue itself, its thread is
    /// there, another thread has its lock [W-2] or runs them, some are ready, a barrier waits for
    /// them, or there are more than [`MOVED_MAX`].
    pub(crate) fn move_all<'s>(
        &self,
        domain: &DomainState,
        shared: impl FnOnce() -> OwnQueue<'s>,
    ) -> Option<u64> {
        // Before the count: what the thread has added last is counted.
        if self.is_shared() || !self.is_orphan() {
            return None;
        }
        let mut locked = self.try_lock()?;
        locked.ripen(domain);
        locked.count();
        let is_awaited = locked.waits().barriers != 0; // [TQ-5] //~ awaited-move
        let stays = locked.has_runner() || locked.segments().ready() != 0;
        if stays || is_awaited || locked.segments().len() > MOVED_MAX {
            return None;
        }
        let was_closed = locked.segments().awaited().is_some();
        let to = shared();
        let count = locked.move_to(to, domain);
        // They waited for a grace period already. If another thread is in the way, the worker
        // closes them at its next turn.
        if was_closed && !to.close_unless_busy(domain, Urgency::Background) {
            domain.queues.hurried.store(true, Release); // as in `worker::hurry`
        }
        Some(count)
    }

    /// In the child, which has the calling thread only: no other thread runs callbacks, and the
    /// queues of other threads are orphans. Returns the charge of the callbacks that wait here and
    /// of the local stock.
    pub(crate) fn after_fork(&self) -> Amount {
        let stock = self.stock_in_child();
        let is_own = self.own_stock().is_some();
        let mut locked = self.lock();
        // Nothing is lost of this thread's own, unless another one was running them.
        if locked.has_runner() || !is_own {
            locked.forget_runner();
        }
        locked.waits().waiters = 0;
        // Not `barriers`: this thread may be in one, in a callback that it runs. If another thread
        // was, the queue's callbacks are run there, and never move.
        if !is_own && !self.is_shared() {
            stock.forget();
            self.notes.orphan.store(true, Release);
        }
        let objects = self.written() - self.finished();
        Amount { objects, bytes: self.bytes_waiting() }.plus(stock.stock().left())
    }
}
