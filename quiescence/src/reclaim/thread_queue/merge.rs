//! Orphaned callbacks: the last callbacks of a thread that has ended move to a queue that all such
//! threads share.
//!
//! A queue costs a page and its counts, however few callbacks it has; short-lived threads would
//! leave thousands of queues behind one stalled reader. So the callbacks are moved, in their order,
//! to the end of the shared queue of their [`Contents`](super::Contents), and the thread's queue is
//! removed. They stay charged, and wait for a grace period that begins after the move.
//!
//! **Invariant [TQ-4]: whenever the list's lock is free, a callback that moves is in exactly one
//! queue of the list; and it moves into a shared queue.** A thread that asks all queues at one
//! moment, as the worker does before it leaves a domain, holds that lock. Nothing moves out of a
//! queue that a barrier waits for [TQ-5].
//!
//! **A callback moves at most once**, together with all others of its queue: so callbacks of one
//! thread stay in order [TQ-2].

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use grace::limit::Amount;
use grace::{Segments, Urgency};

use super::run::Ran;
use super::{Queue, Queues};
use crate::os::sync;
use crate::reclaim::charge::Charged;

/// The most callbacks that are moved. A longer queue is worth its pages; and the thread that moves
/// them holds locks.
const MERGE_MAX: u64 = 1_024;

impl Queues {
    /// The thread of this queue is gone, and has marked it an orphan: removes the queue from the
    /// list and moves its callbacks to a shared one, unless [`Queue::move_to`] refuses.
    pub(crate) fn leave_behind(&self, core: &Charged, queue: &Queue) {
        self.forget(core, |one| std::ptr::eq(Arc::as_ptr(one), queue));
    }

    /// The same for all orphaned queues.
    pub(crate) fn forget_orphans(&self, core: &Charged) {
        self.forget(core, |_| true);
    }

    fn forget(&self, core: &Charged, which: impl Fn(&Arc<Queue>) -> bool) {
        let mut shared = sync::lock(&self.shared);
        let mut list = sync::lock(&self.list);
        let mut at = 0;
        while let Some(queue) = list.get(at).cloned() {
            at += 1;
            let is_shared = shared.has(&queue);
            if !which(&queue) || !is_shared && !queue.is_orphan() {
                continue;
            }
            //~ lost-tail:
            let moved = if queue.is_empty() {
                if is_shared {
                    shared.forget(&queue);
                }
                Some(0)
            } else if is_shared {
                None
            } else {
                queue.move_to(core, || shared.queue(core, queue.contents, &mut list))
            };
            if let Some(moved) = moved {
                // Relaxed: under the list's lock. Moved callbacks are counted in the shared queue.
                self.gone.fetch_add(queue.own.0.stream.written() - moved, Relaxed);
                at -= 1;
                list.remove(at);
            }
        }
        core.charge.0.queues.store(list.len() as u64, Relaxed);
    }
}

impl Queue {
    /// Moves all callbacks to the queue that `to` returns. Returns how many; `None` if none moved,
    /// since a thread runs them, some are ready or lost, a barrier waits for them, or there are
    /// more than [`MERGE_MAX`]. The thread that added them is gone; the caller holds the locks of
    /// the shared queues and of the list.
    fn move_to<'q>(&self, core: &Charged, to: impl FnOnce() -> &'q Arc<Self>) -> Option<u64> {
        let mut inner = sync::lock(&self.inner);
        inner.ripen(core);
        inner.count(self);
        let count = inner.segments.len();
        let is_awaited = inner.barriers != 0; // [TQ-5] //~ awaited-move
        let stays = inner.runner != 0 || inner.segments.ready() != 0 || inner.lost.is_some();
        if stays || is_awaited || count > MERGE_MAX {
            return None;
        }
        let to = to();
        let mut cursor = inner.cursor;
        let mut left = count;
        while left != 0 {
            // SAFETY: `left` callbacks were counted and not read yet, and no other thread reads:
            // there is no runner, and the lock is held.
            let run = unsafe { cursor.next(left) };
            left -= run.count;
            // SAFETY: the caller is the writer of the shared queue; what was read here is not run
            // here.
            unsafe { to.own.0.stream.push_run(&run) };
        }
        // Relaxed: this thread is the writer of `to`, and the writer of `self` is gone.
        let bytes = self.own.0.bytes.load(Relaxed);
        let bytes = bytes.wrapping_sub(self.bytes_finished.load(Relaxed));
        let own = &to.own.0;
        own.bytes.store(own.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        let was_closed = inner.segments.awaited().is_some();
        inner.segments = Segments::new(core.sequence());
        // Not given back: the callbacks stay charged.
        let _: Amount = inner.finish(self, Ran { count, bytes, panicked: 0 }, cursor);
        drop(inner);
        if was_closed {
            to.close(core, Urgency::Background); // they waited for a grace period already
        }
        Some(count)
    }
}
