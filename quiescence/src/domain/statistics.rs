//! The statistics of a domain, collected from the counts of its parts.

use crate::event::statistics::Statistics;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::worker;

impl Statistics {
    /// Those of a domain now.
    pub(crate) fn of(core: &DomainState) -> Self {
        // What is kept is read before the queues: it has left its own, which counts it as run.
        let kept = core.kept.amount();
        let callbacks = core.queues.counts().plus(core.callback_queues.counts());
        // What is kept though no queue had it counts as queued and run, too.
        let unqueued = core.kept.unqueued();
        let mut all = core.grace_periods.counters().get();
        all.grace_periods = core.grace_periods.sequence().ended();
        all.readers = core.grace_periods.readers() as u64;
        all.waiters = core.grace_periods.waiters() as u64;
        all.callbacks_queued = callbacks.queued + unqueued;
        all.callbacks_run = (callbacks.run + unqueued).saturating_sub(kept.objects);
        all.bytes_waiting = callbacks.bytes_waiting.saturating_add(kept.bytes);
        all.objects_protected = kept.objects;
        all.bytes_protected = kept.bytes;
        all.worker_restarts = worker::restarts();
        all
    }
}
