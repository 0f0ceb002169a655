//! Deferral: how threads queue callbacks, who runs them, and what happens at the limit.
//!
//! Each thread has two queues in a domain. Retired objects are dropped by the thread itself when it
//! retires again: a few at a time, so that memory goes back to the cache it came from. Closures,
//! which may want a lock that an updater holds, are not run here. The worker
//! ([`crate::reclaim::worker`]), or the thread that calls `barrier`, runs whatever is left.
//!
//! **Invariant [D-1]: a registered thread that is in a section, of whatever domain, runs no
//! callback and waits for nothing; it only adds.** A QSBR reader does its part at its quiescent
//! states, offline.
//!
//! At the limit ([`crate::reclaim::limit`]) objects and closures part ways. An object's thread
//! waits for one grace period and runs its own callbacks; if there is still no room, the object is
//! freed on the spot, since its grace period is over: so it needs the progress of sections and of
//! drops only. A closure's thread waits until the worker has made room. Inside a section the first
//! object is admitted over the limit, and the thread settles that when its outermost section ends;
//! a second one is refused. In a callback an object waits for a grace period and is freed; a
//! closure finds the room of the callback that is running, or is refused.

mod closures;
mod everything;
mod tasks;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(not(loom))]
pub(crate) use closures::call_within_a_tick;
pub(crate) use closures::{Patience, call, call_over};
pub(crate) use everything::{barrier, finish, orphan};
pub(crate) use tasks::{
    ask_for_room, call_if_room, call_over_now, end_after_wait, nothing_waits, reserve_any,
    retire_if_room, retire_raw_over, run_own_objects,
};

use std::sync::atomic::Ordering::Relaxed;

use grace::Urgency;
use grace::batch::{self, RUN_SHARE};
use grace::limit::{Amount, Context, LimitAction, Zone, limit_action};

use crate::chaos::{self, Mutant, Point};
use crate::event::trace;
use crate::os::{nap, thread, unwind};
use crate::reclaim::debug_objects;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::handle::{Handle, Named};
use crate::reclaim::local::{self, Own, Sections};
use crate::reclaim::queue::{BATCH, BATCH_ALONE, Contents, Queue};
use crate::reclaim::retire::{self, Boxed, Counted, Refused, Retire, Value};
use crate::reclaim::running::{self, Uncharged};
use crate::reclaim::stream;
use crate::reclaim::worker;

/// Runs of a few callbacks at one quiescent state.
const RUNS_AT_QUIESCENT_STATE: usize = 64;

/// Objects whose drops retire others, one within the other, that are freed on the spot. Deeper ones
/// go over the limit, for the stack has one, too.
const NESTED_MAX: u32 = 32;

/// What comes of an object that asks for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// It is charged: queue it.
    Charged,
    /// There is none; a grace period has gone by.
    Waited,
    /// There is none, and nothing may be waited for.
    Full,
}

// ----
// objects --------------------------------------------------------------------------------------

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

/// Room for an object that is charged for its size, if the thread's local stock has it. The thread
/// is not over the limit then [L-2].
#[inline]
pub(crate) fn reserve_by_size<K: Named, T: Send + 'static>(tag: &K) -> Option<Reserved<'_>> {
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

/// Whether an object of so many bytes, if that is known, may be unlinked here, to be retired then:
/// not in a section, where nothing can be waited for, if this thread has gone over the limit there
/// already.
pub(crate) fn may_replace<K: Named>(tag: &K, bytes: Option<usize>) -> bool {
    let Some(queue) = local::objects(tag.core(), || tag.handle()) else { return true };
    let mut stock = queue.local_stock().stock();
    let taken = bytes.is_some_and(|bytes| stock.take(Amount::object(bytes as u64)));
    taken || !local::is_over_limit(tag.core()) || context() != Context::Section
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
unsafe fn add_object<K: Named, P>(
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

/// The thread's part, now and then: a step of the grace period and a few drops.
#[cold]
fn tend(core: &DomainState, queue: &Queue) {
    // Relaxed: a hint.
    close_if_full(core, queue, if core.alone.load(Relaxed) { BATCH_ALONE } else { BATCH });
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
        Sections::Qsbr => {
            core.advance(Own::in_domain(core).me());
            if core.zone() != Zone::Free {
                local::make_overdue();
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
fn on_the_spot(core: &DomainState, free: impl FnOnce()) {
    let whole = running::running_callbacks(core, &Uncharged::new(), || unwind::caught(free));
    core.counters().callbacks_panicked.fetch_add(u64::from(!whole), Relaxed);
}

// ---- the
// limit ------------------------------------------------------------------------------------

/// Where the calling thread is, as far as the limit goes.
fn context() -> Context {
    if Sections::of_this_thread() != Sections::None {
        Context::Section
    } else if running::in_callback() {
        Context::Callback
    } else {
        Context::Outside
    }
}

/// Admits an object that the thread's local stock does not pay for, if need be and `waits` by
/// waiting.
#[cold]
fn make_room<K: Named>(tag: &K, queue: Option<&Queue>, object: Amount, waits: bool) -> Room {
    let core = domains::known(tag);
    if admit(core, queue, object) {
        return Room::Charged;
    }
    if chaos::mutant(Mutant::NoLimit) {
        admit_over(core, queue, object);
        return Room::Charged;
    }
    let limit_action = match queue {
        // One object or closure of a thread goes over the limit. It is within the limit if others
        // have made room.
        Some(_) if context() == Context::Section && local::is_over_limit(core) => {
            LimitAction::Refuse
        }
        Some(queue) => limit_action(context(), &queue.local_stock().stock()),
        // A thread that has no queue any more has no local stock.
        None if context() == Context::Section => LimitAction::Refuse,
        None => LimitAction::WaitAndFree,
    };
    trace::limit_reached(
        core.source(),
        waits && !matches!(limit_action, LimitAction::Borrow | LimitAction::Refuse),
    );
    match limit_action {
        _ if !waits => Room::Full,
        LimitAction::WaitAndRun => {
            let is_over = settle(core, queue);
            admit_after_wait(core, queue, object, is_over)
        }
        LimitAction::WaitAndFree => match running::nested_in_callbacks() {
            NESTED_MAX.. => Room::Full,
            _ => {
                let is_over = await_grace_period(core);
                admit_after_wait(core, queue, object, is_over)
            }
        },
        LimitAction::Borrow => {
            admit_over(core, queue, object);
            Room::Charged
        }
        LimitAction::Refuse if chaos::mutant(Mutant::NoRefusal) => {
            admit_over(core, queue, object);
            Room::Charged
        }
        LimitAction::Refuse => Room::Full,
    }
}

/// What comes of an object that has been waited for.
fn admit_after_wait(
    core: &DomainState,
    queue: Option<&Queue>,
    object: Amount,
    is_over: bool,
) -> Room {
    if admit(core, queue, object) {
        Room::Charged
    } else if is_over {
        Room::Waited
    } else {
        core.admit_over(object);
        Room::Charged
    }
}

/// Admits an object without waiting: with what the running callbacks have freed, with more from the
/// domain, or by itself.
fn admit(core: &DomainState, queue: Option<&Queue>, object: Amount) -> bool {
    if let Some(uncharged) = running::uncharged(core)
        && core.admit(object.minus(uncharged.room()))
    {
        uncharged.spend(object);
        return true;
    }
    match queue {
        Some(queue) => queue.local_stock().refill(core, object),
        None => core.admit(object),
    }
}

/// Admits an object or a closure over the limit. If it is the thread's to settle, a section that
/// the thread is in has it do that when it ends; else it is to be
/// [left to the worker](leave_to_worker) when it has been added.
fn admit_over(core: &DomainState, queue: Option<&Queue>, object: Amount) {
    match queue {
        Some(queue) => {
            queue.local_stock().borrow(core, object);
            local::note_over_limit(core);
            if is_settled_here(core, queue) {
                local::make_overdue();
            }
        }
        None => core.admit_over(object),
    }
}

/// Whether what goes over the limit in this queue is settled by its thread, which waits for it. Not
/// in a sleepable domain: the thread may be in a section of it, of which no thread knows. Nor
/// closures: the thread may hold a lock that one of them wants.
fn is_settled_here(core: &DomainState, queue: &Queue) -> bool {
    queue.contents() == Contents::Objects && !core.is_sleepable()
}

/// Has the worker run what has just been added over the limit, if it is the worker's to run. Here,
/// and not when the section ends: that takes no lock [D-3].
fn leave_to_worker<K: Named>(tag: &K, queue: Option<&Queue>) {
    let core = tag.core();
    if queue.is_some_and(|queue| {
        queue.local_stock().stock().is_over_limit() && !is_settled_here(core, queue)
    }) {
        worker::hurry(&tag.handle());
    }
}

/// Waits for a grace period. Returns whether it has ended.
///
/// **Invariant [D-2]: at the limit of a sleepable domain no thread waits for longer than a tick.**
/// The sections that it waits for may be its own, or those of tasks that only this thread would
/// poll: no thread knows.
fn await_grace_period(core: &DomainState) -> bool {
    if core.is_sleepable() {
        return core.synchronize_within(Urgency::Expedited, nap::TICK);
    }
    core.synchronize(Urgency::Expedited, Own::in_domain(core).me());
    true
}

/// Waits for a grace period, and drops of this thread's objects what is ready: all that was retired
/// before. The thread is in no section and in no callback. Returns whether the grace period has
/// ended [D-2].
fn settle(core: &DomainState, queue: Option<&Queue>) -> bool {
    if let Some(queue) = queue {
        queue.close(core, Urgency::Expedited);
    }
    let is_over = await_grace_period(core);
    if let Some(queue) = queue {
        run_ready(core, queue);
    }
    is_over
}

/// Drops of this thread's objects what is ready, as long as the limit asks for it.
fn run_ready(core: &DomainState, queue: &Queue) {
    // A drop may begin a section on this thread and leak it.
    while queue.run_some(core, thread::token(), core.tuning.run_min()) != 0
        && core.zone() != Zone::Free
        && Sections::of_this_thread() == Sections::None
    {}
    if queue.is_empty() {
        queue.local_stock().clear_over_limit();
    }
    queue.local_stock().trim(core);
}

/// Settles what a section of this thread has gone over the limit with. Where another thread is in a
/// drop of this thread's objects (the worker, a barrier), it waits for that, as it would for the
/// drop if it ran it itself: else the next section would find the thread over the limit, with an
/// object that it may not refuse.
fn settle_domain(core: &DomainState, queue: &Queue) {
    settle(core, Some(queue));
    while queue.local_stock().is_over_limit(core)
        && Sections::of_this_thread() == Sections::None
        && queue.wait_for_runner()
    {
        run_ready(core, queue);
    }
}

/// A section has ended on a thread that has gone over the limit with an object: settles that, once
/// it is in no section at all and in no callback, unless others have made room meanwhile.
///
/// **Invariant [D-3]: nothing else waits, locks or runs a drop where a section ends.** This does
/// because objects that are replaced in sections have no other place to wait in: who does nothing
/// but that would go over the limit each time.
#[cold]
pub(crate) fn settle_over_limit() {
    if chaos::mutant(Mutant::NoSettle) {
        return;
    }
    if context() != Context::Outside || std::thread::panicking() {
        return local::make_overdue();
    }
    for (handle, queue) in local::queues_over_limit() {
        if is_settled_here(&handle, &queue) && queue.local_stock().is_over_limit(&handle) {
            settle_domain(&handle, &queue);
        }
    }
}

/// A QSBR reader that retires is at a quiescent state: whether it has its part to do.
pub(crate) fn is_due(core: &DomainState) -> bool {
    !running::in_callback()
        && (local::existing_objects(core).is_some_and(|queue| !queue.is_empty())
            || local::has_over_limit())
}

/// Its part, to be done offline: drops what is ready, and waits near the limit.
pub(crate) fn catch_up(core: &DomainState) {
    settle_over_limit();
    let Some(queue) = local::existing_objects(core) else { return };
    if Sections::of_this_thread() != Sections::None {
        return;
    }
    for _ in 0..RUNS_AT_QUIESCENT_STATE {
        if queue.run_some(core, thread::token(), core.tuning.run_min()) == 0 {
            break;
        }
    }
    if core.zone() != Zone::Free {
        settle(core, Some(&queue));
    }
}
