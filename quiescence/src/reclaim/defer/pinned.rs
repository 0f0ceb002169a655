//! What threads that defer only in sections do for their objects: after their outermost section
//! has ended, if they are not in a callback.

use grace::Urgency;
use grace::batch::{self, BATCH, TEND_EVERY};
use grace::limit::Context;

use super::context;
use crate::reclaim::at_limit::run_share;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::local::{self, Own};
use crate::reclaim::thread_queue::Contents;

/// Whether the calling thread may run callbacks, and wait for readers: it is in no section, in no
/// callback, and does not unwind.
pub(crate) fn may_drain() -> bool {
    context() == Context::Outside && !std::thread::panicking()
}

/// How many objects of a thread are worth a grace period of their own if there are other readers:
/// its fence interrupts them, and threads that flush do so after each update.
const WORTH_A_FENCE: u64 = 64;

/// Asks for a grace period for this thread's open objects, if there is no other reader or there are
/// [`WORTH_A_FENCE`] of them.
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

/// A section has ended in which this thread has retired objects, or flushed. Drops a few more ready
/// objects than it has retired since the last time; if none is ready, takes a step of the grace
/// period. If it has `flushed` and no other thread reads in the domain, drops all that was retired
/// in the domain, up to a batch of each thread. Nothing if the thread is in an outer section, a
/// callback, or unwinds. Never waits.
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
