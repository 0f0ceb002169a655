//! The statistics of a domain, put together from what its parts have counted.

use std::sync::atomic::Ordering::Relaxed;

use crate::event::statistics::Statistics;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::worker;

impl Statistics {
    /// Those of a domain now.
    pub(crate) fn of(core: &DomainState) -> Self {
        // What has run first: so it is never more than what was queued.
        // What is kept first: it has left its queue, which counts it as run.
        let kept = core.kept.amount();
        let callbacks = core.queues.counts().plus(core.callback_queues.counts());
        // What is kept though no queue had it counts as queued and run, too.
        let unqueued = core.kept.unqueued();
        // Relaxed, all of them: counts, and nothing is inferred from them.
        let counters = core.counters();
        Self {
            grace_periods: core.sequence().ended(),
            grace_periods_expedited: counters.expedited.get(),
            latency: counters.latency.get(),
            heavy_fences: counters.heavy_fences.load(Relaxed),
            sleeps: counters.sleeps.load(Relaxed),
            worker_ns: counters.worker_ns.load(Relaxed),
            worker_callbacks_ns: counters.worker_callbacks_ns.load(Relaxed),
            readers: core.readers() as u64,
            waiters: core.waiters() as u64,
            callbacks_queued: callbacks.queued + unqueued,
            callbacks_run: (callbacks.run + unqueued).saturating_sub(kept.objects),
            callbacks_panicked: counters.callbacks_panicked.load(Relaxed),
            bytes_waiting: callbacks.bytes_waiting.saturating_add(kept.bytes),
            objects_protected: kept.objects,
            bytes_protected: kept.bytes,
            batches: counters.batches.load(Relaxed),
            limit_waits: counters.limit_waits.load(Relaxed),
            limit_refusals: counters.limit_refusals.load(Relaxed),
            limit_overruns: counters.limit_overruns.load(Relaxed),
            stalls: counters.stalls.load(Relaxed),
            worker_restarts: worker::restarts(),
        }
    }
}
