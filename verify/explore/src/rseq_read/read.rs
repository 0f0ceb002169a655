//! Restartable reads: `Snapshot`.
//!
//! ```text
//! Snapshot::load
//! again:   rseq_cs = section {start, end, abort: again}
//! start:   p = ptr (Acquire)
//!          touch p                                          the first word
//!          touch p                                          the last word: the commit
//! end:
//!
//! store:   n = a new object; old = swap ptr, n (AcqRel)
//!          membarrier(PRIVATE_EXPEDITED_RSEQ)
//!          free old
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::Mutant;
use super::code::{At, Barrier, Code, Label, Op, Reg, Value};
use super::scenario::Scenario;
use super::world::{End, Plan, Program};
use crate::memory::Location;

const POINTER: At = At::Is(Location::Pointer);

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let programs = programs(scenario, ("reader", read(mutant)), ("writer", store(mutant)));
    let name = |at: Location| at.to_string();
    Plan { end: all_but_the_last_are_freed, ..Plan::new(programs, name) }
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
    Code::rounds(|code| {
        let end = section(code, mutant);
        code.op(Op::Touch(Reg::Object));
        code.op(Op::Touch(Reg::Object));
        if mutant != Some(Mutant::CommitTooEarly) {
            code.place(end);
        }
        code.clear(&[Reg::Object]);
    })
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

/// What others are to see, the barrier, and what is done then; or before it, if that is the mutant.
pub(super) fn around_barrier(
    code: &mut Code,
    mutant: Option<Mutant>,
    too_early: Mutant,
    first: impl FnOnce(&mut Code),
    then: impl Fn(&mut Code),
) {
    let is = |candidate| mutant == Some(candidate);
    if is(Mutant::BarrierFirst) {
        code.op(barrier(mutant));
    }
    first(code);
    if is(too_early) {
        then(code);
    }
    if !is(Mutant::BarrierFirst) {
        code.op(barrier(mutant));
    }
    if !is(too_early) {
        then(code);
    }
}

/// Publishes a new object; the old one is in `Reg::Object` afterwards.
pub(super) fn publish(code: &mut Code, mutant: Option<Mutant>) {
    code.op(Op::New(Reg::Object));
    if mutant == Some(Mutant::PlainStore) {
        code.load(Reg::Sum, POINTER, Relaxed);
        code.store(Location::Pointer, Value::In(Reg::Object), Release);
        code.op(Op::Set(Reg::Object, Value::In(Reg::Sum)));
        code.clear(&[Reg::Sum]);
        return;
    }
    let order = if mutant == Some(Mutant::RelaxedSwap) { Relaxed } else { AcqRel };
    let value = Value::In(Reg::Object);
    code.op(Op::Swap { at: POINTER, value, before: Reg::Object, order });
}

fn store(mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let free = |code: &mut Code| code.op(Op::Free(Reg::Object));
        let publish = |code: &mut Code| publish(code, mutant);
        around_barrier(code, mutant, Mutant::FreeFirst, publish, free);
    })
}
