//! At the limit: an object that the thread's local stock does not cover is admitted with more room
//! from the domain, waits for a grace period, goes over the limit, or is refused. What has gone
//! over the limit in a section is settled when the section ends.
//!
//! [`grace::limit::limit_action`] decides what to do; this file does it.

use grace::Urgency;
use grace::batch::{self, BATCH, RUN_UNTIMED};
use grace::limit::{Amount, Context, LimitAction, Zone, limit_action};

use crate::event::trace;
use crate::os::{nap, thread};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::handle::Named;
use crate::reclaim::local::{self, Own, Sections};
use crate::reclaim::running;
use crate::reclaim::thread_queue::{Contents, Queue};
use crate::reclaim::worker;

/// How deep drops may nest, where each drop retires an object that is freed on the spot. Deeper
/// objects go over the limit, since the stack is bounded, too.
pub(crate) const NESTED_MAX: u32 = 32;

/// The outcome of asking for room for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It is charged: queue it.
    Charged,
    /// There is none, but a grace period has passed: free it.
    Waited,
    /// There is none, and the thread must not wait.
    Full,
}

/// The context of the calling thread, for [`limit_action`].
pub(crate) fn context() -> Context {
    if Sections::of_this_thread() != Sections::None {
        Context::Section
    } else if running::in_callback() {
        Context::Callback
    } else {
        Context::Outside
    }
}

/// Admits an object that the thread's local stock does not cover. Waits if need be and `waits`.
#[cold]
pub(crate) fn make_room(
    tag: &dyn Named,
    queue: Option<&Queue>,
    object: Amount,
    waits: bool,
) -> Room {
    let core = domains::known(tag);
    if admit(core, queue, object) {
        return Room::Charged;
    }
    //~ no-limit
    let limit_action = match queue {
        // One object or closure of a thread may go over the limit at a time. If other threads have
        // made room, the thread is within the limit again.
        Some(_) if context() == Context::Section && local::refresh_over_limit(core) => {
            LimitAction::Refuse
        }
        Some(queue) => limit_action(context(), &queue.local_stock().stock()),
        // A thread whose queue is gone has no local stock.
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
        LimitAction::Refuse => Room::Full, //~ no-refusal
    }
}

/// The outcome for an object after the wait; `is_over`: whether the grace period has ended.
pub(crate) fn admit_after_wait(
    core: &DomainState,
    queue: Option<&Queue>,
    object: Amount,
    is_over: bool,
) -> Room {
    if admit(core, queue, object) {
        Room::Charged
    // Not if a drop has begun a section meanwhile: the object would be freed in it [D-1].
    } else if is_over && context() != Context::Section {
        Room::Waited
    } else {
        core.admit_over(object);
        Room::Charged
    }
}

/// Admits an object without waiting: with room that the running callbacks have made, with more room
/// for the queue's local stock, or, without a queue, by a charge of its own.
pub(crate) fn admit(core: &DomainState, queue: Option<&Queue>, object: Amount) -> bool {
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

/// Admits an object or a closure over the limit. If the thread [settles it](is_settled_here), it
/// does so when its section ends. Else the caller adds it and calls [`leave_to_worker`].
pub(crate) fn admit_over(core: &DomainState, queue: Option<&Queue>, object: Amount) {
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

/// Whether the queue's thread settles what goes over the limit in it, by waiting. Not in a
/// sleepable domain: the thread may be in a section of it, which is not recorded. Not closures: the
/// thread may hold a lock that one of them needs.
pub(crate) fn is_settled_here(core: &DomainState, queue: &Queue) -> bool {
    queue.contents() == Contents::Objects && !core.is_sleepable()
}

/// Has the worker run what has just been added over the limit, unless the queue's thread
/// [settles it](is_settled_here). The end of a section, which takes no lock [D-3], cannot do this.
pub(crate) fn leave_to_worker(tag: &dyn Named, queue: Option<&Queue>) {
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
/// The sections that it waits for may be its own, or those of tasks that only this thread polls:
/// the domain does not record which.
///
/// Does not wait in a section [D-1]: since the caller checked, a drop or a subscriber may have
/// begun a section on this thread and kept the guard.
pub(crate) fn await_grace_period(core: &DomainState) -> bool {
    if Sections::of_this_thread() != Sections::None {
        return false;
    }
    if core.is_sleepable() {
        return core.synchronize_within(Urgency::Expedited, nap::TICK);
    }
    core.synchronize(Urgency::Expedited, Own::in_domain(core).me())
}

/// Waits for a grace period, and drops those of this thread's objects that are ready: all that were
/// retired before. The thread is in no section and in no callback. Returns whether the grace period
/// has ended [D-2].
pub(crate) fn settle(core: &DomainState, queue: Option<&Queue>) -> bool {
    if let Some(queue) = queue {
        queue.close(core, Urgency::Expedited);
    }
    let is_over = await_grace_period(core);
    if let Some(queue) = queue
        && Sections::of_this_thread() == Sections::None
    {
        run_ready(core, queue);
    }
    is_over
}

/// Drops this thread's ready objects, in several runs while the domain is near its limit.
pub(crate) fn run_ready(core: &DomainState, queue: &Queue) {
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

/// Settles what this thread has admitted over the limit in a section. If another thread (the
/// worker, a barrier) is dropping this thread's objects, waits for that thread, as it would take
/// that long to drop them itself: else the thread's next section would begin over the limit, with
/// no room for its first object, which must not be refused.
pub(crate) fn settle_domain(core: &DomainState, queue: &Queue) {
    settle(core, Some(queue));
    while queue.local_stock().refresh_over_limit(core)
        && Sections::of_this_thread() == Sections::None
        && queue.wait_for_runner()
    {
        run_ready(core, queue);
    }
}

/// A section has ended on a thread that has gone over the limit with an object: settles that, once
/// the thread is in no section and no callback, unless other threads have made room meanwhile.
///
/// **Invariant [D-3]: nothing else waits, locks or runs a drop where a section ends.** This
/// function does, because a thread that replaces objects only in sections has no other place to
/// wait: it would go over the limit each time.
#[cold]
pub(crate) fn settle_over_limit() {
    //~ no-settle
    if context() != Context::Outside || std::thread::panicking() {
        return local::make_overdue();
    }
    for (handle, queue) in local::queues_over_limit() {
        if is_settled_here(&handle, &queue) && queue.local_stock().refresh_over_limit(&handle) {
            settle_domain(&handle, &queue);
        }
    }
}

/// Whether a QSBR reader, at a quiescent state, should call [`catch_up`]: it has objects that wait,
/// or may be over the limit.
pub(crate) fn is_due(core: &DomainState) -> bool {
    !running::in_callback()
        && (local::own_objects(core).is_some_and(|queue| !queue.is_empty())
            || local::refresh_may_be_over_limit())
}

/// What a QSBR reader does then, offline: drops a few more ready objects than it has retired since
/// the last call, as [`defer`](crate::reclaim::defer) does outside sections; and waits if the
/// domain is near the limit.
pub(crate) fn catch_up(core: &DomainState) {
    if local::may_be_over_limit() {
        settle_over_limit();
    }
    let Some(queue) = local::own_objects(core) else { return };
    if Sections::of_this_thread() != Sections::None {
        return;
    }
    let share = match queue.take_added() {
        0 => core.tuning.run_min(), // it has retired nothing since
        added => batch::run_share(added).min(BATCH),
    };
    let ran = run_share(core, queue, share);
    if batch::advances(ran, || queue.wants()) {
        core.advance(Own::in_domain(core).me());
        run_share(core, queue, share);
    }
    if core.zone() != Zone::Free {
        settle(core, Some(queue));
    }
}

/// Drops up to `share` of this thread's ready objects. A small share is dropped [`RUN_UNTIMED`] at
/// a time, without reading the clock; a large one in longer goes, each as long as the tuning allows
/// at most. Returns how many.
pub(crate) fn run_share(core: &DomainState, queue: &Queue, share: u64) -> u64 {
    let go = if share > 4 * RUN_UNTIMED { share } else { RUN_UNTIMED };
    let mut ran = 0;
    loop {
        let some = queue.run_some(core, thread::token(), go.min(share - ran));
        ran += some;
        // A drop may begin a section on this thread and leak it.
        if some == 0 || ran >= share || Sections::of_this_thread() != Sections::None {
            return ran;
        }
    }
}
