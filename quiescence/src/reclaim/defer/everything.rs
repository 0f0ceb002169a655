//! Runs all that waits: in a domain, for a barrier and at the end of the process; in a queue, at
//! the end of its thread.

use std::sync::Arc;

use grace::Urgency;
use grace::limit::Context;

use super::{context, settle};
use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::os::thread;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::handle::Handle;
use crate::reclaim::local::{Own, Sections};
use crate::reclaim::rescan;
use crate::reclaim::thread_queue::{Contents, Queue, Wants};
use crate::reclaim::worker;

/// [`Domain::barrier`](crate::Domain::barrier).
pub(crate) fn barrier(core: &DomainState, me: impl Fn() -> Me) {
    //~ no-barrier
    let callback_queues = core.callback_queues.begin_barrier(core);
    core.queues.drain(core, &me, thread::token());
    rescan::drain(core);
    callback_queues.finish(core, &core.callback_queues, &me);
    trace::deliver();
}

/// At the orderly end of the process: runs what waits in a domain, as far as that is possible
/// without waiting for other threads. Returns whether nothing is left.
///
/// Like the worker, it does not wait for a queue's lock or the machine's before it has begun with
/// that queue [W-2]: the thread that holds it may never run again.
pub(crate) fn finish(core: &DomainState) -> bool {
    let queues = core.queues.all();
    let close = |queue: &Arc<Queue>| queue.close_unless_busy(core, Urgency::Expedited);
    let all_closed = queues.iter().map(close).fold(true, |all, one| all & one);
    if Sections::of_this_thread() == Sections::None {
        core.advance_at_tick(Own::in_domain(core).me());
    }
    queues.iter().for_each(|queue| {
        while queue.run_some_unless_busy(core, thread::token(), core.tuning.run_min()) != 0 {}
    });
    core.queues.forget_orphans(core);
    rescan::free_unprotected(core);
    all_closed && core.queues.wants_unless_busy() == Wants::Nothing
}

/// The thread that added to this queue, of objects or of closures, is gone.
pub(crate) fn orphan(handle: &Handle, queue: &Queue, what: Contents) {
    let is_over_limit = queue.local_stock().refresh_over_limit(handle);
    queue.mark_orphan(handle);
    //~ point orphaned
    if is_over_limit && context() == Context::Outside {
        match what {
            // The thread settles before it ends. (If another thread runs the queue, that thread
            // runs all that is ready, up to about a batch: see `Queue::run_some`.)
            Contents::Objects if !handle.is_sleepable() => _ = settle(handle, Some(queue)),
            // Closures are not run here: a thread that joins this one may hold a lock that they
            // take. Nor is a sleepable domain waited for: the joining thread may hold its guard.
            Contents::Objects | Contents::Closures => _ = worker::hurry(handle),
        }
    }
    let is_empty = queue.is_empty();
    handle.queues.leave_behind(handle, queue);
    if !is_empty {
        worker::announce(handle);
    }
}
