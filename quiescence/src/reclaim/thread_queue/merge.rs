//! What threads leave behind: the last callbacks of a thread that has ended go on in a queue that
//! all such threads share.
//!
//! A queue of its own costs a page and its counts, whatever waits in it; threads that are short
//! would pile up thousands of them behind one stalled reader. So the callbacks are moved, in their
//! order, to the end of the shared queue of their sort, and the thread's queue is forgotten. They
//! are charged as before, and wait for a grace period that begins after the move.
//!
//! **Invariant: a callback that moves is in one queue of the list at each moment at which the
//! list's lock is free; and it moves into a shared queue.** Who asks all queues for something at
//! one moment, as the worker does before it leaves a domain, holds that lock. Out of a queue that a
//! barrier waits for nothing moves.
//!
//! **A callback moves once**, and as part of all that its queue has: so callbacks of one thread
//! stay in order.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use grace::limit::Amount;
use grace::{Segments, Urgency};

use super::{Queue, Queues, Ran};
use crate::chaos::{self, Mutant};
use crate::os::sync;
use crate::reclaim::charge::Charged;

/// Callbacks that are moved at most. A queue with more than that is worth its pages; and who moves
/// them holds locks.
const MERGE_MAX: u64 = 1_024;

impl Queues {
    /// The thread of this queue is gone, and has said so: the queue is forgotten, and what waits in
    /// it continues elsewhere, unless somebody is running it.
    pub(crate) fn leave_behind(&self, core: &Charged, queue: &Queue) {
        self.forget(core, |one| std::ptr::eq(Arc::as_ptr(one), queue));
    }

    /// The same for all queues whose threads are gone.
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
            let moved = if queue.is_empty() || chaos::mutant(Mutant::LostTail) {
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
                // Relaxed: under the list's lock. What has moved is counted where it is.
                self.gone.fetch_add(queue.own.0.stream.written() - moved, Relaxed);
                at -= 1;
                list.remove(at);
            }
        }
        core.charge.0.queues.store(list.len() as u64, Relaxed);
    }
}

impl Queue {
    /// Moves what waits here, if it is not being run, nor ready, nor too much, and no barrier waits
    /// for it. Returns how many callbacks.
    ///
    /// The thread that added them is gone; the caller holds the locks of the shared queues and of
    /// the list.
    fn move_to<'q>(&self, core: &Charged, to: impl FnOnce() -> &'q Arc<Self>) -> Option<u64> {
        let mut inner = sync::lock(&self.inner);
        inner.ripen(core);
        inner.count(self);
        let count = inner.segments.len();
        let is_awaited = inner.barriers != 0 && !chaos::mutant(Mutant::AwaitedMove);
        let stays = inner.runner != 0 || inner.segments.ready() != 0 || inner.lost.is_some();
        if stays || is_awaited || count > MERGE_MAX {
            return None;
        }
        let to = to();
        let mut cursor = inner.cursor;
        let mut left = count;
        while left != 0 {
            // SAFETY: so many were counted, and no other thread reads: there is no runner, and the
            // lock is held.
            let run = unsafe { cursor.next(left) };
            left -= run.count;
            // SAFETY: the caller is the writer of the shared queue; what was read here is not run
            // here.
            unsafe { to.own.0.stream.push_run(&run) };
        }
        // Relaxed, all of them: the writer's own, and of one whose thread is gone.
        let bytes = self.own.0.bytes.load(Relaxed);
        let bytes = bytes.wrapping_sub(self.bytes_finished.load(Relaxed));
        let own = &to.own.0;
        own.bytes.store(own.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        let was_closed = inner.segments.awaited().is_some();
        inner.segments = Segments::new(core.sequence());
        // They are charged still.
        let _: Amount = inner.finish(self, Ran { count, bytes, panicked: 0 }, cursor);
        drop(inner);
        if was_closed {
            to.close(core, Urgency::Background); // they have been patient enough
        }
        Some(count)
    }
}
