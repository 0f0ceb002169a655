//! At the limit: an object or a closure that the thread's local stock does not cover is admitted
//! with more room from the domain, waits, goes over the limit, or is refused. What has gone over
//! the limit in a section is settled when the section ends. What is refused is given back to the
//! user in an [`AtLimit`](crate::AtLimit).
//!
//! [`grace::limit::limit_action`] decides what to do; this file does it. What it returns frees
//! nothing: whether a grace period has ended is asked again where that matters ([`Timed`]).
//!
//! [`Timed`]: crate::reclaim::free::Timed

#![deny(unsafe_code)]

use grace::Urgency;
use grace::limit::{Amount, Context, LimitAction, Zone, limit_action};

use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::gp::slot::Slot;
use crate::gp::wake::{LEAVING, OVERDUE};
use crate::os::{clock, nap};
use crate::reclaim::domain_state::{self, DomainState, Named};
use crate::reclaim::local::{self, Sections};
use crate::reclaim::running::{self, Running};
use crate::reclaim::thread_queue::{Contents, OwnQueue};
use crate::reclaim::{rescan, worker};

/// How deep drops may nest, where each drop retires an object that is freed on the spot. Deeper
/// objects go over the limit, since the stack is bounded, too.
pub(crate) const NESTED_MAX: u32 = 32;

/// What a thread does for what it queues, where there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Waits, if it may: for an object a grace period, for a closure until the worker has made
    /// room. In a section it goes over the limit once; else it is refused.
    Waits,
    /// The same, and goes over the limit in place of a refusal.
    InAnyCase,
    /// As `InAnyCase`, for a closure, but it waits for a tick at most.
    Tick,
    /// Is refused.
    Never,
    /// Is refused, which is not counted: a task tries again, or goes over the limit.
    Polls,
    /// Goes over the limit. What is over is the thread's to settle.
    Over,
    /// The same, and no thread's.
    Unowed,
}

/// Why something cannot be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// A grace period has passed, and there is still none: it is to be freed. Only for objects.
    Waited,
    /// The thread must not wait.
    Refuses,
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

/// Admits what the queue's local stock does not cover, as `patience` says.
#[cold]
pub(crate) fn make_room(
    tag: &dyn Named,
    queue: Option<OwnQueue<'_>>,
    contents: Contents,
    amount: Amount,
    patience: Patience,
) -> Result<(), NoRoom> {
    let domain = domain_state::known(tag);
    let is_hazard = domain.grace_periods.hazards.is_some();
    if is_hazard && domain.zone() != Zone::Free && may_free_here() {
        // Else what was kept and is protected no more is the worker's at the next tick, and what
        // the thread protects itself goes over the limit meanwhile.
        rescan::free_unprotected(domain);
    }
    if admit(domain, queue, amount) {
        return Ok(());
    }
    //~ no-limit
    let made = match patience {
        Patience::Waits | Patience::InAnyCase | Patience::Tick => {
            wait_or_borrow(tag, queue, contents, amount, patience)
        }
        _ => Err(NoRoom::Refuses),
    };
    match (patience, made) {
        (_, Ok(()) | Err(NoRoom::Waited)) | (Patience::Waits | Patience::Polls, _) => return made,
        (Patience::Never, _) => {
            trace::limit_reached(domain.grace_periods.source(), false);
            return made;
        }
        (Patience::Unowed, _) => domain.admit_over(amount),
        _ => admit_over(domain, queue, amount),
    }
    Ok(())
}

/// Waits for room, or goes over the limit, where the thread may.
fn wait_or_borrow(
    tag: &dyn Named,
    queue: Option<OwnQueue<'_>>,
    contents: Contents,
    amount: Amount,
    patience: Patience,
) -> Result<(), NoRoom> {
    let domain = tag.core();
    // The worker makes room for a closure.
    let holds_up_worker = contents == Contents::Closures && running::holds_up_worker();
    let limit_action = match (context(), queue) {
        // One object or closure of a thread may go over the limit at a time. If other threads have
        // made room, the thread is within the limit again. Else it settles that when this section
        // ends, as it should have when the one ended in which it went over: that may have been in
        // a panic, or in a callback.
        (Context::Section, _) if queue.is_none() || local::refresh_over_limit(domain) => {
            local::make_overdue();
            LimitAction::Refuse
        }
        (Context::Outside | Context::Callback, _) if holds_up_worker => LimitAction::Refuse,
        (context, Some(queue)) => limit_action(context, &queue.local_stock().stock()),
        // A thread whose queue is gone has no local stock.
        (_, None) => LimitAction::WaitAndFree,
    };
    let waits = !matches!(limit_action, LimitAction::Borrow | LimitAction::Refuse);
    trace::limit_reached(domain.grace_periods.source(), waits);
    match limit_action {
        LimitAction::Borrow => {
            admit_over(domain, queue, amount);
            Ok(())
        }
        LimitAction::Refuse => Err(NoRoom::Refuses), //~ no-refusal
        LimitAction::WaitAndRun | LimitAction::WaitAndFree if contents == Contents::Closures => {
            wait_for_room(tag, queue, amount, patience == Patience::Tick)
        }
        LimitAction::WaitAndFree if running::nested_in_callbacks() >= NESTED_MAX => {
            Err(NoRoom::Refuses)
        }
        LimitAction::WaitAndRun | LimitAction::WaitAndFree => {
            let runs = limit_action == LimitAction::WaitAndRun;
            let is_over = if runs { settle(domain, queue) } else { await_grace_period(domain) };
            if admit(domain, queue, amount) {
                return Ok(());
            }
            // Not if a drop has begun a section meanwhile: the object would be freed in it [D-1].
            if is_over && context() != Context::Section {
                return Err(NoRoom::Waited);
            }
            domain.admit_over(amount);
            Ok(())
        }
    }
}

/// After this many checks in a row that find no callback waiting, and yet no room, a closure goes
/// over the limit.
const LOOKS_IN_VAIN: u32 = 16;

/// Waits until the worker has made room for a closure; in a sleepable domain, or if only
/// `for_a_tick`, for a tick at most. Then it is admitted over the limit in a sleepable domain
/// [D-2], and refused in others.
fn wait_for_room(
    tag: &dyn Named,
    queue: Option<OwnQueue<'_>>,
    amount: Amount,
    for_a_tick: bool,
) -> Result<(), NoRoom> {
    let domain = tag.core();
    let is_sleepable = domain.grace_periods.is_sleepable();
    let began_ns = clock::monotonic_ns();
    let mut in_vain = 0;
    loop {
        if !for_a_tick {
            // Waits for a grace period, however long that takes; so not with `Patience::Tick`.
            settle(domain, local::own_objects(domain));
        }
        if admit(domain, queue, amount) {
            return Ok(());
        }
        // If nothing waits, the charge is in local stocks, from when the limit was higher, of
        // threads that may not use the domain for long. Nothing will make room.
        in_vain = if domain.queues.is_empty(false) { in_vain + 1 } else { 0 };
        // Or a drop has begun a section here and kept the guard: the worker might wait for it.
        if context() != Context::Outside || in_vain == LOOKS_IN_VAIN {
            admit_over(domain, queue, amount);
            return Ok(());
        }
        if !worker::hurry(&tag.handle()) {
            return Err(NoRoom::Refuses); // there is no worker, so no thread makes room
        }
        let waited_ns = clock::monotonic_ns().saturating_sub(began_ns);
        if (for_a_tick || is_sleepable) && u128::from(waited_ns) >= nap::TICK.as_nanos() {
            if !is_sleepable {
                return Err(NoRoom::Refuses);
            }
            domain.admit_over(amount);
            return Ok(());
        }
        nap::moment();
    }
}

/// Admits an object without waiting: out of the queue's local stock; else with room that the
/// running callbacks have made, with more room for the local stock, or, without a queue, by a
/// charge of its own.
#[inline(never)]
pub(crate) fn admit(domain: &DomainState, queue: Option<OwnQueue<'_>>, object: Amount) -> bool {
    if queue.is_some_and(|queue| queue.local_stock().take(object)) {
        return true;
    }
    let from_room_made = |running: &Running| {
        let is_admitted = domain.admit(object.minus(running.room()));
        if is_admitted {
            running.spend(object);
        }
        is_admitted
    };
    if running::if_running(&domain.grace_periods, from_room_made) == Some(true) {
        return true;
    }
    match queue {
        Some(queue) => queue.local_stock().refill(domain, object),
        None => domain.admit(object),
    }
}

/// Admits an object or a closure over the limit. If the thread [settles it](is_settled_here), it
/// does so when its section ends. Else the caller adds it and calls [`leave_to_worker`].
pub(crate) fn admit_over(domain: &DomainState, queue: Option<OwnQueue<'_>>, object: Amount) {
    match queue {
        Some(queue) => {
            queue.local_stock().borrow(domain, object);
            local::note_over_limit(domain);
            if is_settled_here(domain, queue) {
                local::make_overdue();
            }
        }
        None => domain.admit_over(object),
    }
}

/// Whether the queue's thread settles what goes over the limit in it, by waiting. Not in a
/// sleepable domain: the thread may be in a section of it, which is not recorded. Not closures: the
/// thread may hold a lock that one of them needs.
pub(crate) fn is_settled_here(domain: &DomainState, queue: OwnQueue<'_>) -> bool {
    queue.contents == Contents::Objects && !domain.grace_periods.is_sleepable()
}

/// Has the worker run what has just been added over the limit, unless the queue's thread
/// [settles it](is_settled_here). The end of a section, which takes no lock [D-3], cannot do this.
pub(crate) fn leave_to_worker(tag: &dyn Named, queue: Option<OwnQueue<'_>>) {
    let domain = tag.core();
    if queue.is_some_and(|queue| {
        queue.local_stock().stock().is_over_limit() && !is_settled_here(domain, queue)
    }) {
        worker::hurry(&tag.handle());
    }
}

/// Whether the thread may drop objects now: not in a section [D-1], nor too deep in other drops.
pub(crate) fn may_free_here() -> bool {
    context() != Context::Section && running::nested_in_callbacks() < NESTED_MAX
}

/// Waits for a grace period. Returns whether it has ended.
///
/// **Invariant [D-2]: at the limit of a sleepable domain no thread waits for longer than a tick.**
/// The sections that it waits for may be its own, or those of tasks that only this thread polls:
/// the domain does not record which.
///
/// Does not wait in a section [D-1]: since the caller checked, a drop or a subscriber may have
/// begun a section on this thread and kept the guard.
pub(crate) fn await_grace_period(domain: &DomainState) -> bool {
    if Sections::of_this_thread() != Sections::None {
        return false;
    }
    if let Some(counted) = domain.grace_periods.counted() {
        return counted.synchronize_within(&domain.grace_periods, Urgency::Expedited, nap::TICK);
    }
    domain.grace_periods.synchronize(Urgency::Expedited, Me::this_thread())
}

/// Waits for a grace period, and drops those of this thread's objects that are ready: all that were
/// retired before. The thread is in no section and in no callback. Returns whether the grace period
/// has ended [D-2].
pub(crate) fn settle(domain: &DomainState, queue: Option<OwnQueue<'_>>) -> bool {
    if let Some(queue) = queue {
        queue.close(domain, Urgency::Expedited);
    }
    let is_over = await_grace_period(domain);
    if let Some(queue) = queue
        && Sections::of_this_thread() == Sections::None
    {
        run_ready(domain, queue);
    }
    is_over
}

/// Drops this thread's ready objects, in several runs while the domain is near its limit.
fn run_ready(domain: &DomainState, queue: OwnQueue<'_>) {
    // A drop may begin a section on this thread and leak it.
    while queue.run_some(domain, domain.grace_periods.tuning.run_min()) != 0
        && domain.zone() != Zone::Free
        && Sections::of_this_thread() == Sections::None
    {}
    if queue.is_empty() {
        queue.local_stock().clear_over_limit();
    }
    queue.local_stock().trim(domain);
}

/// The outermost section of a marked slot has ended: its thread is above a limit, or is exiting.
pub(crate) fn section_ended(slot: &Slot) {
    // A QSBR reader keeps its mark, and does the work at a quiescent state.
    if !slot.is_qsbr() && slot.marks.take(OVERDUE) {
        settle_over_limit();
    }
    if slot.marks.has(LEAVING) {
        local::unregister_if_unused(slot);
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
    let handles = local::domains_over_limit();
    for handle in &handles {
        if let Some(queue) = local::own_objects(handle)
            && is_settled_here(handle, queue)
            && queue.local_stock().refresh_over_limit(handle)
        {
            settle(handle, Some(queue));
            // Another thread (the worker, a barrier) may be dropping this thread's objects: it is
            // waited for, as it would take that long to drop them here. Else the thread's next
            // section would begin over the limit, with no room for its first object, which must not
            // be refused.
            while queue.local_stock().refresh_over_limit(handle)
                && Sections::of_this_thread() == Sections::None
                && queue.wait_for_runner()
            {
                run_ready(handle, queue);
            }
        }
    }
    local::let_go(handles); // a drop may have begun a section
}
