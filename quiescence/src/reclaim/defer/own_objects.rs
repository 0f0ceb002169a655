//! What a thread does for its own queues: from time to time as it retires or calls; and for its
//! retired objects at quiescent states of a QSBR reader.

use std::sync::atomic::Ordering::Relaxed;

use grace::batch::{self, RUN_SHARE, RUN_SHARE_HAZARD, RUN_UNTIMED};
use grace::limit::Zone;

use crate::gp::grace_periods::Me;
use crate::reclaim::at_limit::{settle, settle_over_limit};
use crate::reclaim::domain_state::{DomainState, Named};
use crate::reclaim::local::{self, Sections};
use crate::reclaim::running;
use crate::reclaim::thread_queue::{BATCH, BATCH_ALONE, Contents, OwnQueue, Queue};
use crate::reclaim::worker;

/// Callbacks in a full batch.
fn batch_of(domain: &DomainState, contents: Contents) -> u64 {
    if contents == Contents::Closures {
        BATCH
    } else if domain.grace_periods.hazards.is_some() {
        batch::BATCH_HAZARD
    // Relaxed: a hint.
    } else if domain.grace_periods.alone.load(Relaxed) {
        BATCH_ALONE
    } else {
        BATCH
    }
}

/// What a thread does for its queue at the end of each round of additions: [`OwnQueue::add`]. For
/// objects: a few drops, or a step of the grace period. For closures: if a batch is full, it asks
/// for a grace period, and has the worker run what is ready.
#[cold]
pub(super) fn tend(tag: &dyn Named, queue: OwnQueue<'_>) {
    let domain = tag.core();
    let closed = close_if_full(domain, queue, batch_of(domain, queue.contents()));
    if queue.contents() == Contents::Closures {
        if closed {
            if Sections::of_this_thread() == Sections::None {
                domain.grace_periods.advance(Me::this_thread());
            }
            worker::hurry(&tag.handle());
        }
        return;
    }
    if running::in_callback() {
        return;
    }
    match Sections::of_this_thread() {
        Sections::None => {
            let is_hazard = domain.grace_periods.hazards.is_some();
            let share = if is_hazard { RUN_SHARE_HAZARD } else { RUN_SHARE };
            run_or_advance(domain, &queue, share);
        }
        // The grace period needs this thread's quiescent state; the drops are done there.
        Sections::Qsbr => {
            let is_near_limit = domain.zone() != Zone::Free;
            if is_near_limit {
                domain.grace_periods.advance(Me::this_thread());
            }
            if is_near_limit || queue.added() >= batch::RUN_CHUNK {
                local::make_due(domain);
            }
        }
        Sections::Ordinary => {}
    }
}

/// Asks for a grace period if at least `batch` callbacks are open, or as many as an eighth of the
/// limit. Returns whether it did.
pub(super) fn close_if_full(domain: &DomainState, queue: OwnQueue<'_>, batch: u64) -> bool {
    let full = queue.is_full(domain, batch);
    if full {
        queue.close(domain, batch::urgency(domain.zone()));
        queue.local_stock().trim(domain);
    }
    full
}

/// Whether a QSBR reader, at a quiescent state, should call [`catch_up`]: it has objects that wait,
/// or may be over the limit.
pub(crate) fn is_due(domain: &DomainState) -> bool {
    !running::in_callback()
        && (local::own_objects(domain).is_some_and(|queue| !queue.is_empty())
            || local::may_be_over_limit() && local::refresh_may_be_over_limit())
}

/// What a QSBR reader does then, offline: drops a few more ready objects than it has retired since
/// the last call, as [`defer`](crate::reclaim::defer) does outside sections; and waits if the
/// domain is near the limit.
pub(crate) fn catch_up(domain: &DomainState) {
    if local::may_be_over_limit() {
        settle_over_limit();
    }
    let Some(queue) = local::own_objects(domain) else { return };
    if Sections::of_this_thread() != Sections::None {
        return;
    }
    let share = match queue.take_added() {
        0 => domain.grace_periods.tuning.run_min(), // it has retired nothing since
        added => batch::run_share(added).min(batch::BATCH),
    };
    if run_or_advance(domain, &queue, share) {
        run_share(domain, &queue, share);
    }
    if domain.zone() != Zone::Free {
        settle(domain, Some(queue));
    }
}

/// Runs up to `share` of this thread's ready callbacks; if none is ready, takes a step of the grace
/// period. Returns whether it did that.
pub(crate) fn run_or_advance(domain: &DomainState, queue: &Queue, share: u64) -> bool {
    let ran = run_share(domain, queue, share);
    let advances = batch::advances(ran, || queue.wants());
    if advances {
        domain.grace_periods.advance(Me::this_thread());
    }
    advances
}

/// Drops up to `share` of this thread's ready objects. A small share is dropped [`RUN_UNTIMED`] at
/// a time, without reading the clock; a large one in longer goes, each as long as the tuning allows
/// at most. Returns how many.
pub(crate) fn run_share(domain: &DomainState, queue: &Queue, share: u64) -> u64 {
    let go = if share > 4 * RUN_UNTIMED { share } else { RUN_UNTIMED };
    let mut ran = 0;
    loop {
        let some = queue.run_some(domain, go.min(share - ran));
        ran += some;
        // A drop may begin a section on this thread and leak it.
        if some == 0 || ran >= share || Sections::of_this_thread() != Sections::None {
            return ran;
        }
    }
}
