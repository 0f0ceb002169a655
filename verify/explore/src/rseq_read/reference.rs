//! `BigRef`: counts on each CPU, until it is killed; then one atomic word.
//!
//! ```text
//! get:     again: rseq_cs = section {start, end, abort: again}
//! start:   killed != 0 (Relaxed): slow
//!          count[this cpu] += 1                             the commit
//! end:
//! slow:    word += 1 (Relaxed, locked)
//!
//! put:     as get, with -= 1 (Release)
//! slow:    before = word -= 1 (AcqRel, locked)
//!          before == 1: release
//!
//! kill:    killed = 1 (Relaxed)
//!          membarrier(PRIVATE_EXPEDITED_RSEQ)
//!          s = sum of count (Relaxed)
//!          before = word += s - BIAS - 1 (AcqRel, locked)   the 1 is the reference it was made with
//!          before + s - BIAS - 1 == 0: release
//! ```
//!
//! A thread without rseq always uses `word`.
//!
//! `word` begins as `BIAS + 1`. Each holder has a reference from the start; it gets one more, uses
//! the object and puts one, so many times, and puts the one that it had.

use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use super::Mutant;
use super::code::{At, Code, How, Label, MINUS_ONE, Op, Reg, Value};
use super::exact::look_and_add;
use super::read::{around_barrier, programs, strangers};
use super::scenario::Scenario;
use super::world::{CPUS, End, Plan};
use crate::memory::Location;

const KILLED: Location = Location::GpCtr;
const WORD: Location = Location::Wake;
const COUNTS: [Location; CPUS] = [Location::Word(0), Location::Word(1)];
/// What threads without rseq count on in one mutant.
const SHARED: Location = Location::Variable(0);
const OWN_COUNT: At = At::Of { pick: |_, cpu| COUNTS[usize::from(cpu)], among: &COUNTS };
/// More than there can be references.
const BIAS: u64 = 1 << 20;

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let bias = if mutant == Some(Mutant::NoBias) { 0 } else { BIAS };
    // What the holders have from the start was counted where they were.
    let mut initial = vec![(WORD, bias + 1 + u64::from(scenario.strangers))];
    for cpu in 0..CPUS as u8 {
        let there = (0..scenario.readers).filter(|index| index % scenario.cpus == cpu).count();
        initial.push((COUNTS[usize::from(cpu)], there as u64));
    }
    let killer = kill(scenario, mutant, bias);
    let mut programs = programs(scenario, ("holder", hold(mutant, false)), ("killer", killer));
    programs.extend(strangers(scenario, &hold(mutant, true)));
    Plan { initial, end: is_released, ..Plan::new(programs, name) }
}

fn is_released(end: &End<'_>) -> Option<String> {
    (!end.freed[0]).then(|| "nobody holds it, and it is never released".into())
}

/// The section of get and put; continues at `slow` if it is killed.
fn count(code: &mut Code, by: u64, mutant: Option<Mutant>, slow: Label) {
    let is_unchecked = mutant == Some(Mutant::PutUnchecked) && by == MINUS_ONE;
    let look = |code: &mut Code| {
        if !is_unchecked {
            code.load(Reg::Flag, At::Is(KILLED), Relaxed);
            code.op(Op::IfNot(Reg::Flag, 0, slow));
        }
    };
    let is_relaxed = by == 1 || mutant == Some(Mutant::RelaxedUnlock);
    let order = if is_relaxed { Relaxed } else { Release };
    look_and_add(code, mutant, look, Op::Add { at: OWN_COUNT, by, order });
}

/// The same without rseq, if that is not done on the word at once: count, look, and take it back.
fn count_then_look(code: &mut Code, by: u64, slow: Label, done: Label) {
    let add = |code: &mut Code, by: u64| {
        let (at, by) = (At::Is(SHARED), Value::Is(by));
        code.op(Op::LockedAdd { at, by, before: Reg::Sum, order: AcqRel });
    };
    add(code, by);
    code.op(Op::Fence);
    code.load(Reg::Flag, At::Is(KILLED), Relaxed);
    code.op(Op::IfIs(Reg::Flag, 0, done));
    add(code, by.wrapping_neg());
    code.op(Op::Goto(slow));
}

/// Counts where it is to be counted; continues here only on the word.
fn choose(code: &mut Code, by: u64, mutant: Option<Mutant>, is_stranger: bool, done: Label) {
    let slow = code.label();
    if !is_stranger {
        count(code, by, mutant, slow);
        code.op(Op::Goto(done));
    } else if mutant == Some(Mutant::CountThenLook) {
        count_then_look(code, by, slow, done);
    }
    code.place(slow);
}

fn get(code: &mut Code, mutant: Option<Mutant>, is_stranger: bool) {
    let done = code.label();
    choose(code, 1, mutant, is_stranger, done);
    let (at, before) = (At::Is(WORD), Reg::Sum);
    code.op(Op::LockedAdd { at, by: Value::Is(1), before, order: Relaxed });
    code.place(done);
    code.clear(&[Reg::Sum, Reg::Flag]);
}

fn put(code: &mut Code, mutant: Option<Mutant>, is_stranger: bool) {
    let done = code.label();
    choose(code, MINUS_ONE, mutant, is_stranger, done);
    let (at, before) = (At::Is(WORD), Reg::Sum);
    let order = if mutant == Some(Mutant::RelaxedDrop) { Relaxed } else { AcqRel };
    code.op(Op::LockedAdd { at, by: Value::Is(MINUS_ONE), before, order });
    code.op(Op::IfNot(Reg::Sum, 1, done));
    code.op(Op::Free(Reg::Object));
    code.place(done);
    code.clear(&[Reg::Sum, Reg::Flag]);
}

fn hold(mutant: Option<Mutant>, is_stranger: bool) -> Code {
    let mut code = Code::rounds(|code| {
        get(code, mutant, is_stranger);
        code.op(Op::Touch(Reg::Object));
        put(code, mutant, is_stranger);
    });
    code.op(Op::Touch(Reg::Object));
    put(&mut code, mutant, is_stranger);
    code
}

fn kill(scenario: &Scenario, mutant: Option<Mutant>, bias: u64) -> Code {
    let mut code = Code::default();
    let sum = |code: &mut Code| {
        code.sum(How::Add, &COUNTS[..usize::from(scenario.cpus)], Relaxed);
        if mutant == Some(Mutant::CountThenLook) {
            code.sum(How::Add, &[SHARED], Relaxed);
        }
    };
    let mark = |code: &mut Code| code.store(KILLED, Value::Is(1), Relaxed);
    around_barrier(&mut code, mutant, Mutant::SumFirst, mark, sum);
    code.op(Op::Plus(Reg::Sum, (bias + 1).wrapping_neg()));
    let done = code.label();
    let order = if mutant == Some(Mutant::RelaxedKill) { Relaxed } else { AcqRel };
    let (at, by, before) = (At::Is(WORD), Value::In(Reg::Sum), Reg::Epoch);
    if mutant == Some(Mutant::SumInTwoSteps) {
        code.op(Op::Load { to: Reg::Epoch, how: How::Take, at, order: Relaxed });
        code.op(Op::PlusReg(Reg::Sum, Reg::Epoch));
        code.store(WORD, Value::In(Reg::Sum), Release);
    } else {
        code.op(Op::LockedAdd { at, by, before, order });
        code.op(Op::PlusReg(Reg::Sum, Reg::Epoch));
    }
    code.op(Op::IfNot(Reg::Sum, 0, done));
    code.op(Op::Free(Reg::Object));
    code.place(done);
    code.clear(&[Reg::Sum]);
    code
}

fn name(at: Location) -> String {
    match at {
        Location::GpCtr => "killed".into(),
        Location::Wake => "word".into(),
        SHARED => "shared count".into(),
        Location::Word(cpu) => format!("count[{cpu}]"),
        other => other.to_string(),
    }
}
