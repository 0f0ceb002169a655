//! Queues across a `fork`: locked before it, repaired in the child.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use grace::limit::Amount;

use super::list::Shared;
use super::run::Ran;
use super::scanned::Scanned;
use super::{Inner, Lost, Queue, Queues, bytes_between};
use crate::os::sync::{self, MutexGuard};
use crate::reclaim::charge::Charged;
use crate::reclaim::running;

/// The shared queues of a domain, locked across a `fork`: no thread writes to them.
pub(crate) struct HeldShared<'a>(#[allow(dead_code)] MutexGuard<'a, Shared>);

/// The list of a domain's queues, locked across a `fork`: no queue is added or removed.
pub(crate) struct Held<'a>(MutexGuard<'a, Vec<Arc<Queue>>>);

impl Queues {
    /// Before a `fork`: locks them in addition to those of other domains.
    pub(crate) fn hold_shared(&self) -> HeldShared<'_> {
        HeldShared(sync::lock_another(&self.shared))
    }

    /// Before a `fork`: locks it in addition to those of other domains.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held(sync::lock_another(&self.list))
    }
}

impl Held<'_> {
    /// Takes the locks of all queues.
    ///
    /// # Safety
    /// The returned locks are released before `self` is.
    pub(crate) unsafe fn hold_queues(&self) -> Vec<HeldQueue<'static>> {
        let queues = self.0.iter().map(|queue| {
            // SAFETY: the list keeps the queues alive, and by the contract it is locked until the
            // guards are gone.
            let queue: &'static Queue = unsafe { &*Arc::as_ptr(queue) };
            HeldQueue(sync::lock_another(&queue.inner))
        });
        queues.collect()
    }

    /// In the child: no other thread runs callbacks, and the other threads' queues are orphans.
    /// Their callbacks are run by the next `barrier`, or by the worker once it has started again.
    /// `callback_queues` is the charge of the callback queues.
    pub(crate) fn after_fork(
        &self,
        held: &mut [HeldQueue<'_>],
        core: &Charged,
        owner: usize,
        callback_queues: Amount,
    ) {
        for (queue, held) in self.0.iter().zip(held) {
            let gone = held.0.runner != owner && held.0.runner != 0;
            //~ runner-after-fork:
            if gone {
                held.0.forget_runner(queue);
            }
            held.0.count_lost(queue);
            held.0.waiters = 0;
            // Not `barriers`: this thread may be in one, in a callback that it runs. If another
            // thread was, the queue's callbacks are run there, and never move.
            if queue.owner != owner && queue.owner != 0 {
                queue.local_stock().forget();
                queue.orphan.store(true, Release);
            }
        }
        // Threads were stopped wherever they were, so the charge is counted anew.
        core.kept.after_fork();
        let others = callback_queues.plus(core.kept.amount());
        let charged = self.0.iter().fold(others, |all, queue| all.plus(queue.charged()));
        // This thread's callbacks may have queued others in the room of those that ran before them.
        // That room is in `charged` twice, since the latter are not counted as finished yet.
        core.charge.0.set(charged.minus(running::spent(core)));
    }
}

/// One queue, locked across a `fork`.
pub(crate) struct HeldQueue<'a>(MutexGuard<'a, Inner>);

impl Inner {
    /// In a child process: the thread that was running callbacks is gone, with those that it had
    /// claimed. Their charge is given back as far as it is known without reading objects that may
    /// have been freed; see [`Lost`].
    fn forget_runner(&mut self, queue: &Queue) {
        // The objects that it had found protected are gone with it.
        self.scanned = Scanned::default();
        let mut cursor = self.cursor;
        let mut lost = Ran::default();
        while lost.count < self.claimed {
            // SAFETY: `claimed` callbacks were written and not read; there is no other thread.
            let run = unsafe { cursor.next(self.claimed - lost.count) };
            lost.count += run.count;
            lost.bytes += run.kind.bytes.map_or(0, |bytes| bytes * run.count);
        }
        // The charge is counted anew after this.
        let _: Amount = self.finish(queue, lost, cursor);
    }

    /// In a child process: see [`Lost`].
    fn count_lost(&mut self, queue: &Queue) {
        let (own, finished) = (&queue.own.0, queue.finished.load(Relaxed));
        let all = Lost { finished: own.stream.written(), bytes: own.bytes.load(Relaxed) };
        if all.finished == finished {
            queue.bytes_finished.store(all.bytes, Relaxed);
        }
        self.lost = (all.finished != finished).then_some(all);
    }
}

impl Queue {
    /// The charge of the callbacks that wait here and of the local stock. No other thread exists.
    fn charged(&self) -> Amount {
        let bytes = self.own.0.bytes.load(Relaxed);
        let waiting = Amount {
            objects: self.own.0.stream.written() - self.finished.load(Relaxed),
            bytes: bytes_between(self.bytes_finished.load(Relaxed), bytes),
        };
        waiting.plus(self.local_stock().stock().left())
    }
}
