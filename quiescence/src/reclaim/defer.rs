//! Deferral: how threads queue callbacks, who runs them, and what happens at the limit.
//!
//! Each thread has two queues in a domain. Retired objects are dropped by the thread itself when it
//! retires again: a few at a time, so that memory goes back to the cache it came from. Closures,
//! which may want a lock that an updater holds, are not run here; but for C's deferred functions
//! ([`deferred`]), of which liburcu says that they are. The worker ([`crate::reclaim::worker`]), or
//! the thread that calls `barrier`, runs whatever is left.
//!
//! **Invariant [D-1]: a registered thread that is in a section, of whatever domain, runs no
//! callback and waits for nothing; it only adds.** A QSBR reader does its part at its quiescent
//! states, offline. (Where a domain ends, by the last of its handles, what waits in it runs there,
//! also in a section of another domain. A collector of `epoch` gives that handle to the worker.)
//!
//! At the limit ([`crate::reclaim::at_limit`]) objects and closures part ways. An object's thread
//! waits for one grace period and runs its own callbacks; if there is still no room, the object is
//! freed on the spot, since its grace period is over: so it needs the progress of sections and of
//! drops only. A closure's thread waits until the worker has made room. Inside a section the first
//! object is admitted over the limit, and the thread settles that when its outermost section ends;
//! a second one is refused. In a callback an object waits for a grace period and is freed; a
//! closure finds the room of the callback that is running, or is refused.

mod closures;
#[cfg(not(loom))]
mod deferred;
mod everything;
#[cfg(not(loom))]
mod pinned;
mod tasks;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use crate::reclaim::at_limit::{catch_up, is_due, settle_over_limit};
pub(crate) use closures::{Patience, call, call_over};
#[cfg(not(loom))]
pub use deferred::Deferred;
#[cfg(not(loom))]
pub(crate) use deferred::{defer, defer_in_any_case, is_running_deferred, run_deferred};
pub(crate) use everything::{barrier, finish, orphan};
#[cfg(not(loom))]
pub(crate) use pinned::{catch_up_after_section, close_own, may_drain};
pub(crate) use tasks::{
    ask_for_room, call_if_room, call_over_now, end_after_wait, nothing_waits, reserve_any,
    retire_if_room, retire_over_now, retire_raw_over, run_own_objects,
};

use std::sync::atomic::Ordering::Relaxed;

use grace::batch::{self, RUN_SHARE};
use grace::limit::{Amount, Context, Zone};

use crate::chaos::{self, Mutant, Point};
use crate::os::thread;
use crate::os::user_code::{self, Site};
use crate::reclaim::at_limit::{
    NESTED_MAX, Room, admit, admit_over, context, leave_to_worker, make_room, settle,
};
use crate::reclaim::debug_objects;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::handle::{Handle, Named};
use crate::reclaim::local::{self, Own, Sections};
use crate::reclaim::retire::{self, Boxed, Counted, Refused, Retire, Value};
use crate::reclaim::running::{self, Uncharged};
use crate::reclaim::stream;
use crate::reclaim::thread_queue::{BATCH, BATCH_ALONE, Contents, Queue};
use crate::reclaim::worker;

/// Drops the box that `object` came from after a grace period. May wait, or drop it on the spot
/// after waiting; inside a section it is never refused.
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

/// As [`retire_raw`], where the thread's local stock does not pay for it.
///
/// # Safety
/// As [`retire_raw`].
#[cold]
#[track_caller]
unsafe fn retire_slowly<K: Named, T: Send + 'static>(tag: &K, object: *mut T, bytes: usize) {
    debug_objects::note(object.cast_const().cast(), size_of::<T>());
    if chaos::mutant(Mutant::RetireBeforeUnlink) {
        // SAFETY: not at all: this is the fault to be caught.
        return unsafe { Boxed::free(object) };
    }
    let amount = Amount::object(bytes as u64);
    let queue = local::objects(tag.core(), || tag.handle());
    match make_room(tag, queue, amount, true) {
        Room::Charged => {}
        // SAFETY: by the contract; its grace period is over.
        Room::Waited => return on_the_spot(tag.core(), || unsafe { Boxed::free(object) }),
        Room::Full => admit_over(tag.core(), queue, amount),
    }
    // SAFETY: by the contract; it has been charged.
    unsafe { add_boxed(tag, queue, object, amount.bytes) };
    leave_to_worker(tag, queue);
}

/// Adds an object that came from a box and was charged so much, as `charge_of_box` says. The
/// number stands beside it only where its weight is not its size.
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

/// Room for one object in the calling thread's queue, out of its local stock: for a thread that is
/// about to unlink one.
#[derive(Debug)]
pub(crate) struct Reserved<'q> {
    queue: &'q Queue,
    amount: Amount,
}

/// Room for an object that is charged for its size, if the thread's local stock has it, and the
/// thread is over the limit nowhere, neither with an object nor with a closure: so it may unlink
/// whatever is in its place, and wait, or go over the limit, for what that weighs more.
#[inline]
pub(crate) fn reserve_by_size<K: Named, T: Send + 'static>(tag: &K) -> Option<Reserved<'_>> {
    if local::may_be_over_limit() {
        return None;
    }
    reserve(tag, Boxed::<T>::CHARGE as usize)
}

/// Room for an object of so many bytes, if the thread's local stock has it.
#[inline]
fn reserve<K: Named>(tag: &K, bytes: usize) -> Option<Reserved<'_>> {
    let amount = Amount::object(bytes as u64);
    let queue = local::objects(tag.core(), || tag.handle())?;
    let plain = !chaos::mutant(Mutant::RetireBeforeUnlink);
    (plain && queue.local_stock().take(amount)).then_some(Reserved { queue, amount })
}

/// The same with more from the domain, as far as there is any.
#[cold]
fn reserve_more<K: Named>(tag: &K, bytes: usize) -> Option<Reserved<'_>> {
    let amount = Amount::object(bytes as u64);
    let queue = local::objects(tag.core(), || tag.handle())?;
    admit(domains::known(tag), Some(queue), amount).then_some(Reserved { queue, amount })
}

impl Reserved<'_> {
    /// It is not needed after all.
    pub(crate) fn put_back(self, core: &DomainState) {
        self.queue.local_stock().put_back(core, self.amount);
    }

    /// Drops the box that `object` came from after a grace period; nothing, if it is null.
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
    /// As for [`retire`](Self::retire); the room is [`reserve_by_size`]'s, or as much.
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

    /// It is another object than the one for which room was reserved. Waits for nothing: what is
    /// missing goes over the limit.
    #[cold]
    fn adjust(&mut self, core: &DomainState, bytes: usize) {
        let reserved = std::mem::replace(&mut self.amount, Amount::object(bytes as u64));
        let local_stock = self.queue.local_stock();
        core.charge.0.give_back(local_stock.give_back(reserved.minus(self.amount)));
        let missing = self.amount.minus(reserved);
        if !local_stock.take(missing) && !admit(core, Some(self.queue), missing) {
            core.admit_over(missing);
        }
    }
}

/// Whether the calling thread is in a section, of whatever domain of threads: what it retires here
/// waits for nothing [D-1].
pub(crate) fn in_section() -> bool {
    context() == Context::Section
}

/// Whether an object of so many bytes, if that is known, may be unlinked here, to be retired then:
/// not in a section, where nothing can be waited for, if this thread has gone over the limit there
/// already.
#[inline]
pub(crate) fn may_replace<K: Named>(tag: &K, bytes: Option<usize>) -> bool {
    if !local::may_be_over_limit() {
        return true;
    }
    let Some(queue) = local::objects(tag.core(), || tag.handle()) else { return true };
    let mut stock = queue.local_stock().stock();
    let taken = bytes.is_some_and(|bytes| stock.take(Amount::object(bytes as u64)));
    let is_over_limit = local::is_over_limit(tag.core());
    local::has_over_limit(); // perhaps it may be nowhere, since that has found out
    taken || !is_over_limit || context() != Context::Section
}

/// Drops `value` after a grace period, or gives it back: if there is no room, and `waits` is false
/// or nothing may be waited for.
#[track_caller]
pub(crate) fn retire<K: Named, P: Retire>(
    tag: &K,
    value: P,
    waits: bool,
) -> Result<(), Refused<P>> {
    let (value, amount) = retire::note(value);
    let queue = local::objects(tag.core(), || tag.handle());
    let paid = queue.is_some_and(|queue| queue.local_stock().take(amount));
    if !paid {
        match make_room(tag, queue, amount, waits) {
            Room::Charged => {}
            Room::Waited => {
                on_the_spot(tag.core(), || retire::end(value));
                return Ok(());
            }
            Room::Full => {
                debug_objects::forget(value.owned().0);
                return Err(Refused::retired(value, tag.handle(), retire_over));
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
    let (value, amount) = retire::note(value);
    let queue = local::objects(handle, || handle.clone());
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
        // SAFETY: as above, with its number.
        unsafe { add_object(tag, queue, &Value::<P>::NEAR, value, bytes) };
    } else {
        let value = Box::into_raw(Box::new(Counted { value, bytes }));
        // SAFETY: the same in a box.
        unsafe { add_object(tag, queue, &Value::<P>::FAR, value, bytes) };
    }
}

/// Adds a charged object to the thread's queue, and does the thread's part.
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
/// time for the thread to do its part.
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
    chaos::point(Point::Added);
    // Relaxed: ordered by the fences in `add` and in `Queues::leave` [DQ-3].
    if !core.queues.announced.load(Relaxed) && !chaos::mutant(Mutant::NoAnnouncement) {
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

/// The thread's part, now and then: a step of the grace period and a few drops.
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
        // Its grace period needs this thread's quiescent state, which does the thread's part.
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

/// Asks for a grace period if so many callbacks are open. Returns whether they were.
fn close_if_full(core: &DomainState, queue: &Queue, batch: u64) -> bool {
    let full = queue.is_full(core, batch);
    if full {
        queue.close(core, batch::urgency(core.zone()));
        queue.local_stock().trim(core);
    }
    full
}

/// Frees an object whose grace period is over, as callbacks are run.
pub(crate) fn on_the_spot(core: &DomainState, free: impl FnOnce()) {
    let whole = running::running_callbacks(core, &Uncharged::new(), || {
        user_code::caught(Site::OnTheSpot, free)
    });
    core.counters().callbacks_panicked.fetch_add(u64::from(!whole), Relaxed);
}
