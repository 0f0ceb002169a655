//! Deferral: how threads queue callbacks, and what a thread does for its own.
//!
//! The stages of a retired object; no stage calls back into an earlier one:
//! ```text
//! reserve:  room for it, before it is unlinked, where a cell replaces it  // unlink
//! retire(pending):                                   // this file: notes it, then
//!     queue = this thread's, in the domain           // local
//!     take: out of the queue's local stock           // charge
//!     charge: else the domain admits it, or the thread waits,
//!             goes over the limit, or gives it back  // at_limit
//!     pending.add(queue): the object waits here      // free, thread_queue, stream
//! close: a cookie for all that was added             // thread_queue
//! ready: the cookie is done                          // grace::Segments
//! run: claims some, runs them, gives room back       // thread_queue, running
//! free: the kind's function drops it                 // free, cache
//! ```
//! **Nothing here can free too early, or twice**: see [`Pending`] and
//! [`thread_queue`](crate::reclaim::thread_queue). It decides when, and on which thread.
//!
//! Each thread has two queues in a domain. A thread drops its own retired objects when it retires
//! again: a few at a time, so that memory goes back to the cache it came from. It does not run its
//! closures, which may need a lock that an updater holds; except C's deferred functions
//! ([`deferred`]), for which liburcu documents that. The worker ([`crate::reclaim::worker`]), or
//! the thread that calls `barrier`, runs everything else.
//!
//! **Invariant [D-1]: a registered thread that is in a section, of whatever domain, runs no
//! callback and waits for nothing; it only adds.** A QSBR reader does its part at its quiescent
//! states, offline. (Exception: the drop of a domain's last handle runs what waits in the domain,
//! also in a section of another domain. A collector of `epoch` gives that handle to the worker.)
//!
//! At the limit ([`crate::reclaim::at_limit`]) objects and closures are treated differently. An
//! object's thread waits for one grace period and runs its own callbacks; if there is still no
//! room, it frees the object at once, since its grace period has ended: so it depends only on
//! sections and drops to finish. A closure's thread waits until the worker has made room. Inside a
//! section the first object is admitted over the limit, and the thread settles that when its
//! outermost section ends; a second one is refused. In a callback an object waits for a grace
//! period and is freed; a closure uses the room of the callback that is running, or is refused.

#![cfg_attr(not(test), deny(unsafe_code))]

#[allow(unsafe_code, reason = "functions of C's, and pointers to them")]
mod deferred;
#[cfg(test)]
mod tests;

pub(crate) use crate::reclaim::at_limit::{Patience, settle_over_limit};
pub use deferred::Deferred;
pub(crate) use deferred::{defer, defer_in_any_case, is_running_deferred, run_deferred};

use std::sync::atomic::Ordering::Relaxed;

use grace::batch::{self, RUN_UNTIMED};
use grace::limit::{Amount, Context, Zone};

use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::os::fence;
use crate::reclaim::at_limit::{
    NoRoom, context, is_settled_here, leave_to_worker, make_room, settle,
};
use crate::reclaim::domain_state::{self, DomainState, Handle, Named};
use crate::reclaim::free::{AtLimit, Callback, Closure, Pending, Value};
use crate::reclaim::local::{self, Sections};
use crate::reclaim::retire::Retire;
use crate::reclaim::thread_queue::{BATCH, BATCH_ALONE, Contents, OwnQueue, Queue};
use crate::reclaim::{cache, rescan, running, worker};

/// Has `add` add a charged callback to the thread's queue, or to the shared one if the thread is
/// ending. Returns whether it is time for the thread to tend its queue.
#[inline(always)]
fn add_by<K: Named>(
    tag: &K,
    queue: Option<OwnQueue<'_>>,
    contents: Contents,
    add: impl FnOnce(OwnQueue<'_>) -> u64,
) -> bool {
    let added = match queue {
        Some(queue) => add(queue),
        None => out_of_line(move || {
            let domain = domain_state::known(tag);
            domain.queues.with_shared(domain, contents, add)
        }),
    };
    tell(tag);
    queue.is_some_and(|queue| queue.local_stock().ends_round(added))
}

/// A callback has been added: sees to it that the worker knows.
#[inline(always)]
pub(crate) fn tell<K: Named>(tag: &K) {
    //~ point added
    // Relaxed: ordered by the fences in `OwnQueue::add` and in `Queues::leave` [DQ-3].
    //~ no-announcement:
    if !tag.core().queues.announced.load(Relaxed) {
        announce(tag);
    }
}

/// Tells the worker that callbacks wait in the domain.
#[cold]
fn announce(tag: &dyn Named) {
    worker::announce(&tag.handle());
}

/// Adds a charged callback to the thread's queue, and tends the queue if it is time.
#[inline]
pub(crate) fn add<K: Named, C: Callback>(
    tag: &K,
    queue: Option<OwnQueue<'_>>,
    pending: Pending<'_, C>,
    bytes: u64,
) {
    if add_by(tag, queue, C::CONTENTS, |queue| pending.add(queue, bytes))
        && let Some(queue) = queue
    {
        tend(tag, queue);
    }
}

/// As [`queue_only`], in the thread's queue; and tends that if it is time.
#[inline(always)]
pub(crate) fn queue<'d, K: Named, C: Callback>(
    tag: &K,
    pending: Pending<'d, C>,
    amount: Amount,
    patience: Patience,
) -> Result<(), Pending<'d, C>> {
    let queue = local::queue(tag.core(), tag, C::CONTENTS);
    if let Some(queue) = queue_only(tag, queue, pending, amount, patience)? {
        tend(tag, queue);
    }
    Ok(())
}

/// Charges `pending` and adds it to `queue`, the thread's, or the shared one if it has none.
/// Returns the queue if it is time to [`tend`] it. If there is no room, does what `patience` says:
/// what has waited for its grace period in vain ends here; what is refused is given back.
// Always: out of line, its result goes through memory, a third of the time of a `call`.
#[inline(always)]
pub(crate) fn queue_only<'d, 't, K: Named, C: Callback>(
    tag: &'t K,
    queue: Option<OwnQueue<'t>>,
    pending: Pending<'d, C>,
    amount: Amount,
    patience: Patience,
) -> Result<Option<OwnQueue<'t>>, Pending<'d, C>> {
    if let Some(queue) = queue
        && queue.local_stock().take(amount)
    {
        let added = pending.add(queue, amount.bytes);
        tell(tag);
        return Ok(if queue.local_stock().ends_round(added) { Some(queue) } else { None });
    }
    // By value: what is borrowed here is written to memory on the road above, too.
    out_of_line(move || {
        let timed = pending.since_now();
        match make_room(tag, queue, C::CONTENTS, amount, patience) {
            Ok(()) => {}
            Err(NoRoom::Refuses) => return Err(timed.into_pending()),
            Err(NoRoom::Waited) if timed.is_ripe() => {
                if timed.end(amount) {
                    fence::full(); // as in `OwnQueue::add`: what is kept is in no queue [DQ-3]
                    tell(tag);
                }
                return Ok(None);
            }
            Err(NoRoom::Waited) => tag.core().admit_over(amount),
        }
        let add = |queue: OwnQueue<'_>| timed.into_pending().add(queue, amount.bytes);
        let ends = add_by(tag, queue, C::CONTENTS, add);
        leave_to_worker(tag, queue);
        Ok(queue.filter(|_| ends))
    })
}

/// Keeps a rare case out of the function that it is in, which is to be small enough to be compiled
/// into its callers.
#[cold]
#[inline(never)]
pub(crate) fn out_of_line<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Whether the calling thread is in a section of some domain of registered threads: then it must
/// not wait when it retires [D-1].
pub(crate) fn in_section() -> bool {
    context() == Context::Section
}

// ---- values -------------------------------------------------------------------------------------

/// Drops `value` after a grace period, or does what `patience` says.
///
/// # Panics
/// In debug builds, if what it owns waits already; and if its `Retire::bytes` panics. Then the
/// value is leaked, not dropped: readers may see it.
#[track_caller]
pub(crate) fn retire<K: Named, P: Retire>(
    tag: &K,
    value: P,
    patience: Patience,
) -> Result<(), AtLimit<P>> {
    retire_value(tag, Pending::value(tag.core(), value), patience)
}

#[track_caller]
pub(crate) fn retire_value<K: Named, P: Retire>(
    tag: &K,
    value: Pending<'_, Value<P>>,
    patience: Patience,
) -> Result<(), AtLimit<P>> {
    let amount = value.amount();
    value.note();
    let queued = queue(tag, value, amount, patience);
    queued.map_err(|value| value.refuse(tag.handle(), retire_over))
}

/// Drops `value` after a grace period, and never waits or refuses.
pub(crate) fn retire_over<P: Retire>(handle: &Handle, value: P) {
    let _queued: Result<(), _> = retire(handle, value, Patience::Over);
}

// ---- closures -----------------------------------------------------------------------------------

/// Calls `f` after a grace period, or does what `patience` says.
#[inline(always)]
pub(crate) fn call<K: Named, F: FnOnce() + Send + 'static>(
    tag: &K,
    f: F,
    patience: Patience,
) -> Result<(), AtLimit<F>> {
    let pending = Pending::closure(tag.core(), f);
    queue(tag, pending, Closure::<F>::AMOUNT, patience).map_err(|closure| closure.refuse())
}

// ---- the thread's own queues --------------------------------------------------------------------

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

/// What a thread does for its queue at the end of a round of additions (`LocalStock::ends_round`);
/// under an epoch guard at the end of those that `due::tend_if_share` chooses. For objects: a few
/// drops, or a step of the grace period. For closures: if a batch is full, it asks for a grace
/// period, and has the worker run what is ready.
#[cold]
pub(crate) fn tend(tag: &dyn Named, queue: OwnQueue<'_>) {
    let domain = tag.core();
    let closed = close_if_full(domain, queue, batch_of(domain, queue.contents));
    if queue.contents == Contents::Closures {
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
        // Nothing is ready, and nothing waits for a grace period: no lock is taken to see that.
        Sections::None if queue.is_all_open() => {}
        Sections::None => {
            let memory = queue.last_kind().and_then(|kind| kind.memory);
            let (is_hazard, limit) = (domain.grace_periods.hazards.is_some(), domain.limit());
            let (round, share) = batch::round(is_hazard, memory.is_some_and(cache::is_kept), limit);
            queue.local_stock().round.set(round);
            run_or_advance(domain, &queue, share);
        }
        // The grace period needs this thread's quiescent state; the drops are done there.
        Sections::Qsbr => {
            let is_near_limit = domain.zone() != Zone::Free;
            if is_near_limit {
                domain.grace_periods.advance(Me::this_thread());
            }
            if is_near_limit || queue.local_stock().added(queue.written()) >= batch::RUN_CHUNK {
                local::make_due(domain);
            }
        }
        Sections::Ordinary => {}
    }
}

/// Asks for a grace period if the queue's open callbacks are a [full batch](batch::is_full) of
/// `batch`. Returns whether it did.
fn close_if_full(domain: &DomainState, queue: OwnQueue<'_>, batch: u64) -> bool {
    let full = queue.is_full(domain, batch);
    if full {
        queue.close(domain, batch::urgency(domain.zone()));
        queue.local_stock().trim(domain);
    }
    full
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

// ---- all that waits -----------------------------------------------------------------------------

/// [`Domain::barrier`](crate::Domain::barrier).
pub(crate) fn barrier(domain: &DomainState, me: impl Fn() -> Me) {
    //~ no-barrier
    let callback_queues = domain.callback_queues.begin_barrier();
    domain.queues.drain(domain, false, &me);
    rescan::drain(domain);
    callback_queues.finish(domain, &me);
    trace::deliver();
}

/// The thread that added to this queue is gone.
pub(crate) fn orphan(handle: &Handle, queue: OwnQueue<'_>) {
    let is_over_limit = queue.local_stock().refresh_over_limit(handle);
    queue.mark_orphan(handle);
    //~ point orphaned
    if is_over_limit && context() == Context::Outside {
        if is_settled_here(handle, queue) {
            // Before the thread ends. (If another thread runs the queue, that thread runs all that
            // is ready, up to about a batch: see `Queue::run_some`.)
            settle(handle, Some(queue));
        } else {
            // Closures are not run here: a thread that joins this one may hold a lock that they
            // take. Nor is a sleepable domain waited for: the joining thread may hold its guard.
            worker::hurry(handle);
        }
    }
    let is_empty = queue.is_empty();
    handle.queues.forget_orphans(handle);
    // Relaxed: a hint; the worker sees the flag at its next turn in any case.
    if handle.queues.hurried.load(Relaxed) {
        worker::attend(handle);
    } else if !is_empty {
        worker::announce(handle);
    }
}
