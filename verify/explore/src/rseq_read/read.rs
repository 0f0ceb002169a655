//! Restartable reads: `Snapshot` and `ArcCell`.
//!
//! ```text
//! Snapshot::load
//! again:   rseq_cs = section {start, end, abort: again}
//! start:   p = ptr (Acquire)
//!          touch p                                          the first word
//!          touch p                                          the last word: the commit
//! end:
//!
//! ArcCell::load, and the drop of what it gives
//! again:   rseq_cs = section {start, end, abort: again}
//! start:   p = ptr (Acquire)
//!          p.count += 1 (Relaxed, locked)                   the commit
//! end:     touch p
//!          before = p.count -= 1 (AcqRel, locked)
//!          before == 1: free p
//!
//! store:   n = a new object; old = swap ptr, n (AcqRel)
//!          membarrier(PRIVATE_EXPEDITED_RSEQ)
//!          Snapshot: free old.  ArcCell: as the drop above
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::Mutant;
use super::code::{At, Barrier, Code, Label, Op, Reg, Value};
use super::scenario::{Scenario, Subject};
use super::world::{End, Plan, Program};
use crate::memory::Location;

const POINTER: At = At::Is(Location::Pointer);
pub(super) const MINUS_ONE: u64 = u64::MAX;

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let is_arc = scenario.subject == Subject::ArcCell;
    let reader = if is_arc { load(mutant) } else { read(mutant) };
    let mut initial = Vec::new();
    if is_arc {
        // Each object is made with one reference, the cell's.
        initial.extend((0..4).map(|object| (Location::Word(object), 1)));
    }
    let programs = programs(scenario, ("reader", reader), ("writer", store(mutant, is_arc)));
    Plan { initial, end: all_but_the_last_are_freed, ..Plan::new(programs, name) }
}

/// Readers that move about, and writers on CPUs of their own, each so many times.
pub(super) fn programs(
    scenario: &Scenario,
    reader: (&'static str, Code),
    writer: (&'static str, Code),
) -> Vec<Program> {
    let readers = (0..scenario.readers).map(|index| Program {
        moves: !scenario.readers_stay,
        ..Program::staying(reader.0, reader.1.clone(), scenario.rounds, index % scenario.cpus)
    });
    let writers = (0..scenario.writers).map(|index| {
        let cpu = if scenario.writer_moves { 0 } else { scenario.cpus + index };
        let program = Program::staying(writer.0, writer.1.clone(), scenario.updates, cpu);
        Program { moves: scenario.writer_moves, ..program }
    });
    readers.chain(writers).collect()
}

/// Threads without rseq, each on a CPU of its own.
pub(super) fn strangers(scenario: &Scenario, code: &Code) -> Vec<Program> {
    let first = scenario.cpus + scenario.writers;
    let stranger =
        |index| Program::staying("stranger", code.clone(), scenario.rounds, first + index);
    (0..scenario.strangers).map(stranger).collect()
}

/// The end of a program that is to run `Reg::Left` times.
pub(super) fn repeat(code: &mut Code, from: Label) {
    code.op(Op::Plus(Reg::Left, MINUS_ONE));
    code.op(Op::IfNot(Reg::Left, 0, from));
}

fn all_but_the_last_are_freed(end: &End<'_>) -> Option<String> {
    let freed = end.freed;
    let last = end.newest(Location::Pointer) as usize;
    let is_wrong = |object: &usize| freed[*object] != (*object != last);
    // Objects are numbered in the order in which they are made, so there are as many as were
    // swapped.
    let made = freed.iter().rposition(|freed| *freed).map_or(0, |object| object + 1).max(last + 1);
    (0..made).find(is_wrong).map(|object| {
        let what = if freed[object] { "freed though it is current" } else { "never freed" };
        format!("object {object} is {what}")
    })
}

/// The pointer, at the place where the mutant wants it.
fn load_pointer(code: &mut Code, mutant: Option<Mutant>, place: Option<Mutant>) {
    let early = [Mutant::PointerBeforeArm, Mutant::PointerBeforeStart];
    let wanted = mutant.filter(|mutant| early.contains(mutant));
    if wanted == place {
        let order = if mutant == Some(Mutant::RelaxedPointer) { Relaxed } else { Acquire };
        code.load(Reg::Object, POINTER, order);
    }
}

/// A section up to and with the load of the pointer. Returns its end, which the caller places.
pub(super) fn section(code: &mut Code, mutant: Option<Mutant>) -> Label {
    let is = |candidate| mutant == Some(candidate);
    let (start, end, kept) = (code.label(), code.label(), code.label());
    let again = code.here();
    load_pointer(code, mutant, Some(Mutant::PointerBeforeArm));
    let abort = match mutant {
        Some(Mutant::AbortToStart) => start,
        Some(Mutant::AbortKeepsPointer) => kept,
        _ => again,
    };
    code.op(Op::Arm { start, end, abort });
    load_pointer(code, mutant, Some(Mutant::PointerBeforeStart));
    code.place(start);
    load_pointer(code, mutant, None);
    code.place(kept);
    if is(Mutant::CommitTooEarly) {
        code.place(end);
    }
    end
}

fn read(mutant: Option<Mutant>) -> Code {
    let mut code = Code::new();
    let begin = code.here();
    let end = section(&mut code, mutant);
    code.op(Op::Touch(Reg::Object));
    code.op(Op::Touch(Reg::Object));
    if mutant != Some(Mutant::CommitTooEarly) {
        code.place(end);
    }
    code.op(Op::Set(Reg::Object, Value::Is(0)));
    repeat(&mut code, begin);
    code
}

fn load(mutant: Option<Mutant>) -> Code {
    let mut code = Code::new();
    let begin = code.here();
    let end = section(&mut code, mutant);
    code.op(Op::Count { by: 1, order: Relaxed });
    if mutant != Some(Mutant::CommitTooEarly) {
        code.place(end);
    }
    code.op(Op::Touch(Reg::Object));
    drop_reference(&mut code, mutant);
    repeat(&mut code, begin);
    code
}

/// The drop of a reference to the object in `Reg::Object`.
fn drop_reference(code: &mut Code, mutant: Option<Mutant>) {
    let kept = code.label();
    let order = match mutant {
        Some(Mutant::RelaxedDrop) => Relaxed,
        Some(Mutant::DropWithoutAcquire) => Release,
        _ => AcqRel,
    };
    code.op(Op::Count { by: MINUS_ONE, order });
    code.op(Op::IfNot(Reg::Sum, 1, kept));
    code.op(Op::Free(Reg::Object));
    code.place(kept);
    code.op(Op::Set(Reg::Sum, Value::Is(0)));
    code.op(Op::Set(Reg::Object, Value::Is(0)));
}

/// The barrier of a writer, as the mutant has it.
pub(super) fn barrier(mutant: Option<Mutant>) -> Op {
    Op::Barrier(match mutant {
        Some(Mutant::NoBarrier) => Barrier::None,
        Some(Mutant::PlainBarrier) => Barrier::Plain,
        Some(Mutant::OwnFenceOnly) => Barrier::Own,
        _ => Barrier::Restart,
    })
}

/// Publishes a new object; the old one is in `Reg::Object` afterwards.
pub(super) fn publish(code: &mut Code, mutant: Option<Mutant>) {
    code.op(Op::New(Reg::Object));
    if mutant == Some(Mutant::PlainStore) {
        code.load(Reg::Sum, POINTER, Relaxed);
        code.store(Location::Pointer, Value::In(Reg::Object), Release);
        code.op(Op::Set(Reg::Object, Value::In(Reg::Sum)));
        code.op(Op::Set(Reg::Sum, Value::Is(0)));
        return;
    }
    let order = if mutant == Some(Mutant::RelaxedSwap) { Relaxed } else { AcqRel };
    let value = Value::In(Reg::Object);
    code.op(Op::Swap { at: POINTER, value, before: Reg::Object, order });
}

fn store(mutant: Option<Mutant>, is_arc: bool) -> Code {
    let mut code = Code::new();
    let begin = code.here();
    if mutant == Some(Mutant::BarrierFirst) {
        code.op(barrier(mutant));
    }
    publish(&mut code, mutant);
    let free = |code: &mut Code| {
        if is_arc {
            drop_reference(code, mutant);
        } else {
            code.op(Op::Free(Reg::Object));
        }
    };
    match mutant {
        Some(Mutant::BarrierFirst) => free(&mut code),
        Some(Mutant::FreeFirst) => {
            free(&mut code);
            code.op(barrier(mutant));
        }
        _ => {
            code.op(barrier(mutant));
            free(&mut code);
        }
    }
    repeat(&mut code, begin);
    code
}

fn name(at: Location) -> String {
    match at {
        Location::Word(object) => format!("count of object {object}"),
        other => other.to_string(),
    }
}
