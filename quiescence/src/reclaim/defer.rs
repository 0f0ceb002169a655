//! Deferral: how threads queue callbacks, which thread runs them, and what happens at the limit.
//!
//! The stages of a retired object, a file for each; no stage calls back into an earlier one:
//! ```text
//! retire(object):                                   // this file: notes it, then
//!     queue = this thread's, in the domain          // local
//!     reserve: take it from the queue's local stock // reserve, charge
//!     charge: else the domain admits it, or the thread waits,
//!             goes over the limit, or gives it back // at_limit
//!     queue.add(kind, object)                       // thread_queue, stream: the object waits here
//! close: a cookie for all that was added            // thread_queue
//! ready: the cookie is done                         // grace::Segments
//! run: claims some, runs them, gives room back      // thread_queue/run, running
//! free: the kind's function drops it                // free, cache
//! ```
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

mod closures;
mod deferred;
mod everything;
mod pinned;
mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use crate::reclaim::at_limit::{catch_up, is_due, settle_over_limit};
pub(crate) use closures::{Patience, call, call_over};
pub use deferred::Deferred;
pub(crate) use deferred::{defer, defer_in_any_case, is_running_deferred, run_deferred};
pub(crate) use everything::{barrier, finish, orphan};
pub(crate) use pinned::{catch_up_after_section, close_own, may_drain};
pub(crate) use tasks::{
    ask_for_room, call_if_room, call_over_now, end_after_wait, nothing_waits, retire_if_room,
    retire_over_now, retire_raw_over, run_own_objects,
};

use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;

use grace::batch::{self, RUN_SHARE};
use grace::limit::{Amount, Zone};

use crate::os::thread;
use crate::os::user_code::{self, Site};
use crate::reclaim::at_limit::{
    NESTED_MAX, Room, admit, admit_over, context, leave_to_worker, make_room, settle,
};
use crate::reclaim::debug_objects;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::free::{self, Boxed, Counted, Value};
use crate::reclaim::handle::{Handle, Named};
use crate::reclaim::local::{self, Own, Sections};
use crate::reclaim::reserve::{Reservation, reserve};
use crate::reclaim::retire::{AtLimit, Retire};
use crate::reclaim::running::{self, Uncharged};
use crate::reclaim::stream;
use crate::reclaim::thread_queue::{BATCH, BATCH_ALONE, Contents, Queue};
use crate::reclaim::worker;

/// Drops the box that `object` came from after a grace period. May wait for the grace period and
/// drop it before returning. Never refuses: where it must not wait it goes over the limit.
///
/// # Safety
/// `object` came from a box and new sections cannot reach it.
#[inline]
#[track_caller]
pub(crate) unsafe fn retire_raw<K: Named, T: Send + 'static>(
    tag: &K,
    object: *mut T,
    bytes: usize,
) {
    match reserve(tag, bytes) {
        // SAFETY: by the contract.
        Some(room) => unsafe { room.retire(tag, object, bytes) },
        // SAFETY: by the contract.
        None => unsafe { retire_slowly(tag, object, bytes) },
    }
}

/// As [`retire_raw`], if the thread's local stock does not cover it.
///
/// # Safety
/// As [`retire_raw`].
#[cold]
#[track_caller]
unsafe fn retire_slowly<K: Named, T: Send + 'static>(tag: &K, object: *mut T, bytes: usize) {
    debug_objects::note(object.cast_const().cast(), size_of::<T>());
    //~ retire-before-unlink
    let amount = Amount::object(bytes as u64);
    let queue = local::objects(tag.core(), tag);
    match make_room(tag, queue, amount, true) {
        Room::Charged => {}
        // SAFETY: by the contract; its grace period has ended.
        Room::Waited => return on_the_spot(tag.core(), || unsafe { Boxed::free(object) }),
        Room::Full => admit_over(tag.core(), queue, amount),
    }
    // SAFETY: by the contract; it has been charged.
    unsafe { add_boxed(tag, queue, object, amount.bytes) };
    leave_to_worker(tag, queue);
}

/// Adds an object that came from a box and was charged `bytes`, as `charge_of_box` says. `bytes` is
/// stored with it only if its weight is not its size.
///
/// # Safety
/// As [`retire_raw`]; and `queue` is this thread's.
#[inline]
unsafe fn add_boxed<K: Named, T: Send + 'static>(
    tag: &K,
    queue: Option<&Queue>,
    object: *mut T,
    bytes: u64,
) {
    if bytes == Boxed::<T>::CHARGE {
        // SAFETY: by the contract.
        unsafe { add_by_size(tag, queue, object) };
    } else {
        let payload = Counted { value: object, bytes };
        // SAFETY: as in `add_by_size`.
        unsafe { add_object(tag, queue, &Boxed::<T>::WEIGHED, payload, bytes) };
    }
}

/// The same for an object that is charged for its size.
///
/// # Safety
/// As [`add_boxed`].
#[inline]
unsafe fn add_by_size<K: Named, T: Send + 'static>(tag: &K, queue: Option<&Queue>, object: *mut T) {
    // SAFETY: the box is consumed once; T is Send and 'static. It has been charged.
    unsafe { add_object(tag, queue, &Boxed::<T>::KIND, object, Boxed::<T>::CHARGE) };
}

impl Reservation<'_> {
    /// Drops the box that `object` came from after a grace period; does nothing if it is null.
    ///
    /// # Safety
    /// `object` is null or came from a box; new sections of the same domain cannot reach it.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn retire<K: Named, T: Send + 'static>(
        mut self,
        tag: &K,
        object: *mut T,
        bytes: usize,
    ) {
        if object.is_null() {
            return self.put_back(tag.core());
        }
        debug_objects::note(object.cast_const().cast(), size_of::<T>());
        if bytes as u64 != self.amount.bytes {
            self.adjust(tag.core(), bytes);
        }
        // SAFETY: by the contract; it has been charged.
        unsafe { add_boxed(tag, Some(self.queue), object, self.amount.bytes) };
    }

    /// As [`retire`](Self::retire), with room for an object that is charged for its size.
    ///
    /// # Safety
    /// As for [`retire`](Self::retire); the room is what `reserve_by_size` reserves, or as much.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn retire_by_size<K: Named, T: Send + 'static>(
        self,
        tag: &K,
        object: *mut T,
    ) {
        if object.is_null() {
            return self.put_back(tag.core());
        }
        debug_objects::note(object.cast_const().cast(), size_of::<T>());
        // SAFETY: by the contract; it has been charged.
        unsafe { add_by_size(tag, Some(self.queue), object) };
    }
}

/// Notes that a value is about to wait. Returns it, with the amount to charge.
///
/// # Panics
/// In debug builds, if what it owns waits already; and if its `Retire::bytes` panics. Then the
/// value is leaked, not dropped: readers may see it.
#[inline]
#[track_caller]
fn note<P: Retire>(value: P) -> (P, Amount) {
    let value = ManuallyDrop::new(value);
    let amount = Amount::object(value.bytes().saturating_add(Value::<P>::HELD) as u64);
    let (memory, bytes) = value.owned();
    debug_objects::note(memory, bytes);
    (ManuallyDrop::into_inner(value), amount)
}

/// Drops `value` after a grace period. Gives it back if there is no room and `waits` is false or
/// the thread must not wait here.
#[track_caller]
pub(crate) fn retire<K: Named, P: Retire>(
    tag: &K,
    value: P,
    waits: bool,
) -> Result<(), AtLimit<P>> {
    let (value, amount) = note(value);
    let queue = local::objects(tag.core(), tag);
    let paid = queue.is_some_and(|queue| queue.local_stock().take(amount));
    if !paid {
        match make_room(tag, queue, amount, waits) {
            Room::Charged => {}
            Room::Waited => {
                on_the_spot(tag.core(), || free::end(value));
                return Ok(());
            }
            Room::Full => {
                debug_objects::forget(value.owned().0);
                return Err(AtLimit::retired(value, tag.handle(), retire_over));
            }
        }
    }
    add_value(tag, queue, value, amount.bytes);
    if !paid {
        leave_to_worker(tag, queue);
    }
    Ok(())
}

/// Drops `value` after a grace period, and never waits or refuses.
pub(crate) fn retire_over<P: Retire>(handle: &Handle, value: P) {
    let (value, amount) = note(value);
    let queue = local::objects(handle, handle);
    if !queue.is_some_and(|queue| queue.local_stock().take(amount)) {
        admit_over(handle, queue, amount);
    }
    add_value(handle, queue, value, amount.bytes);
    leave_to_worker(handle, queue);
}

fn add_value<K: Named, P: Retire>(tag: &K, queue: Option<&Queue>, value: P, bytes: u64) {
    if const { Value::<P>::BARE } {
        // SAFETY: a P, which is Send and 'static.
        unsafe { add_object(tag, queue, &Value::<P>::POINTER, value, bytes) };
    } else if const { Value::<P>::FITS } {
        let value = Counted { value, bytes };
        // SAFETY: as above, with the bytes it was charged.
        unsafe { add_object(tag, queue, &Value::<P>::NEAR, value, bytes) };
    } else {
        let value = Box::into_raw(Box::new(Counted { value, bytes }));
        // SAFETY: the same in a box.
        unsafe { add_object(tag, queue, &Value::<P>::FAR, value, bytes) };
    }
}

/// Adds a charged object to the thread's queue, and tends the queue if it is time ([`tend`]).
///
/// # Safety
/// As [`Queue::add`]: `kind` and `payload` fit.
#[inline]
pub(crate) unsafe fn add_object<K: Named, P>(
    tag: &K,
    queue: Option<&Queue>,
    what: &'static stream::CallbackType,
    payload: P,
    bytes: u64,
) {
    // SAFETY: by the contract; the queue is this thread's.
    if unsafe { add(tag, queue, Contents::Objects, what, payload, bytes) }
        && let Some(queue) = queue
    {
        tend(tag.core(), queue);
    }
}

/// Adds to the thread's queue, or to the shared one if the thread is ending. Returns whether it is
/// time for the thread to tend its queue.
///
/// # Safety
/// As [`Queue::add`]; and `queue` is this thread's.
#[inline]
unsafe fn add<K: Named, P>(
    tag: &K,
    queue: Option<&Queue>,
    contents: Contents,
    what: &'static stream::CallbackType,
    payload: P,
    bytes: u64,
) -> bool {
    let core = tag.core();
    let due = match queue {
        // SAFETY: by the contract.
        Some(queue) => unsafe { queue.add(what, payload, bytes) },
        None => domains::known(tag).queues.with_shared(core, contents, |queue| {
            // SAFETY: by the contract; the thread that holds the lock is the thread that adds.
            unsafe { queue.add(what, payload, bytes) }
        }),
    };
    //~ point added
    // Relaxed: ordered by the fences in `add` and in `Queues::leave` [DQ-3].
    //~ no-announcement:
    if !core.queues.announced.load(Relaxed) {
        worker::announce(&tag.handle());
    }
    due
}

/// Objects in a full batch.
fn batch_of(core: &DomainState) -> u64 {
    if core.hazards {
        batch::BATCH_HAZARD
    // Relaxed: a hint.
    } else if core.alone.load(Relaxed) {
        BATCH_ALONE
    } else {
        BATCH
    }
}

/// What a thread does for its own objects, about every [`TEND_EVERY`](batch::TEND_EVERY) additions:
/// a few drops, or a step of the grace period.
#[cold]
fn tend(core: &DomainState, queue: &Queue) {
    close_if_full(core, queue, batch_of(core));
    if running::in_callback() {
        return;
    }
    match Sections::of_this_thread() {
        Sections::None => {
            let ran = queue.run_some(core, thread::token(), RUN_SHARE);
            if batch::advances(ran, || queue.wants()) {
                core.advance(Own::in_domain(core).me());
            }
        }
        // The grace period needs this thread's quiescent state; the drops are done there.
        Sections::Qsbr => {
            let is_near_limit = core.zone() != Zone::Free;
            if is_near_limit {
                core.advance(Own::in_domain(core).me());
            }
            if is_near_limit || queue.added() >= batch::RUN_CHUNK {
                local::make_due(core);
            }
        }
        Sections::Ordinary => {}
    }
}

/// Asks for a grace period if at least `batch` callbacks are open, or as many as an eighth of the
/// limit. Returns whether it did.
fn close_if_full(core: &DomainState, queue: &Queue, batch: u64) -> bool {
    let full = queue.is_full(core, batch);
    if full {
        queue.close(core, batch::urgency(core.zone()));
        queue.local_stock().trim(core);
    }
    full
}

/// Frees an object whose grace period has ended, in the same surroundings as a callback.
pub(crate) fn on_the_spot(core: &DomainState, free: impl FnOnce()) {
    let whole = running::running_callbacks(core, &Uncharged::new(), || {
        user_code::caught(Site::OnTheSpot, free)
    });
    core.counters().callbacks_panicked.fetch_add(u64::from(!whole), Relaxed);
}
