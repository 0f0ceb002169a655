//! Deferral: how threads queue callbacks, which thread runs them, and what happens at the limit.
//!
//! The stages of a retired object, a file for each; no stage calls back into an earlier one:
//! ```text
//! retire(object):                                   // this file: notes it, then
//!     queue = this thread's, in the domain          // local
//!     take: out of the queue's local stock          // charge
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

mod deferred;
mod own_objects;
#[cfg(test)]
mod tests;

pub(crate) use crate::reclaim::at_limit::{Patience, settle_over_limit};
pub use deferred::Deferred;
pub(crate) use deferred::{defer, defer_in_any_case, is_running_deferred, run_deferred};
use own_objects::tend;
pub(crate) use own_objects::{catch_up, is_due, run_or_advance, run_share};

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use grace::Urgency;
use grace::limit::{Amount, Context};

use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::os::user_code::{self, Site};
use crate::reclaim::at_limit::{
    NotQueued, Wanted, context, is_settled_here, leave_to_worker, make_room, may_free_here, settle,
};
use crate::reclaim::debug_objects;
use crate::reclaim::domain_state::{DomainState, Handle, Named};
use crate::reclaim::domains;
use crate::reclaim::free::{Address, Boxed, Callback, Closure, Counted, Pointee, Value};
use crate::reclaim::local::{self, Sections};
use crate::reclaim::rescan;
use crate::reclaim::reserve::Reservation;
use crate::reclaim::retire::{AtLimit, Retire};
use crate::reclaim::running::{self, RoomMade};
use crate::reclaim::stream::CallbackType;
use crate::reclaim::thread_queue::{Contents, OwnQueue, Queue, Wants};
use crate::reclaim::worker;

/// What a thread queues: an object or a closure.
pub(crate) trait Queued: Callback {
    /// Adds it to the thread's queue, or to the shared one if the thread is ending; and tends the
    /// queue if it is time ([`tend`]).
    ///
    /// # Safety
    /// To run it once, on any thread, after a grace period, is sound; it has been charged `bytes`;
    /// and `queue` is this thread's.
    unsafe fn add<K: Named>(self, tag: &K, queue: Option<OwnQueue<'_>>, bytes: u64);
}

impl<P: Pointee> Queued for Address<P> {
    /// `bytes` is stored with it only if its weight is not its size.
    #[inline]
    unsafe fn add<K: Named>(self, tag: &K, queue: Option<OwnQueue<'_>>, bytes: u64) {
        if bytes == Self::CHARGE {
            // SAFETY: by the contract.
            unsafe { add_callback(tag, queue, self, bytes) };
        } else {
            // SAFETY: by the contract.
            unsafe { add_callback(tag, queue, Counted { callback: self, bytes }, bytes) };
        }
    }
}

impl<P: Retire> Queued for Value<P> {
    unsafe fn add<K: Named>(self, tag: &K, queue: Option<OwnQueue<'_>>, bytes: u64) {
        let callback = self;
        if const { Self::BARE } {
            // SAFETY: by the contract.
            unsafe { add_callback(tag, queue, callback, bytes) };
        } else if const { Self::FITS } {
            // SAFETY: by the contract.
            unsafe { add_callback(tag, queue, Counted { callback, bytes }, bytes) };
        } else {
            // SAFETY: by the contract.
            unsafe { add_callback(tag, queue, Box::new(Counted { callback, bytes }), bytes) };
        }
    }
}

impl<F: FnOnce() + Send + 'static> Queued for Closure<F> {
    #[inline]
    unsafe fn add<K: Named>(self, tag: &K, queue: Option<OwnQueue<'_>>, bytes: u64) {
        if const { Self::FITS } {
            // SAFETY: by the contract.
            unsafe { add_callback(tag, queue, self, bytes) };
        } else {
            // SAFETY: by the contract.
            unsafe { add_callback(tag, queue, Box::new(self), bytes) };
        }
    }
}

/// Charges `callback` and adds it to the thread's queue. If there is no room, does what `patience`
/// says; what is not queued is given back, with the reason.
///
/// # Safety
/// To run it once, on any thread, after a grace period, is sound.
#[inline]
unsafe fn queue<K: Named, C: Queued>(
    tag: &K,
    callback: C,
    amount: Amount,
    patience: Patience,
) -> Result<(), (C, NotQueued)> {
    let queue = match C::CONTENTS {
        Contents::Objects => local::objects(tag.core(), tag),
        Contents::Closures => local::closures(tag.core(), tag),
    };
    if let Some(queue) = queue
        && queue.local_stock().take(amount)
    {
        // SAFETY: by the contract; it has been charged, and the queue is this thread's.
        unsafe { callback.add(tag, Some(queue), amount.bytes) };
        return Ok(());
    }
    out_of_line(|| {
        let wanted = Wanted { queue, contents: C::CONTENTS, amount, patience };
        if let Err(reason) = make_room(tag, wanted) {
            return Err((callback, reason));
        }
        // SAFETY: by the contract; it has been charged.
        unsafe { callback.add(tag, queue, amount.bytes) };
        leave_to_worker(tag, queue);
        Ok(())
    })
}

/// Keeps a rare case out of the function that it is in, which is to be small enough to be compiled
/// into its callers.
#[cold]
#[inline(never)]
fn out_of_line<R>(f: impl FnOnce() -> R) -> R {
    f()
}

// ---- objects by their addresses -----------------------------------------------------------------

/// Frees the object after a grace period. May wait for the grace period and call `free` before
/// returning. Never refuses: where it must not wait it goes over the limit.
///
/// # Safety
/// To free the object once, on any thread, after a grace period, is sound.
#[inline]
#[track_caller]
pub(crate) unsafe fn retire_address<K: Named, P: Pointee>(
    tag: &K,
    address: Address<P>,
    bytes: u64,
    free: impl FnOnce(Address<P>),
) {
    address.note();
    // SAFETY: by the contract.
    let queued = unsafe { queue(tag, address, Amount::object(bytes), Patience::InAnyCase) };
    if let Err((address, _)) = queued {
        free(address);
    }
}

/// Drops the box that `object` came from after a grace period; as [`retire_address`].
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
    //~ retire-before-unlink
    // SAFETY: by the contract; its grace period has ended where this is called.
    let free = |address: Address<Boxed<T>>| unsafe { on_the_spot(tag.core(), address) };
    // SAFETY: by the contract.
    unsafe { retire_address(tag, Address(object), bytes as u64, free) };
}

/// As [`retire_raw`], but never waits. If there is no room, frees the object on
/// the spot if it `is_unread` and that may be done here, else retires it over the limit.
///
/// # Safety
/// As there; if `is_unread`, a grace period has passed since readers could last reach it.
pub(crate) unsafe fn retire_raw_over<K: Named, T: Send + 'static>(
    tag: &K,
    object: *mut T,
    bytes: usize,
    is_unread: bool,
) {
    let (address, amount) = (Address::<Boxed<T>>(object), Amount::object(bytes as u64));
    address.note();
    let may_free = is_unread && may_free_here();
    let patience = if may_free { Patience::Polls } else { Patience::Unowed };
    // SAFETY: by the contract.
    if let Err((address, _)) = unsafe { queue(tag, address, amount, patience) } {
        // SAFETY: by the contract; it is unread.
        unsafe { on_the_spot(tag.core(), address) };
    }
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
        let address = Address::<Boxed<T>>(object);
        address.note();
        if bytes as u64 != self.amount.bytes {
            self.adjust(tag.core(), bytes);
        }
        // SAFETY: by the contract; it has been charged.
        unsafe { address.add(tag, Some(self.queue), self.amount.bytes) };
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
        let address = Address::<Boxed<T>>(object);
        address.note();
        // SAFETY: by the contract; it has been charged.
        unsafe { address.add(tag, Some(self.queue), Address::<Boxed<T>>::CHARGE) };
    }
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
    let value = ManuallyDrop::new(value);
    let amount = Amount::object(value.bytes().saturating_add(Value::<P>::HELD) as u64);
    let (memory, bytes) = value.owned();
    debug_objects::note(memory, bytes);
    let value = Value(ManuallyDrop::into_inner(value));
    // SAFETY: a P, which is Send and 'static.
    match unsafe { queue(tag, value, amount, patience) } {
        Ok(()) => Ok(()),
        Err((value, NotQueued::Waited)) => {
            // SAFETY: its grace period has ended.
            unsafe { on_the_spot(tag.core(), value) };
            Ok(())
        }
        Err((Value(value), NotQueued::NoRoom)) => {
            debug_objects::forget(value.owned().0);
            Err(AtLimit::retired(value, tag.handle(), retire_over))
        }
    }
}

/// Drops `value` after a grace period, and never waits or refuses.
pub(crate) fn retire_over<P: Retire>(handle: &Handle, value: P) {
    let _queued: Result<(), _> = retire(handle, value, Patience::Over);
}

/// Drops `value`, whose grace period has ended and for which there is no room; in a section, or too
/// deep in other drops, retires it over the limit.
pub(crate) fn end_after_wait<K: Named, P: Retire>(tag: &K, value: P) {
    if may_free_here() {
        // SAFETY: its grace period has ended.
        unsafe { on_the_spot(domains::known(tag), Value(value)) };
    } else {
        retire_over(&tag.handle(), value);
    }
}

// ---- closures -----------------------------------------------------------------------------------

/// Calls `f` after a grace period, or does what `patience` says.
#[inline]
pub(crate) fn call<K: Named, F: FnOnce() + Send + 'static>(
    tag: &K,
    f: F,
    patience: Patience,
) -> Result<(), AtLimit<F>> {
    // SAFETY: an F, which is Send and 'static.
    let queued = unsafe { queue(tag, Closure(f), Closure::<F>::AMOUNT, patience) };
    queued.map_err(|(Closure(f), _)| AtLimit::unchanged(f))
}

// ---- the thread's queue -------------------------------------------------------------------------

/// Adds a charged callback to the thread's queue, and tends the queue if it is time.
///
/// # Safety
/// As [`Queued::add`].
#[inline]
unsafe fn add_callback<K: Named, C: Callback>(
    tag: &K,
    queue: Option<OwnQueue<'_>>,
    callback: C,
    bytes: u64,
) {
    // SAFETY: by the contract; it is of its kind.
    if unsafe { add(tag, queue, C::CONTENTS, &C::KIND, callback, bytes) }
        && let Some(queue) = queue
    {
        tend(tag, queue);
    }
}

/// Adds to the thread's queue, or to the shared one if the thread is ending. Returns whether it is
/// time for the thread to tend its queue.
///
/// # Safety
/// As [`OwnQueue::add`].
#[inline]
unsafe fn add<K: Named, P>(
    tag: &K,
    queue: Option<OwnQueue<'_>>,
    contents: Contents,
    kind: &'static CallbackType,
    payload: P,
    bytes: u64,
) -> bool {
    let domain = tag.core();
    let is_due = match queue {
        // SAFETY: by the contract.
        Some(queue) => unsafe { queue.add(kind, payload, bytes) },
        // SAFETY: by the contract.
        None => unsafe { add_shared(domains::known(tag), contents, kind, payload, bytes) },
    };
    //~ point added
    // Relaxed: ordered by the fences in `OwnQueue::add` and in `Queues::leave` [DQ-3].
    //~ no-announcement:
    if !domain.queues.announced.load(Relaxed) {
        announce(tag);
    }
    is_due
}

/// Adds to the queue that ending threads share. Out of line: [`add`] is to be small enough to be
/// compiled into its callers.
///
/// # Safety
/// As [`OwnQueue::add`].
#[cold]
#[inline(never)]
unsafe fn add_shared<P>(
    domain: &DomainState,
    contents: Contents,
    kind: &'static CallbackType,
    payload: P,
    bytes: u64,
) -> bool {
    domain.queues.with_shared(domain, contents, |queue| {
        // SAFETY: by the contract.
        unsafe { queue.add(kind, payload, bytes) }
    })
}

/// Tells the worker that callbacks wait in the domain.
#[cold]
fn announce(tag: &dyn Named) {
    worker::announce(&tag.handle());
}

/// Frees an object whose grace period has ended, in the same surroundings as a callback.
///
/// # Safety
/// As [`Callback::run`].
pub(crate) unsafe fn on_the_spot(domain: &DomainState, object: impl Callback) {
    let whole = running::running_callbacks(&domain.grace_periods, &RoomMade::default(), || {
        // SAFETY: by the contract.
        user_code::caught(Site::OnTheSpot, || unsafe { object.run() })
    });
    domain.grace_periods.counters().callbacks_panicked.fetch_add(u64::from(!whole), Relaxed);
}

// ---- all that waits -----------------------------------------------------------------------------

/// [`Domain::barrier`](crate::Domain::barrier).
pub(crate) fn barrier(domain: &DomainState, me: impl Fn() -> Me) {
    //~ no-barrier
    let callback_queues = domain.callback_queues.begin_barrier(domain);
    domain.queues.drain(domain, &me);
    rescan::drain(domain);
    callback_queues.finish(domain, &domain.callback_queues, &me);
    trace::deliver();
}

/// At the orderly end of the process: runs what waits in a domain, as far as that is possible
/// without waiting for other threads. Returns whether nothing is left.
///
/// Like the worker, it does not wait for a queue's lock or the machine's before it has begun with
/// that queue [W-2]: the thread that holds it may never run again.
pub(crate) fn finish(domain: &DomainState) -> bool {
    let queues = domain.queues.all();
    let close = |queue: &Arc<Queue>| queue.close_unless_busy(domain, Urgency::Expedited);
    let all_closed = queues.iter().map(close).fold(true, |all, one| all & one);
    if Sections::of_this_thread() == Sections::None {
        domain.grace_periods.advance_at_tick(Me::this_thread());
    }
    queues.iter().for_each(|queue| {
        while queue.run_some_unless_busy(domain, domain.grace_periods.tuning.run_min()) != 0 {}
    });
    domain.queues.forget_orphans(domain);
    rescan::free_unprotected(domain);
    all_closed && domain.queues.wants() == Wants::Nothing
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
    if !is_empty {
        worker::announce(handle);
    }
}
