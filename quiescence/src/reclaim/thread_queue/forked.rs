//! Queues across a `fork`: held before it, put right in the child.

use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

use grace::limit::Amount;

use super::list::Shared;
use super::{Inner, Queue, Queues};
use crate::chaos::{self, Mutant};
use crate::os::sync::{self, MutexGuard};
use crate::reclaim::charge::Charged;
use crate::reclaim::running;

/// The shared queues of a domain, held across a `fork`: no thread writes to them.
pub(crate) struct HeldShared<'a>(#[allow(dead_code)] MutexGuard<'a, Shared>);

/// The list of a domain's queues, held across a `fork`: no queue comes or goes.
pub(crate) struct Held<'a>(MutexGuard<'a, Vec<Arc<Queue>>>);

impl Queues {
    /// Before a `fork`, beside those of other domains.
    pub(crate) fn hold_shared(&self) -> HeldShared<'_> {
        HeldShared(sync::lock_another(&self.shared))
    }

    /// Before a `fork`, beside those of other domains.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held(sync::lock_another(&self.list))
    }
}

impl Held<'_> {
    /// Takes the locks of all queues.
    ///
    /// # Safety
    /// What is held is let go before `self` is.
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
    /// What they hold is run by the next `barrier`, or by the worker once it has started again.
    /// `callback_queues` is what waits in callback queues.
    pub(crate) fn after_fork(
        &self,
        held: &mut [HeldQueue<'_>],
        core: &Charged,
        owner: usize,
        callback_queues: Amount,
    ) {
        for (queue, held) in self.0.iter().zip(held) {
            let gone = held.0.runner != owner && held.0.runner != 0;
            if gone && !chaos::mutant(Mutant::RunnerAfterFork) {
                held.0.forget_runner(queue);
            }
            held.0.count_lost(queue);
            held.0.waiters = 0;
            // Not `barriers`: this thread may be in one, in a callback that it runs. Where another
            // thread was, what is in the queue is run there, and moves nowhere.
            if queue.owner != owner && queue.owner != 0 {
                queue.local_stock().forget();
                queue.orphan.store(true, Release);
            }
        }
        // Threads were stopped wherever they were: what is charged is counted anew.
        core.kept.after_fork();
        let others = callback_queues.plus(core.kept.amount());
        let charged = self.0.iter().fold(others, |all, queue| all.plus(queue.charged()));
        // What this thread's callbacks have queued in the room of those that ran before them is in
        // there twice: these have not finished.
        core.charge.0.set(charged.minus(running::spent(core)));
    }
}

/// One queue, held across a `fork`.
pub(crate) struct HeldQueue<'a>(MutexGuard<'a, Inner>);
