//! Domains that have hardly any room: what waits there never exceeds the limit by more than one
//! object a thread, and when all is over there is as much room as there was.
//!
//! A round has a domain of its own, with room for a few objects, a few kilobytes, or 1 MiB. A crew
//! of threads defers there in every way, against a reader that stalls. Every object that is
//! admitted is counted, and the count compared with the limit ([`Tally`]). Then the crew has gone,
//! and the domain is filled under a section of our own, object by object: it must take exactly as
//! many as fit, then one over the limit, and no second one; and as the section ends, that must be
//! settled.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use grace::limit::{Amount, chunk};
use quiescence::{Domain, tag::Private, tuning::Engine};

use super::flood;
use super::objects::{Field, LARGEST, Small, Tally, chain};
use super::{Operation, ThreadContext, tuning};
use crate::kinds::FaultKind;

/// Threads that defer in a small domain: the crew, and who fills it in the end.
const CREW: u64 = 3;
const THREADS: u64 = CREW + 1;

/// The domain in reports.
const NAME: &str = "domain with little room";

/// What may wait, drawn: a few objects, a few kilobytes, 1 MiB, or something between.
fn limit(context: &ThreadContext) -> Amount {
    match context.below(4) {
        0 => Amount { objects: 1 + context.below(12), bytes: 1 << 20 },
        1 => Amount { objects: 1 << 16, bytes: 4096 + context.below(1 << 14) },
        2 => Amount { objects: 1 << 16, bytes: 1 << 20 },
        _ => Amount { objects: 200 + context.below(3000), bytes: 1 << 20 },
    }
}

/// A small domain, which is filled.
pub(crate) fn round(engine: Engine, context: &ThreadContext) {
    let limit = limit(context);
    let tuning = tuning(limit.objects, limit.bytes);
    let domain = Domain::builder().engine(engine).tuning(tuning).build();
    // One object a thread may be over it.
    let over = Amount { objects: THREADS, bytes: THREADS * LARGEST as u64 };
    let tally = Tally::new(context, NAME, limit.plus(over));
    let field = Field::new(context, &domain, &tally);
    // What callbacks defer is the worker's, which keeps some of its room for the next ones.
    let chains = context.one_in(2);
    work(&field, chains);
    field.context.begin(Operation::DeferBarrier);
    // Callbacks queue callbacks, and they again.
    while field.tally.waiting() > 0 && !context.is_over() {
        field.context.begin(Operation::DeferBarrier);
        field.domain.barrier();
    }
    field.domain.barrier();
    if context.is_over() {
        return;
    }
    field.tally.expect_none("after a barrier");
    // Of three queues, twice a chunk each: the worker's, and this thread's own for the closures
    // that were queued by those it ran.
    let chunk = chunk(limit, 1);
    let chunk = Amount { objects: 6 * chunk.objects, bytes: 6 * chunk.bytes };
    let kept = if chains { chunk } else { Amount::NONE };
    fill(&field, limit, kept);
    // The same with less, but not so much less that what a thread has in advance would be more.
    let objects = limit.objects - context.below(1 + limit.objects / 2);
    let lower = Amount { objects, bytes: limit.bytes };
    field.domain.tune(super::tuning(lower.objects, lower.bytes));
    fill(&field, lower, kept);
}

/// The crew defers until the reader that stalls has had enough.
fn work(field: &Field<Private>, chains: bool) {
    let context = &field.context;
    let over = Arc::new(AtomicBool::new(false));
    let crew: Vec<_> = (0..CREW)
        .filter_map(|_| {
            let (own, over) = (field.clone(), Arc::clone(&over));
            context.spawn("crew", move |_| toil(&own, &over, chains))
        })
        .collect();
    for _ in 0..1 + context.below(6) {
        context.did(Operation::Blocked);
        let guard = field.domain.read();
        context.sleep(20_000);
        drop(guard);
        context.sleep(10_000);
    }
    over.store(true, Relaxed);
    for member in crew {
        context.join(member, NAME);
    }
}

/// What one of the crew does.
fn toil(field: &Field<Private>, over: &AtomicBool, chains: bool) {
    let context = &field.context;
    while !over.load(Relaxed) && !context.is_over() {
        let some = 1 + context.below(8);
        match context.below(8) {
            0 | 1 => flood::retire(field, some),
            2 => flood::retire_in_section(field, some),
            3 => flood::try_retire(field, some),
            4 => field.call(some),
            // Objects and closures in one section.
            5 if context.one_in(2) => flood::under(field, field.domain.read(), || {
                let mut later = flood::retire_what_fits(field, some);
                later.extend(field.call_what_fits(some));
                later
            }),
            5 => flood::call_in_section(field, some),
            6 if chains => {
                chain(field, context.below(8));
                flood::again(field, context.below(8));
            }
            6 => flood::qsbr_rounds(field, some),
            _ => thread::yield_now(),
        }
    }
}

/// What the library holds itself for a small object that waits, at most.
const WORDS_BYTES_MAX: u64 = 40;

/// Fills the domain, in which nothing waits, and settles what went over. So much may be missing.
fn fill(field: &Field<Private>, limit: Amount, kept: Amount) {
    field.context.begin(Operation::Room);
    let size = size_of::<Small>() as u64;
    let room = limit.objects.min(limit.bytes / size);
    // Each counts with a few words of the library's.
    let fit = limit.objects.min(limit.bytes / (size + WORDS_BYTES_MAX));
    let least = fit.saturating_sub(kept.objects.max(kept.bytes.div_ceil(size)));

    let guard = field.domain.read(); // nothing is freed meanwhile
    let (count, kept_back) = field.fill(room);
    field.tally.expect((least..=room).contains(&count), FaultKind::Room, || {
        format!("{count} objects fit into an empty domain that has room for {room}")
    });
    field.context.did(Operation::Room);
    let over = field.retire(field.small(), true);
    let second = field.retire(field.small(), true);
    // Nor a closure, but if this thread has room for it in advance.
    let closure = kept.is_none() && field.domain.call(|| ()).is_ok();
    let is_one = over.is_ok() && second.is_err() && !closure;
    field.tally.expect(is_one, FaultKind::Limit, || {
        "inside a section one object goes over the limit, and no second one, nor a closure".into()
    });
    settle(field, guard, room);
    for later in [kept_back, over.err(), second.err()].into_iter().flatten() {
        later(field);
    }
    field.domain.barrier();
    field.tally.expect_none("after a barrier");
}

/// Ends the section, inside of which an object went over the limit: a grace period is waited for
/// then. What it has freed is freed by this thread, unless the worker is just at it.
fn settle<G>(field: &Field<Private>, guard: G, room: u64) {
    field.context.begin(Operation::Settled);
    let grace_periods = || field.domain.statistics().grace_periods;
    let before = grace_periods();
    drop(guard);
    let waited = grace_periods() > before;
    let is_paid = || u64::try_from(field.tally.waiting()).is_ok_and(|waiting| waiting <= room);
    if !waited || !field.context.await_idle(Operation::Settled, is_paid) {
        let waiting = field.tally.waiting();
        field.tally.fault(FaultKind::Limit, || {
            format!(
                "{waiting} objects wait where {room} may, after a section that went over the \
                 limit; a grace period has been waited for: {waited}"
            )
        });
    }
    field.context.did(Operation::Settled);
}
