//! Counts that are small until used: shared words first, and then words of each CPU as well.
//!
//! ```text
//! add 1 to a count of index b:
//!          c = cells (Acquire)
//!          c == 0: shared[b] += 1 (Relaxed, locked)
//!          else:   percpu[b][this cpu] += 1 (in one instruction)
//!
//! read:    b = index (Relaxed); add to lock of b; light fence
//!          p = ptr (Acquire); touch p
//!          light fence; add to unlock of b (Release)
//!
//! grow:    make the words of each cpu; cells = 1 (compare-and-swap, AcqRel)
//!
//! check b: c = cells (Acquire); u = shared unlock[b] (Acquire), and percpu unlock[b] if c (Acquire)
//!          heavy fence
//!          c = cells (Acquire); l = shared lock[b], and percpu lock[b] if c
//! ```

use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use super::Mutant;
use super::code::{At, Barrier, Code, How, Op, Reg, Value};
use super::guard::{
    INDEX_LOCKS, INDEX_UNLOCKS, LOCKS, OWN_LOCK, OWN_UNLOCK, UNLOCKS, grace_period, heavy_fence,
    light_fence, sum,
};
use super::read::{programs, publish};
use super::scenario::Scenario;
use super::world::{CPUS, End, Plan, Program};
use crate::memory::{Location, OBJECTS};

const INDEX: Location = Location::GpCtr;
const CELLS: Location = Location::Completed;
/// The words of each CPU, as an object: they must not be touched before they are there.
const WORDS: u64 = OBJECTS as u64 - 1;
const SHARED_LOCKS: [Location; 2] = [Location::Variable(0), Location::Variable(1)];
const SHARED_UNLOCKS: [Location; 2] = [Location::Variable(2), Location::Variable(3)];
const SHARED_LOCK: At = At::Of {
    pick: |regs, _| SHARED_LOCKS[regs[Reg::Index as usize] as usize],
    among: &SHARED_LOCKS,
};
const SHARED_UNLOCK: At = At::Of {
    pick: |regs, _| SHARED_UNLOCKS[regs[Reg::Index as usize] as usize],
    among: &SHARED_UNLOCKS,
};

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let mut programs =
        programs(scenario, ("reader", read(scenario, mutant)), ("writer", store(scenario, mutant)));
    if scenario.straggles {
        // The reader has looked up index 1; since then a grace period has made index 0 the current
        // one.
        programs[0].regs[Reg::Index as usize] = 1;
        programs[0].regs[Reg::Aborts as usize] = 1;
    }
    let cpu = scenario.cpus + scenario.writers;
    programs.push(Program::staying("grower", grow(mutant), 0, cpu));
    Plan { end: srcu_counts_are_drained, ..Plan::new(programs, name) }
}

fn srcu_counts_are_drained(end: &End<'_>) -> Option<String> {
    let locks = end.sum(&LOCKS) + end.sum(&SHARED_LOCKS);
    let unlocks = end.sum(&UNLOCKS) + end.sum(&SHARED_UNLOCKS);
    (locks != unlocks).then(|| "an index is never drained".into())
}

fn add(code: &mut Code, shared: At, own: At, order: Ordering, mutant: Option<Mutant>) {
    let (grown, done) = (code.label(), code.label());
    let of_cells = if mutant == Some(Mutant::RelaxedCounters) { Relaxed } else { Acquire };
    code.load(Reg::Flag, At::Is(CELLS), of_cells);
    code.op(Op::IfNot(Reg::Flag, 0, grown));
    if mutant == Some(Mutant::PlainSharedAdd) {
        code.op(Op::Add { at: shared, by: 1, order });
    } else {
        code.op(Op::LockedAdd { at: shared, by: Value::Is(1), before: Reg::Flag, order });
    }
    code.op(Op::Goto(done));
    code.place(grown);
    code.op(Op::Set(Reg::Epoch, Value::Is(WORDS)));
    code.op(Op::Touch(Reg::Epoch));
    code.op(Op::Add { at: own, by: 1, order });
    code.place(done);
    code.clear(&[Reg::Flag, Reg::Epoch]);
}

fn read(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let is_looked_up = code.label();
        code.op(Op::IfIs(Reg::Aborts, 1, is_looked_up));
        code.load(Reg::Index, At::Is(INDEX), Relaxed);
        code.place(is_looked_up);
        code.clear(&[Reg::Aborts]);
        add(code, SHARED_LOCK, OWN_LOCK, Relaxed, mutant);
        light_fence(code, scenario, mutant);
        code.load(Reg::Object, At::Is(Location::Pointer), Acquire);
        code.op(Op::Touch(Reg::Object));
        light_fence(code, scenario, mutant);
        let order = if mutant == Some(Mutant::RelaxedUnlock) { Relaxed } else { Release };
        add(code, SHARED_UNLOCK, OWN_UNLOCK, order, mutant);
        code.clear(&[Reg::Object, Reg::Index]);
    })
}

fn grow(mutant: Option<Mutant>) -> Code {
    let mut code = Code::default();
    code.op(Op::NewAt(WORDS as u8));
    let (value, before) = (Value::Is(1), Reg::Flag);
    let order = if mutant == Some(Mutant::RelaxedGrowth) { Relaxed } else { AcqRel };
    code.op(Op::Swap { at: At::Is(CELLS), value, before, order });
    code
}

fn store(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        // The caller's own publication, which need not be a locked instruction.
        publish(code, Some(Mutant::PlainStore));
        grace_period(code, |code| {
            let order = if mutant == Some(Mutant::RelaxedScan) { Relaxed } else { Acquire };
            code.load(Reg::Flag, At::Is(CELLS), Acquire);
            sums(code, How::Add, SHARED_UNLOCK, &INDEX_UNLOCKS, order, mutant);
            code.op(match mutant {
                Some(Mutant::NoBarrier) => Op::Barrier(Barrier::None),
                _ => heavy_fence(scenario, Barrier::Plain),
            });
            if mutant != Some(Mutant::CountersOnce) {
                code.load(Reg::Flag, At::Is(CELLS), Acquire);
            }
            sums(code, How::Subtract, SHARED_LOCK, &INDEX_LOCKS, Relaxed, mutant);
            code.clear(&[Reg::Flag]);
        });
        code.op(Op::Free(Reg::Object));
    })
}

/// The shared word, and those of each CPU if there are any.
fn sums(
    code: &mut Code,
    how: How,
    shared: At,
    own: &[At; CPUS],
    order: Ordering,
    mutant: Option<Mutant>,
) {
    let (small, done) = (code.label(), code.label());
    if mutant != Some(Mutant::SharedForgotten) {
        sum(code, how, &[shared], order);
        code.op(Op::IfIs(Reg::Flag, 0, done));
    } else {
        code.op(Op::IfIs(Reg::Flag, 0, small));
    }
    sum(code, how, own, order);
    code.op(Op::Goto(done));
    code.place(small);
    sum(code, how, &[shared], order);
    code.place(done);
}

fn name(at: Location) -> String {
    let split = |slot: u8| (slot / CPUS as u8, slot % CPUS as u8);
    match at {
        Location::GpCtr => "index".into(),
        Location::Completed => "cells".into(),
        Location::Variable(slot) if slot < 2 => format!("shared lock[{slot}]"),
        Location::Variable(slot) => format!("shared unlock[{}]", slot - 2),
        Location::Word(slot) => format!("lock[{}][{}]", split(slot).0, split(slot).1),
        Location::Attention(slot) => format!("unlock[{}][{}]", split(slot).0, split(slot).1),
        other => other.to_string(),
    }
}
