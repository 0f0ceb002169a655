//! Work at the end of a guard or a collector: a thread that defers only in sections has no other
//! place to run what it has deferred.

use grace::Urgency;
use grace::batch;
use grace::limit::Context;

use crate::gp::grace_periods::Me;
use crate::reclaim::at_limit::context;
use crate::reclaim::domain_state::{DomainState, Named};
use crate::reclaim::thread_queue::{BATCH, Contents, OwnQueue};
use crate::reclaim::{defer, local};

/// Whether the calling thread may run callbacks, and wait for readers: it is in no section, in no
/// callback, and does not unwind.
pub(super) fn may_drain() -> bool {
    context() == Context::Outside && !std::thread::panicking()
}

/// How many objects of a thread are worth a grace period of their own if there are other readers:
/// its fence interrupts them, and threads that flush do so after each update.
const WORTH_A_FENCE: u64 = 64;

/// How many objects and functions a thread defers in sections before it runs about as many that are
/// ready. A go has a cost of its own (the queue's lock, its account), some 600 instructions, and so
/// has the look whether one is due; shared by 102, they are a tenth of what one function costs. As
/// many as six rounds of additions have, at the end of which it is compared; of more, the share
/// would take three goes.
const SHARE: u64 = 6 * batch::ROUND.0;
const _: () = {
    assert!(batch::run_share(SHARE) <= 2 * batch::RUN_UNTIMED, "two goes run a share");
};

/// The thread flushes. Asks for a grace period for its open objects, if there is no other reader,
/// or there are [`WORTH_A_FENCE`] of them, or it has flushed so often since it last asked: that is
/// no more often if it flushes after each update, and if it flushes until something is dropped it
/// need not wait for the worker.
pub(super) fn close_own(domain: &DomainState) {
    let Some(queue) = local::own_objects(domain) else { return };
    let flushes = queue.local_stock().flushes.get().saturating_add(1);
    let enough = if u64::from(flushes) < WORTH_A_FENCE { WORTH_A_FENCE } else { 1 };
    let closes = is_alone(domain) || queue.is_full(domain, enough);
    queue.local_stock().flushes.set(if closes { 0 } else { flushes });
    if closes {
        queue.close(domain, Urgency::Normal);
    }
}

/// Whether no other thread reads in the domain, so that a grace period takes no fence.
fn is_alone(domain: &DomainState) -> bool {
    domain.grace_periods.readers() <= local::slots_in(domain)
}

/// Tends the queue if a batch is full, or the calling thread has retired [`SHARE`] objects in the
/// domain since it last dropped some. Returns whether that is so: then it is to drop some when its
/// section ends. Out of line, as only the last addition of a round calls it.
#[cold]
pub(super) fn tend_if_share(tag: &dyn Named, queue: OwnQueue<'_>) -> bool {
    let is_share =
        queue.local_stock().added(queue.written()) >= SHARE || queue.is_full(tag.core(), BATCH);
    if is_share {
        defer::tend(tag, queue);
    }
    is_share
}

/// A section has ended in which this thread [was due](tend_if_share), or flushed. Drops a few more
/// ready objects than it has retired since the last time; if none is ready, takes a step of the
/// grace period. If it has `flushed` and no other thread reads in the domain, drops all that was
/// retired in the domain, up to a batch of each thread. Nothing if the thread is in an outer
/// section, a callback, or unwinds. Never waits.
#[cold]
pub(super) fn catch_up_after_section(domain: &DomainState, flushed: bool) {
    if !may_drain() {
        return;
    }
    if flushed && is_alone(domain) {
        return drop_all_that_is_ready(domain);
    }
    if let Some(queue) = local::own_objects(domain) {
        let added = queue.local_stock().take_added(queue.written());
        defer::run_or_advance(domain, &queue, batch::run_share(added));
    }
}

fn drop_all_that_is_ready(domain: &DomainState) {
    let mut queues = domain.queues.all();
    queues.retain(|queue| queue.contents == Contents::Objects);
    queues.iter().for_each(|queue| queue.close(domain, Urgency::Expedited));
    domain.grace_periods.advance_at(Me::this_thread(), true);
    queues.iter().for_each(|queue| _ = defer::run_share(domain, queue, batch::BATCH));
    domain.queues.forget_orphans(domain);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::mem::MaybeUninit;
    use std::time::Duration;

    use super::*;
    use crate::Domain;
    use crate::domain::epoch::{Collector, Owned};
    use crate::tuning::Tuning;

    /// A past error: an eighth of the limit went unnoticed unless each ninth object was as large as
    /// those that made it.
    #[test]
    fn large_objects_among_small_ones_are_closed_in_time() {
        const LARGE: usize = 1 << 15;
        const LIMIT: usize = 32 * LARGE;
        let domain = Domain::new();
        domain.tune(Tuning {
            objects_max: 1 << 16,
            bytes_max: LIMIT as u64,
            lazy: Duration::MAX, // the worker closes nothing
            ..domain.tuning()
        });
        let handle = Collector::new_in(domain.clone()).register();
        let guard = handle.pin();
        for size in [LARGE, 64, 64].repeat(LIMIT / 4 / LARGE) {
            let object = Owned::<[MaybeUninit<u8>]>::init(size).into_shared(&guard);
            // SAFETY: no other thread knows of it.
            unsafe { guard.defer_destroy(object) };
        }
        let queue = local::own_objects(domain.core()).expect("used above");
        assert!(!queue.is_all_open(), "a quarter of the limit");
    }
}
