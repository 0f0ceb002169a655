//! Forks in a storm: a thread that uses the library forks while others defer, and its child finds
//! every domain whole. It retires, calls, waits at a barrier, finds as much room as there should
//! be, and ends.
//!
//! The child has none of the other threads, which may have held locks: so it touches the library,
//! the allocator and atomics, nothing else; and in the storm no thread defers what would take a
//! lock.

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use quiescence::sync::{Counter, ExactCounter};
use quiescence::{Domain, Srcu, cell::Snapshot, tag::Private};
use rustix::process::Pid;

use super::children::{LATE, wait_for};
use super::flood;
use super::objects::{FORKED, Field, Tally, UNBOUNDED};
use super::{Deferral, Operation, ThreadContext};
use crate::fork::fork;
use crate::kinds::FaultKind;

/// What may wait in the domain of the storm: so little that no thread has room in advance, and a
/// child can count it.
pub(crate) const OBJECTS_MAX: u64 = 200;

/// When a child should have ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a child's code says.
const WRONG: [(i32, &str); 6] = [
    (101, "panicked; see standard error"),
    (51, "a barrier there did not run what was queued there"),
    (52, "the domain of the storm has more or less room there than it should"),
    (53, "what was deferred there was not dropped"),
    (54, "something was wrong there: callbacks out of order, or a limit exceeded"),
    (55, "counters, snapshots or a sleepable domain gave something wrong there"),
];

/// Defers, and may be interrupted by a fork at any time.
pub(crate) fn storm(own: &Deferral, context: &ThreadContext) {
    let field = own.field(context, &own.storm);
    context.rounds(Operation::Closure, || burst(&field));
    field.barrier();
}

fn burst(field: &Field<Private>) {
    let some = 1 + field.context.below(60);
    match field.context.below(5) {
        4 => field.tally.expect(count_and_read(some), FaultKind::Sum, || WRONG[5].1.to_owned()),
        0 => field.call(some),
        1 => flood::retire_in_section(field, some),
        2 => flood::again(field, some),
        _ => flood::retire(field, some),
    }
}

/// Uses what counts per CPU, all of it new: the memory of such counters, and who reads where no
/// sequence can, are the whole process's. Returns whether all sums and values are right.
fn count_and_read(some: u64) -> bool {
    let (domain, counter, exact) = (Srcu::new(), Counter::new(), ExactCounter::new());
    let snapshot = Snapshot::new([0; 4]);
    for value in 1..=2 * some {
        let guard = domain.read();
        counter.add(1);
        exact.add(1);
        drop(guard);
        if value % 16 == 0 {
            snapshot.store([value; 4]);
        }
    }
    domain.synchronize_expedited();
    let sums = [counter.sum(), exact.sum()].map(i64::cast_unsigned);
    let last = 2 * some / 16 * 16;
    sums == [2 * some; 2] && snapshot.load() == [last; 4] && domain.statistics().readers == 0
}

/// Forks again and again, and waits for its children.
pub(crate) fn run(own: &Deferral, context: &ThreadContext) {
    let field = &own.field(context, &own.storm);
    context.rounds(Operation::Fork, || {
        (0..context.below(4)).for_each(|_| burst(field));
        match fork(|| child(field)) {
            Ok(pid) => {
                context.did(Operation::Fork);
                expect_good_end(context, pid);
            }
            // The system is short of processes for the moment.
            Err(_) => thread::yield_now(),
        }
    });
    field.barrier();
}

/// Waits for a child to end, and tells what is wrong with it.
fn expect_good_end(context: &ThreadContext, pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process has a number");
    let status = wait_for(context, pid, Operation::Fork, PATIENCE, || ());
    let code = status.map(|status| status.exit_status());
    context.expect(code == Some(Some(0)), FaultKind::Process, "", || {
        let known = WRONG.iter().find(|(known, _)| code == Some(Some(*known)));
        let known = known.map_or("ended otherwise than it should", |(_, text)| *text);
        let known = if code.is_none() { LATE } else { known };
        format!("a forked child: {known} ({status:?})")
    });
}

/// What a child does; its code.
fn child(field: &Field<Private>) -> i32 {
    FORKED.store(true, Relaxed);
    let faults = field.context.ledger.faults_total();
    // Counts of its own: those of the storm were stopped wherever they were.
    let tally = Tally::new(&field.context, "domain in a forked child", UNBOUNDED);
    let own = Field::new(&field.context, &field.domain, &tally);
    for _ in 0..1 + field.context.below(8) {
        burst(&own);
    }
    // Closures queue themselves again.
    for _ in 0..100 {
        own.domain.barrier();
    }
    let (ran, queued) = own.closures.ran_of();
    if ran != queued {
        return 51;
    }
    if tally.waiting() != 0 {
        return 53;
    }
    if !has_its_room(&own) {
        return 52;
    }
    // Another domain, too, and a grace period of its own.
    let domain = Domain::new();
    domain.synchronize();
    if !(1..20).all(|some| count_and_read(8 * some)) {
        return 55;
    }
    if field.context.ledger.faults_total() == faults { 0 } else { 54 }
}

/// Whether the domain takes as many objects as it has room for.
fn has_its_room(field: &Field<Private>) -> bool {
    let guard = field.domain.read(); // nothing is freed meanwhile
    let (count, _) = field.fill(OBJECTS_MAX);
    drop(guard);
    count == OBJECTS_MAX
}
