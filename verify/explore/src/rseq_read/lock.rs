//! `LocalGlobalLock`: a reader marks its CPU, a writer stops the readers and waits for the marks.
//!
//! ```text
//! read:    again: rseq_cs = section {start, end, abort: again}
//! start:   flag != 0 (Acquire): slow
//!          mark[this cpu] += 1                              the commit
//! end:     read what is locked
//! unlock:  unmark[this cpu] += 1 (Release)
//!          light fence
//!          flag == 0 (Relaxed): done
//!          epoch += 1 (AcqRel, locked); wake the writer
//! slow:    take the mutex; mark[this cpu] += 1; let go of the mutex; as from `end`
//!
//! write:   take the mutex; flag = 1 (Relaxed)
//!          membarrier(PRIVATE_EXPEDITED_RSEQ)
//! wait:    e = epoch (Acquire)
//!          u = sum of unmark (Acquire); m = sum of mark (Relaxed)
//!          differ: sleep if epoch is still e; wait
//!          write what is locked
//!          flag = 0 (Release); let go of the mutex
//! ```
//!
//! Without restartable sequences a reader marks first and looks at the flag afterwards, with a
//! light fence in between; if it is set, it takes its mark back as an unlock does, and goes the
//! slow way. So does a thread without rseq among others that have it, on a shared pair of words
//! that is summed too.
//!
//! What is locked is an object that is replaced in place: freed, and then made anew, with nothing
//! to protect it but the lock.

use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use super::Mutant;
use super::code::{At, Code, How, Label, Op, Reg, Value};
use super::exact::look_and_add;
use super::guard::{light_fence, writers_barrier};
use super::read::{programs, strangers};
use super::scenario::Scenario;
use super::world::{CPUS, Plan};
use crate::memory::Location;

const FLAG: Location = Location::GpCtr;
const EPOCH: Location = Location::Wake;
const MUTEX: Location = Location::Completed;
const MARKS: [Location; CPUS] = [Location::Word(0), Location::Word(1)];
const UNMARKS: [Location; CPUS] = [Location::Attention(0), Location::Attention(1)];
/// Of readers without rseq.
const SHARED_MARK: Location = Location::Variable(0);
const SHARED_UNMARK: Location = Location::Variable(1);
const ALL_MARKS: [Location; CPUS + 1] = [MARKS[0], MARKS[1], SHARED_MARK];
const ALL_UNMARKS: [Location; CPUS + 1] = [UNMARKS[0], UNMARKS[1], SHARED_UNMARK];
const OWN_MARK: At = At::Of { pick: |_, cpu| MARKS[usize::from(cpu)], among: &MARKS };
const OWN_UNMARK: At = At::Of { pick: |_, cpu| UNMARKS[usize::from(cpu)], among: &UNMARKS };

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let kind = if scenario.is_portable { Kind::Portable } else { Kind::Restartable };
    let reader = ("reader", read(scenario, mutant, kind));
    let mut programs = programs(scenario, reader, ("writer", write(scenario, mutant)));
    programs.extend(strangers(scenario, &read(scenario, mutant, Kind::Stranger)));
    // Any end is right: a mark that is left behind keeps the writer out for ever, which is found.
    Plan::new(programs, name)
}

/// How a reader marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its CPU's word, in a section.
    Restartable,
    /// Its CPU's word, by a locked instruction, as all others do.
    Portable,
    /// A shared word, by a locked instruction, while others mark in sections.
    Stranger,
}

impl Kind {
    fn mark(self) -> Op {
        let by = Value::Is(1);
        let (before, order) = (Reg::Sum, Relaxed);
        match self {
            Self::Restartable => Op::Add { at: OWN_MARK, by: 1, order },
            Self::Portable => Op::LockedAdd { at: OWN_MARK, by, before, order },
            Self::Stranger => Op::LockedAdd { at: At::Is(SHARED_MARK), by, before, order },
        }
    }

    fn unmark(self, order: Ordering) -> Op {
        let (by, before) = (Value::Is(1), Reg::Sum);
        match self {
            Self::Restartable => Op::Add { at: OWN_UNMARK, by: 1, order },
            Self::Portable => Op::LockedAdd { at: OWN_UNMARK, by, before, order },
            Self::Stranger => Op::LockedAdd { at: At::Is(SHARED_UNMARK), by, before, order },
        }
    }
}

fn read(scenario: &Scenario, mutant: Option<Mutant>, kind: Kind) -> Code {
    Code::rounds(|code| {
        let (slow, inside) = (code.label(), code.label());
        if kind == Kind::Restartable {
            look_and_mark(code, mutant, slow);
            code.op(Op::Goto(inside));
        } else {
            mark_and_look(code, scenario, mutant, kind, inside);
        }
        code.place(slow);
        code.clear(&[Reg::Flag]);
        if mutant != Some(Mutant::SlowWithoutMutex) {
            code.op(Op::Lock(MUTEX));
        }
        code.op(kind.mark());
        if mutant != Some(Mutant::SlowWithoutMutex) {
            code.op(Op::Unlock(MUTEX));
        }
        code.place(inside);
        code.clear(&[Reg::Flag, Reg::Sum]);
        code.load(Reg::Object, At::Is(Location::Pointer), Relaxed);
        code.op(Op::Touch(Reg::Object));
        unlock(code, scenario, mutant, kind);
        code.clear(&[Reg::Object]);
    })
}

/// The lock as a section.
fn look_and_mark(code: &mut Code, mutant: Option<Mutant>, slow: Label) {
    let order = if mutant == Some(Mutant::RelaxedFlagLoad) { Relaxed } else { Acquire };
    let look = |code: &mut Code| {
        code.load(Reg::Flag, At::Is(FLAG), order);
        code.op(Op::IfNot(Reg::Flag, 0, slow));
    };
    look_and_add(code, mutant, look, Kind::Restartable.mark());
}

/// The lock without sections.
fn mark_and_look(
    code: &mut Code,
    scenario: &Scenario,
    mutant: Option<Mutant>,
    kind: Kind,
    inside: Label,
) {
    let order = if mutant == Some(Mutant::RelaxedFlagLoad) { Relaxed } else { Acquire };
    code.op(kind.mark());
    if mutant != Some(Mutant::NoLightFenceAtLock) {
        light_fence(code, scenario, None);
    }
    code.load(Reg::Flag, At::Is(FLAG), order);
    code.op(Op::IfIs(Reg::Flag, 0, inside));
    if mutant != Some(Mutant::MarkKept) {
        unlock(code, scenario, mutant, kind);
    }
}

fn unlock(code: &mut Code, scenario: &Scenario, mutant: Option<Mutant>, kind: Kind) {
    let done = code.label();
    let order = if mutant == Some(Mutant::RelaxedUnlock) { Relaxed } else { Release };
    if mutant == Some(Mutant::FlagBeforeUnmark) {
        code.load(Reg::Flag, At::Is(FLAG), Relaxed);
        code.op(kind.unmark(order));
    } else {
        code.op(kind.unmark(order));
        light_fence(code, scenario, mutant);
        code.load(Reg::Flag, At::Is(FLAG), Relaxed);
    }
    code.clear(&[Reg::Sum]);
    code.op(Op::IfIs(Reg::Flag, 0, done));
    let epoch = At::Is(EPOCH);
    let order = if mutant == Some(Mutant::RelaxedEpoch) { Relaxed } else { AcqRel };
    if mutant != Some(Mutant::EpochKept) {
        code.op(Op::LockedAdd { at: epoch, by: Value::Is(1), before: Reg::Sum, order });
        code.clear(&[Reg::Sum]);
    }
    if mutant != Some(Mutant::NoWake) {
        code.op(Op::Wake);
    }
    code.place(done);
    code.clear(&[Reg::Flag]);
}

fn write(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let alone = code.label();
        let words = if scenario.strangers == 0 { CPUS } else { CPUS + 1 };
        let barrier = writers_barrier(scenario, mutant);
        code.op(Op::Lock(MUTEX));
        if mutant == Some(Mutant::BarrierFirst) {
            code.op(barrier);
        }
        code.store(FLAG, Value::Is(1), Relaxed);
        if mutant != Some(Mutant::BarrierFirst) {
            code.op(barrier);
        }
        let wait = code.here();
        let is_late = mutant == Some(Mutant::EpochAfterSums);
        if !is_late {
            code.load(Reg::Epoch, At::Is(EPOCH), Acquire);
        }
        let order = if mutant == Some(Mutant::RelaxedScan) { Relaxed } else { Acquire };
        let unmarks = |code: &mut Code| code.sum(How::Add, &ALL_UNMARKS[..words], order);
        if mutant != Some(Mutant::MarksFirst) {
            unmarks(code);
        }
        code.sum(How::Subtract, &ALL_MARKS[..words], Relaxed);
        if mutant == Some(Mutant::MarksFirst) {
            unmarks(code);
        }
        code.op(Op::IfIs(Reg::Sum, 0, alone));
        code.clear(&[Reg::Sum]);
        if is_late {
            code.load(Reg::Epoch, At::Is(EPOCH), Acquire);
        }
        code.op(Op::Sleep(EPOCH, Reg::Epoch));
        code.op(Op::Goto(wait));
        code.place(alone);
        code.clear(&[Reg::Epoch]);
        code.load(Reg::Object, At::Is(Location::Pointer), Relaxed);
        code.op(Op::Free(Reg::Object));
        code.op(Op::New(Reg::Object));
        code.store(Location::Pointer, Value::In(Reg::Object), Relaxed);
        let order = if mutant == Some(Mutant::RelaxedFlagClear) { Relaxed } else { Release };
        code.store(FLAG, Value::Is(0), order);
        code.clear(&[Reg::Object]);
        code.op(Op::Unlock(MUTEX));
    })
}

fn name(at: Location) -> String {
    match at {
        Location::GpCtr => "flag".into(),
        Location::Wake => "epoch".into(),
        SHARED_MARK => "shared mark".into(),
        SHARED_UNMARK => "shared unmark".into(),
        Location::Word(cpu) => format!("mark[{cpu}]"),
        Location::Attention(cpu) => format!("unmark[{cpu}]"),
        other => other.to_string(),
    }
}
