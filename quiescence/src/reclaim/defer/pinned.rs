//! The part of threads that defer in sections only: when their outermost section has ended, in the
//! midst of nothing else.

use grace::Urgency;
use grace::batch::{self, BATCH, TEND_EVERY};
use grace::limit::Context;

use super::context;
use crate::reclaim::at_limit::run_share;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::local::{self, Own};
use crate::reclaim::thread_queue::Contents;

/// Whether the calling thread may run callbacks, and wait where no reader is in the way: it is in
/// no section, in no callback, and does not unwind.
pub(crate) fn may_drain() -> bool {
    context() == Context::Outside && !std::thread::panicking()
}

/// Objects of a thread that are worth a grace period of their own, beside other readers: its fence
/// interrupts them, and threads that flush do so after each update.
const WORTH_A_FENCE: u64 = 64;

/// The grace period of what this thread has retired begins, as far as that waits for company and is
/// worth it.
pub(crate) fn close_own(core: &DomainState) {
    if let Some(queue) = local::own_objects(core)
        && (is_alone(core) || queue.is_full(core, WORTH_A_FENCE))
    {
        queue.close(core, Urgency::Normal);
    }
}

/// Whether no other thread reads in the domain, so that a grace period takes no fence.
fn is_alone(core: &DomainState) -> bool {
    core.readers() <= Own::in_domain(core).slots()
}

/// A section has ended in which this thread has retired objects, or flushed: it drops a few more
/// than it has retired, of those that are ready, and takes a step of the grace period. Where it has
/// flushed, and no other thread reads in the domain, it drops all that has been retired in it, up
/// to a batch of each thread. Not in a section around it. Waits for nothing.
#[cold]
pub(crate) fn catch_up_after_section(core: &DomainState, flushed: bool) {
    if !may_drain() {
        return;
    }
    if flushed && is_alone(core) {
        return drop_all_that_is_ready(core);
    }
    if let Some(queue) = local::own_objects(core)
        && (flushed || queue.added() >= TEND_EVERY.into())
    {
        let share = batch::run_share(queue.take_added());
        if batch::advances(run_share(core, queue, share), || queue.wants()) {
            core.advance(Own::in_domain(core).me());
        }
    }
}

fn drop_all_that_is_ready(core: &DomainState) {
    let mut queues = core.queues.all();
    queues.retain(|queue| queue.contents() == Contents::Objects);
    queues.iter().for_each(|queue| queue.close(core, Urgency::Expedited));
    core.advance_at_tick(Own::in_domain(core).me());
    queues.iter().for_each(|queue| _ = run_share(core, queue, BATCH));
    core.queues.forget_orphans(core);
}
