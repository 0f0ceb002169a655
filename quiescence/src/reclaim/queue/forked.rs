//! Queues across a `fork`: held before it, put right in the child.

use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

use grace::limit::Amount;

use super::list::Shared;
use super::{Inner, Queue, Queues};
use crate::chaos::{self, Mutant};
use crate::os::sync::{self, MutexGuard};
use crate::reclaim::domain_state::DomainState;

/// What is held across a `fork`.
pub(crate) struct Held<'a> {
    list: MutexGuard<'a, Vec<Arc<Queue>>>,
    _shared: MutexGuard<'a, Shared>,
}

impl Queues {
    /// Before a `fork`: the list, so that no queue comes or goes.
    pub(crate) fn hold(&self) -> Held<'_> {
        // `shared` before `list`, as in `with_shared`.
        let shared = sync::lock(&self.shared);
        Held { list: sync::lock(&self.list), _shared: shared }
    }
}

impl Held<'_> {
    /// The queues in the list.
    pub(crate) fn queues(&self) -> &[Arc<Queue>] {
        &self.list
    }

    /// In the child: nobody else runs callbacks, and the other threads' queues are orphans. What
    /// they hold is run by the next `barrier`, or by the worker once it has started again.
    /// `lanes` is what waits in lanes.
    pub(crate) fn after_fork(
        &self,
        held: &mut [HeldQueue<'_>],
        core: &DomainState,
        owner: usize,
        lanes: Amount,
    ) {
        for (queue, held) in self.list.iter().zip(held) {
            let gone = held.0.runner != owner && held.0.runner != 0;
            if gone && !chaos::mutant(Mutant::RunnerAfterFork) {
                held.0.forget_runner(queue);
            }
            held.0.count_lost(queue);
            held.0.waiters = 0;
            if queue.owner != owner && queue.owner != 0 {
                queue.purse().forget();
                queue.orphan.store(true, Release);
            }
        }
        // Threads were stopped wherever they were: what is charged is counted anew.
        let charged = self.list.iter().fold(lanes, |all, queue| all.plus(queue.charged()));
        core.charge.0.set(charged);
    }
}

/// One queue, held across a `fork`.
pub(crate) struct HeldQueue<'a>(MutexGuard<'a, Inner>);

impl Queue {
    /// Before a `fork`.
    pub(crate) fn hold(&self) -> HeldQueue<'_> {
        HeldQueue(sync::lock(&self.inner))
    }
}
