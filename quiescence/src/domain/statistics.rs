//! The statistics of a domain, collected from the counts of its parts; and its limits.

use std::sync::atomic::Ordering::Relaxed;

use crate::domain::domain::Domain;
use crate::domain::impls::shown_in_part;
use crate::domain::tag::DomainTag;
use crate::event::statistics::Statistics;
use crate::gp::tuning::Tuning;
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
        let state = core.grace_periods.lock();
        all.waiters = state.sleepers as u64 + u64::from(state.driven); // the driver, too
        drop(state);
        all.callbacks_queued = callbacks.queued + unqueued;
        all.callbacks_run = (callbacks.run + unqueued).saturating_sub(kept.objects);
        all.bytes_waiting = callbacks.bytes_waiting.saturating_add(kept.bytes);
        all.objects_protected = kept.objects;
        all.bytes_protected = kept.bytes;
        all.worker_restarts = worker::RESTARTS.load(Relaxed);
        all
    }
}

impl<K: DomainTag> Domain<K> {
    /// The current deferral limits of this domain.
    pub fn tuning(&self) -> Tuning {
        self.core().grace_periods.tuning.get()
    }

    /// Sets the deferral limits of this domain from now on. If more is already queued than a new
    /// limit allows, nothing is lost: the next thread that retires waits. Room that threads have
    /// already reserved counts against a new limit until they defer again.
    pub fn tune(&self, tuning: Tuning) {
        self.core().grace_periods.tuning.set(tuning);
        worker::retune(&self.tag().handle());
    }

    /// Counts of what has happened in this domain.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(self.core())
    }
}

shown_in_part!([K: DomainTag] Domain<K> {
    sequence: |domain| domain.core().grace_periods.sequence(),
    readers: |domain| domain.core().grace_periods.readers()
});
