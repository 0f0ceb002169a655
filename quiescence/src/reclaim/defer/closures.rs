//! Closures: how they are queued, how the worker is asked to run them, and the limit.

use grace::limit::{Amount, Context};

use super::{add, admit, admit_over, close_if_full, context, leave_to_worker, settle, take_room};
use crate::event::trace;
use crate::os::{clock, nap};
use crate::reclaim::domain_state::Named;
use crate::reclaim::domains;
use crate::reclaim::free::{Callback, Closure};
use crate::reclaim::local::{self, Own, Sections};
use crate::reclaim::retire::AtLimit;
use crate::reclaim::thread_queue::{BATCH, Contents, Queue, Wants};
use crate::reclaim::worker;

/// [`Domain::call`](crate::Domain::call), and its kin.
#[inline]
pub(crate) fn call<K: Named, F: FnOnce() + Send + 'static>(
    tag: &K,
    f: F,
    patience: Patience,
) -> Result<(), AtLimit<F>> {
    let amount = Closure::<F>::AMOUNT;
    let queue = local::closures(tag.core(), tag);
    let paid = queue.is_some_and(|queue| queue.local_stock().take(amount));
    if !paid && !make_room_for_closure(tag, queue, amount, patience) {
        return Err(AtLimit::unchanged(f));
    }
    let due = add_closure(tag, queue, f);
    if patience == Patience::Hurried {
        worker::hurry(&tag.handle());
    } else if due && let Some(queue) = queue {
        tend_closures(tag, queue);
    }
    if !paid {
        leave_to_worker(tag, queue);
    }
    Ok(())
}

/// As [`call`], for callers that cannot be refused: goes over the limit if there is no room and the
/// thread must not wait.
pub(crate) fn call_over<K: Named, F: FnOnce() + Send + 'static>(tag: &K, f: F) {
    let waits = if context() == Context::Outside { Patience::Lazy } else { Patience::None };
    if let Err(refused) = call(tag, f, waits) {
        let amount = Closure::<F>::AMOUNT;
        let queue = local::closures(tag.core(), tag);
        admit_over(tag.core(), queue, amount);
        add_closure(tag, queue, refused.into_inner());
        leave_to_worker(tag, queue);
    }
}

/// Adds a closure that has been charged [`Closure::AMOUNT`]. Returns whether it is time for
/// [`tend_closures`].
#[inline]
pub(super) fn add_closure<K: Named, F: FnOnce() + Send + 'static>(
    tag: &K,
    queue: Option<&Queue>,
    f: F,
) -> bool {
    let (f, bytes) = (Closure(f), Closure::<F>::AMOUNT.bytes);
    if const { Closure::<F>::FITS } {
        // SAFETY: an F, which is Send and 'static.
        unsafe { add(tag, queue, Contents::Closures, &Closure::<F>::KIND, f, bytes) }
    } else {
        let (kind, f) = (&Box::<Closure<F>>::KIND, Box::new(f));
        // SAFETY: an F in a box, as above.
        unsafe { add(tag, queue, Contents::Closures, kind, f, bytes) }
    }
}

/// How a closure is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It may wait for more callbacks to share a grace period with. Its thread waits for room.
    Lazy,
    /// It is closed at once. Its thread waits for room.
    Hurried,
    /// As `Lazy`, but its thread waits for a tick at most.
    Tick,
    /// As `Lazy`, but its thread does not wait.
    None,
}

/// What a thread does for its own closures from time to time: if a batch is full, it asks for a
/// grace period, and has the worker run what is ready.
#[cold]
pub(super) fn tend_closures(tag: &dyn Named, queue: &Queue) {
    let domain = tag.core();
    if !close_if_full(domain, queue, BATCH) {
        return;
    }
    if Sections::of_this_thread() == Sections::None {
        domain.grace_periods.advance(Own::in_domain(domain).me());
    }
    worker::hurry(&tag.handle());
}

/// Admits a closure that the thread's local stock does not cover. Where it waits for room, the
/// worker makes it.
#[cold]
pub(super) fn make_room_for_closure(
    tag: &dyn Named,
    queue: Option<&Queue>,
    amount: Amount,
    patience: Patience,
) -> bool {
    let waits = patience != Patience::None;
    let domain = domains::known(tag);
    if admit(domain, queue, amount) {
        return true;
    }
    //~ no-limit
    let context = context();
    let borrows =
        context == Context::Section && queue.is_some() && !local::refresh_over_limit(domain);
    trace::limit_reached(domain.grace_periods.source(), waits && context == Context::Outside);
    match context {
        _ if !waits => false,
        Context::Section if borrows => {
            admit_over(domain, queue, amount);
            true
        }
        Context::Section | Context::Callback => false,
        Context::Outside => wait_for_room(tag, queue, amount, patience),
    }
}

/// After this many checks in a row that find no callback waiting, and yet no room, a closure goes
/// over the limit.
const LOOKS_IN_VAIN: u32 = 16;

/// Waits until the worker has made room for a closure; in a sleepable domain for a tick at most,
/// and then admits it over the limit [D-2]. Returns whether it was admitted.
fn wait_for_room(
    tag: &dyn Named,
    queue: Option<&Queue>,
    amount: Amount,
    patience: Patience,
) -> bool {
    let domain = tag.core();
    let for_a_tick = patience == Patience::Tick;
    let is_sleepable = domain.grace_periods.is_sleepable();
    let began_ns = clock::monotonic_ns();
    let mut in_vain = 0;
    loop {
        if !for_a_tick {
            // Waits for a grace period, however long that takes; so not with `Patience::Tick`.
            settle(domain, local::existing_objects(domain).as_deref());
        }
        if context() != Context::Outside {
            // A drop has begun a section here and kept the guard: the worker might wait for it.
            admit_over(domain, queue, amount);
            return true;
        }
        if admit(domain, queue, amount) {
            return true;
        }
        // If nothing waits, the charge is in local stocks, from when the limit was higher, of
        // threads that may not use the domain for long. Nothing will make room.
        in_vain = if domain.queues.wants() == Wants::Nothing { in_vain + 1 } else { 0 };
        if in_vain == LOOKS_IN_VAIN {
            admit_over(domain, queue, amount);
            return true;
        }
        if !worker::hurry(&tag.handle()) {
            return false; // there is no worker, so no thread makes room
        }
        let waited_ns = clock::monotonic_ns().saturating_sub(began_ns);
        if (for_a_tick || is_sleepable) && u128::from(waited_ns) >= nap::TICK.as_nanos() {
            if is_sleepable {
                domain.admit_over(amount);
            }
            return is_sleepable;
        }
        nap::moment();
    }
}

/// Calls `f` after a grace period, if there is room.
pub(crate) fn call_if_room<K: Named, F: FnOnce() + Send + 'static>(tag: &K, f: F) -> Result<(), F> {
    let amount = Closure::<F>::AMOUNT;
    let queue = local::closures(tag.core(), tag);
    if !take_room(tag, queue, amount) {
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
