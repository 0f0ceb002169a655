//! Queues across a `fork`: locked before it, repaired in the child.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use grace::limit::Amount;

use super::run::{Ran, Scanned};
use super::{Inner, Lost, Queue, Queues, bytes_between};
use crate::os::forking::{AtFork, Held};
use crate::os::sync::{self, Rank};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::running;

impl AtFork for Inner {}

impl AtFork for Vec<Arc<Queue>> {
    fn hold(&self, held: &mut Held) {
        for queue in self {
            // SAFETY: the list owns the queue, and is unlocked after it.
            let queue: &'static Queue = unsafe { &*Arc::as_ptr(queue) };
            held.add(Rank::Queue, &queue.inner);
        }
    }
}

impl Queues {
    /// Before a `fork`: has the locks taken, so that no thread writes to the shared queues, and no
    /// queue is added or removed.
    pub(crate) fn hold(&'static self, held: &mut Held) {
        held.add(Rank::Queues, &self.list);
    }

    /// In the child: no other thread runs callbacks, and the other threads' queues are orphans.
    /// Their callbacks are run by the next `barrier`, or by the worker once it has started again.
    /// `callback_queues` is the charge of the callback queues.
    pub(crate) fn after_fork(&self, domain: &DomainState, owner: usize, callback_queues: Amount) {
        let list = sync::lock(&self.list);
        for queue in list.iter() {
            let mut inner = sync::lock(&queue.inner);
            let gone = inner.runner != owner && inner.runner != 0;
            //~ runner-after-fork:
            if gone {
                inner.forget_runner(queue);
            }
            inner.count_lost(queue);
            inner.waiters = 0;
            // Not `barriers`: this thread may be in one, in a callback that it runs. If another
            // thread was, the queue's callbacks are run there, and never move.
            if queue.owner != owner && !queue.is_shared() {
                queue.local_stock().forget();
                queue.orphan.store(true, Release);
            }
        }
        // Threads were stopped wherever they were, so the charge is counted anew.
        domain.kept.after_fork();
        let others = callback_queues.plus(domain.kept.amount());
        let charged = list.iter().fold(others, |all, queue| all.plus(queue.charged()));
        // This thread's callbacks may have queued others in the room of those that ran before them.
        // That room is in `charged` twice, since the latter are not counted as finished yet.
        domain.charge.set(charged.minus(running::spent(&domain.grace_periods)));
    }
}

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
