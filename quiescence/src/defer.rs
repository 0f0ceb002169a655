//! Deferral: how threads queue callbacks, and who runs them.
//!
//! Each thread has two queues in a domain. Retired objects are dropped by the thread itself when it
//! retires again: a few at a time, so that memory goes back to the cache it came from. Closures,
//! which may want a lock that an updater holds, are not run here. The worker ([`crate::worker`]), or
//! whoever calls `barrier`, runs whatever is left.
//!
//! **Invariant [D-1]: a thread that is in a section, of whatever domain, runs no callback and waits for
//! nothing; it only adds.** A QSBR reader does its part at its quiescent states, offline.

use std::sync::atomic::Ordering::Relaxed;

use grace::Urgency;

use crate::chaos::{self, Mutant};
use crate::core::{Core, Me};
use crate::kind::{self, Handle, Kind};
use crate::local::{self, Own, Sections};
use crate::queue::{Callback, Queue, WAITING_MAX};
use crate::worker;

/// Additions between two looks at what is due. Less than the callbacks that a look runs, so that a
/// thread that keeps retiring runs more than it adds.
const TEND_EVERY: u64 = 8;

/// Runs of a few callbacks at one quiescent state.
const RUNS_AT_QUIESCENT_STATE: usize = 64;

/// [`Domain::call`](crate::Domain::call).
pub(crate) fn call<K: Kind, F: FnOnce() + Send + 'static>(kind: &K, f: F) {
    unsafe fn run<F: FnOnce()>(data: *mut ()) {
        // SAFETY: made below from a box of this very type.
        let f = unsafe { Box::from_raw(data.cast::<F>()) };
        f();
    }
    let data = Box::into_raw(Box::new(f)).cast();
    // SAFETY: the box is consumed once; F is Send and 'static.
    let callback = unsafe { Callback::new(data, run::<F>) };
    let queue = local::closures(kind.core(), || kind.handle());
    let waiting = add(kind, queue, callback);
    if waiting.is_multiple_of(TEND_EVERY) && Sections::of_this_thread() == Sections::None {
        let core = kind.core();
        core.advance(Own::in_domain(core).me());
    }
}

/// Drops the box that `object` came from after a grace period.
///
/// # Safety
/// `object` came from a box and new sections cannot reach it.
pub(crate) unsafe fn retire_raw<K: Kind, T: Send + 'static>(kind: &K, object: *mut T) {
    unsafe fn run<T>(data: *mut ()) {
        // SAFETY: made below from a box of this very type.
        chaos::free(unsafe { Box::from_raw(data.cast::<T>()) });
    }
    if chaos::mutant(Mutant::RetireBeforeUnlink) {
        // SAFETY: not at all: this is the fault to be caught.
        return unsafe { run::<T>(object.cast()) };
    }
    // SAFETY: the box is consumed once; T is Send and 'static.
    let callback = unsafe { Callback::new(object.cast(), run::<T>) };
    let queue = local::objects(kind.core(), || kind.handle());
    let waiting = add(kind, queue, callback);
    if let Some(queue) = queue
        && waiting.is_multiple_of(TEND_EVERY)
        && !local::in_callback()
    {
        tend(kind.core(), queue, waiting);
    }
}

/// Adds to the thread's queue, or to the shared one if the thread is ending. Answers how many wait.
fn add<K: Kind>(kind: &K, queue: Option<&Queue>, callback: Callback) -> u64 {
    let core = kind.core();
    let waiting = match queue {
        Some(queue) => queue.add(core, callback),
        None => kind::known(kind).queues.shared().add(core, callback),
    };
    // Relaxed: a stale `true` is put right by the worker's own look under its lock.
    if !core.queues.announced.load(Relaxed) {
        worker::announce(&kind.handle());
    }
    waiting
}

/// A step of the grace period, a few drops, and patience where too many objects wait.
fn tend(core: &Core, queue: &Queue, waiting: u64) {
    match Sections::of_this_thread() {
        Sections::None => {
            core.advance(Own::in_domain(core).me());
            queue.run_some(core, local::token());
            if waiting >= WAITING_MAX {
                relieve(core, queue);
            }
        }
        Sections::Qsbr => {
            core.advance(Own::in_domain(core).me());
            if waiting >= WAITING_MAX {
                local::make_overdue(core);
            }
        }
        Sections::Ordinary => {}
    }
}

/// Waits until fewer than the limit wait. Returns early if a drop that it runs begins a section on
/// this thread and leaks it.
fn relieve(core: &Core, queue: &Queue) {
    while queue.waiting_count() >= WAITING_MAX && Sections::of_this_thread() == Sections::None {
        if queue.run_some(core, local::token()) == 0 {
            queue.wait_for_progress(core, Urgency::Expedited, || Own::in_domain(core).me());
        }
    }
}

/// A QSBR reader that retires is at a quiescent state: whether it has its part to do.
pub(crate) fn is_due(core: &Core) -> bool {
    !local::in_callback() && local::existing_objects(core).is_some_and(|queue| !queue.is_empty())
}

/// Its part, to be done offline: drops what is ready, and waits where too many objects wait.
pub(crate) fn catch_up(core: &Core) {
    let Some(queue) = local::existing_objects(core) else { return };
    if Sections::of_this_thread() != Sections::None {
        return;
    }
    for _ in 0..RUNS_AT_QUIESCENT_STATE {
        if queue.run_some(core, local::token()) == 0 {
            break;
        }
    }
    relieve(core, &queue);
}

/// [`Domain::barrier`](crate::Domain::barrier).
pub(crate) fn barrier(core: &Core, me: impl Fn() -> Me) {
    if chaos::mutant(Mutant::NoBarrier) {
        return;
    }
    let queues = core.queues.all();
    // All batches first, so that one grace period serves them all.
    queues.iter().for_each(|queue| queue.close(core, Urgency::Expedited));
    queues.iter().for_each(|queue| queue.drain(core, &me, local::token()));
    core.queues.forget_orphans();
}

/// The thread that added to this queue is gone.
pub(crate) fn orphan(handle: &Handle, queue: &Queue) {
    queue.mark_orphan();
    if queue.is_empty() {
        handle.queues.forget_orphans();
    } else {
        worker::announce(handle);
    }
}
