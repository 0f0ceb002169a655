//! At the limit: an object that the thread's local stock does not pay for is admitted with more
//! from the domain, waits for a grace period, goes over the limit or is refused; and what has gone
//! over the limit in a section is settled when that ends.
//!
//! What is to be done is decided by [`grace::limit::limit_action`]; here it is carried out.

use grace::Urgency;
use grace::batch::{self, BATCH, RUN_UNTIMED};
use grace::limit::{Amount, Context, LimitAction, Zone, limit_action};

use crate::chaos::{self, Mutant};
use crate::event::trace;
use crate::os::{nap, thread};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::handle::Named;
use crate::reclaim::local::{self, Own, Sections};
use crate::reclaim::running;
use crate::reclaim::thread_queue::{Contents, Queue};
use crate::reclaim::worker;

/// Objects whose drops retire others, one within the other, that are freed on the spot. Deeper ones
/// go over the limit, for the stack has one, too.
pub(crate) const NESTED_MAX: u32 = 32;

/// What comes of an object that asks for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It is charged: queue it.
    Charged,
    /// There is none; a grace period has gone by.
    Waited,
    /// There is none, and nothing may be waited for.
    Full,
}

/// Where the calling thread is, as far as the limit goes.
pub(crate) fn context() -> Context {
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
pub(crate) fn make_room<K: Named>(
    tag: &K,
    queue: Option<&Queue>,
    object: Amount,
    waits: bool,
) -> Room {
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
pub(crate) fn admit_after_wait(
    core: &DomainState,
    queue: Option<&Queue>,
    object: Amount,
    is_over: bool,
) -> Room {
    if admit(core, queue, object) {
        Room::Charged
    // Not in a section that a drop has begun meanwhile: it would be freed there [D-1].
    } else if is_over && context() != Context::Section {
        Room::Waited
    } else {
        core.admit_over(object);
        Room::Charged
    }
}

/// Admits an object without waiting: with what the running callbacks have freed, with more from the
/// domain, or by itself.
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

/// Admits an object or a closure over the limit. If it is the thread's to settle, a section that
/// the thread is in has it do that when it ends; else it is to be
/// [left to the worker](leave_to_worker) when it has been added.
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

/// Whether what goes over the limit in this queue is settled by its thread, which waits for it. Not
/// in a sleepable domain: the thread may be in a section of it, of which no thread knows. Nor
/// closures: the thread may hold a lock that one of them wants.
pub(crate) fn is_settled_here(core: &DomainState, queue: &Queue) -> bool {
    queue.contents() == Contents::Objects && !core.is_sleepable()
}

/// Has the worker run what has just been added over the limit, if it is the worker's to run. Here,
/// and not when the section ends: that takes no lock [D-3].
pub(crate) fn leave_to_worker<K: Named>(tag: &K, queue: Option<&Queue>) {
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
///
/// In a section nothing is waited for [D-1]: a drop that has run since the caller looked, or a
/// subscriber, may have begun one on this thread and kept it.
pub(crate) fn await_grace_period(core: &DomainState) -> bool {
    if Sections::of_this_thread() != Sections::None {
        return false;
    }
    if core.is_sleepable() {
        return core.synchronize_within(Urgency::Expedited, nap::TICK);
    }
    core.synchronize(Urgency::Expedited, Own::in_domain(core).me())
}

/// Waits for a grace period, and drops of this thread's objects what is ready: all that was retired
/// before. The thread is in no section and in no callback. Returns whether the grace period has
/// ended [D-2].
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

/// Drops of this thread's objects what is ready, as long as the limit asks for it.
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

/// Settles what a section of this thread has gone over the limit with. Where another thread is in a
/// drop of this thread's objects (the worker, a barrier), it waits for that, as it would for the
/// drop if it ran it itself: else the next section would find the thread over the limit, with an
/// object that it may not refuse.
pub(crate) fn settle_domain(core: &DomainState, queue: &Queue) {
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
        && (local::own_objects(core).is_some_and(|queue| !queue.is_empty())
            || local::has_over_limit())
}

/// Its part, to be done offline: drops of what is ready a few more than it has retired since the
/// last time, as [`defer`](crate::reclaim::defer) does where no section is in the way; and waits
/// near the limit.
pub(crate) fn catch_up(core: &DomainState) {
    if local::may_be_over_limit() {
        settle_over_limit();
    }
    let Some(queue) = local::own_objects(core) else { return };
    if Sections::of_this_thread() != Sections::None {
        return;
    }
    let share = match queue.take_added() {
        0 => core.tuning.run_min(), // it only reads by now
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

/// Drops so many of this thread's objects, or those that are ready, in goes too short for the clock
/// to be looked at; or in one go for as long as the tuning allows. Returns how many.
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
