//! What tasks do at the limit: nothing here waits.

use grace::Urgency;
use grace::limit::{Amount, Context};

use super::closures::{add_closure, tend_closures};
use super::{NESTED_MAX, add_boxed, add_value, admit, context, note, on_the_spot, retire_over};
use crate::event::trace;
use crate::os::thread;
use crate::reclaim::debug_objects;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::free::{self, Boxed, Closure};
use crate::reclaim::handle::Named;
use crate::reclaim::local;
use crate::reclaim::reserve::reserve_any;
use crate::reclaim::retire::Retire;
use crate::reclaim::running;
use crate::reclaim::thread_queue::Wants;
use crate::reclaim::worker;

/// A task has reached the limit: makes what waits ready as soon as possible. Asks for a grace
/// period that begins after this call, and returns its cookie.
#[cold]
pub(crate) fn ask_for_room(tag: &dyn Named) -> grace::Cookie {
    let core = domains::known(tag);
    trace::limit_reached(core.source(), true);
    if let Some(queue) = local::existing_objects(core) {
        queue.close(core, Urgency::Expedited);
    }
    let cookie = core.request(Urgency::Expedited);
    worker::hurry(&tag.handle()); // without one, the polls do the work
    cookie
}

/// Drops this thread's ready objects, if it is in no section and no callback.
pub(crate) fn run_own_objects(core: &DomainState) {
    while context() == Context::Outside
        && local::existing_objects(core)
            .is_some_and(|queue| queue.run_some(core, thread::token(), core.tuning.run_min()) != 0)
    {
    }
}

/// Whether no callback waits: then none will make room.
pub(crate) fn nothing_waits(core: &DomainState) -> bool {
    core.queues.wants() == Wants::Nothing
}

/// Drops `value` after a grace period, if there is room.
pub(crate) fn retire_if_room<K: Named, P: Retire>(tag: &K, value: P) -> Result<(), P> {
    let (value, amount) = note(value);
    let queue = local::objects(tag.core(), tag);
    let taken = queue.is_some_and(|queue| queue.local_stock().take(amount));
    if !taken && !admit(domains::known(tag), queue, amount) {
        debug_objects::forget(value.owned().0);
        return Err(value);
    }
    add_value(tag, queue, value, amount.bytes);
    Ok(())
}

/// Drops `value` after a grace period, over the limit if there is no room.
pub(crate) fn retire_over_now<K: Named, P: Retire>(tag: &K, value: P) {
    if let Err(value) = retire_if_room(tag, value) {
        let (value, amount) = note(value);
        domains::known(tag).admit_over(amount);
        let queue = local::objects(tag.core(), tag);
        add_value(tag, queue, value, amount.bytes);
    }
}

/// Drops `value`, whose grace period has ended and for which there is no room; in a section, or too
/// deep in other drops, retires it over the limit.
pub(crate) fn end_after_wait<K: Named, P: Retire>(tag: &K, value: P) {
    if may_free_here() {
        on_the_spot(domains::known(tag), || free::end(value));
    } else {
        retire_over(&tag.handle(), value);
    }
}

/// Whether the thread may drop objects now: not in a section [D-1], nor too deep in other drops.
fn may_free_here() -> bool {
    context() != Context::Section && running::nested_in_callbacks() < NESTED_MAX
}

/// As [`retire_raw`](super::retire_raw), but never waits. If there is no room, frees the object on
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
    let core = domains::known(tag);
    if let Some(room) = reserve_any(tag, bytes) {
        // SAFETY: by the contract.
        return unsafe { room.retire(tag, object, bytes) };
    }
    if is_unread && may_free_here() {
        // SAFETY: by the contract.
        return on_the_spot(core, || unsafe { Boxed::free(object) });
    }
    debug_objects::note(object.cast_const().cast(), size_of::<T>());
    let amount = Amount::object(bytes as u64);
    core.admit_over(amount);
    let queue = local::objects(core, tag);
    // SAFETY: by the contract; it has been charged.
    unsafe { add_boxed(tag, queue, object, amount.bytes) };
}

/// Calls `f` after a grace period, if there is room.
pub(crate) fn call_if_room<K: Named, F: FnOnce() + Send + 'static>(tag: &K, f: F) -> Result<(), F> {
    let amount = Closure::<F>::AMOUNT;
    let queue = local::closures(tag.core(), tag);
    let taken = queue.is_some_and(|queue| queue.local_stock().take(amount));
    if !taken && !admit(domains::known(tag), queue, amount) {
        return Err(f);
    }
    if add_closure(tag, queue, f)
        && let Some(queue) = queue
    {
        tend_closures(tag, queue);
    }
    Ok(())
}

/// Calls `f` after a grace period, over the limit.
pub(crate) fn call_over_now<K: Named, F: FnOnce() + Send + 'static>(tag: &K, f: F) {
    let amount = Closure::<F>::AMOUNT;
    domains::known(tag).admit_over(amount);
    let queue = local::closures(tag.core(), tag);
    add_closure(tag, queue, f);
}
