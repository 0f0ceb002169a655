//! `ExactCounter`: the thread that reads it out stops those who count.
//!
//! ```text
//! add:     again: rseq_cs = section {start, end, abort: again}
//! start:   flag != 0 (Relaxed): slow
//!          count[this cpu] += 1                             the commit
//! end:
//! slow:    take the mutex; count[this cpu] += 1; let go of the mutex
//!
//! read:    take the mutex; flag = 1 (Relaxed)
//!          membarrier(PRIVATE_EXPEDITED_RSEQ)
//!          s = sum of count (Relaxed)                       what has been counted, all of it
//!          flag = 0 (Relaxed); let go of the mutex
//! ```
//!
//! What is read out must be what has been counted by then: every increment whose section has ended.

use core::sync::atomic::Ordering::Relaxed;

use super::Mutant;
use super::code::{At, Code, How, Op, Reg, Value};
use super::read::{around_barrier, programs};
use super::scenario::Scenario;
use super::world::{CPUS, End, Plan};
use crate::memory::Location;

const FLAG: Location = Location::GpCtr;
const MUTEX: Location = Location::Completed;
const COUNTS: [Location; CPUS] = [Location::Word(0), Location::Word(1)];
const OWN_COUNT: At = At::Of { pick: |_, cpu| COUNTS[usize::from(cpu)], among: &COUNTS };

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let reader = ("reader", read_out(mutant));
    let programs = programs(scenario, ("thread", count(mutant)), reader);
    Plan { objects: 0, end: nothing_is_lost, ..Plan::new(programs, name) }
}

fn nothing_is_lost(end: &End<'_>) -> Option<String> {
    let sum = end.sum(&COUNTS);
    (sum != end.counted).then(|| format!("{} increments make {sum}", end.counted))
}

fn count(mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let (slow, done) = (code.label(), code.label());
        let look = |code: &mut Code| {
            code.load(Reg::Flag, At::Is(FLAG), Relaxed);
            code.op(Op::IfNot(Reg::Flag, 0, slow));
        };
        let add = Op::Add { at: OWN_COUNT, by: 1, order: Relaxed };
        look_and_add(code, mutant, look, add);
        code.op(Op::Counted);
        code.op(Op::Goto(done));
        code.place(slow);
        code.clear(&[Reg::Flag]);
        if mutant == Some(Mutant::SlowWithoutMutex) {
            code.op(add);
            code.op(Op::Counted);
        } else {
            code.op(Op::Lock(MUTEX));
            code.op(add);
            code.op(Op::Counted);
            code.op(Op::Unlock(MUTEX));
        }
        code.place(done);
    })
}

/// A section that looks at a flag and adds; or looks before the section, if that is the mutant.
pub(super) fn look_and_add(
    code: &mut Code,
    mutant: Option<Mutant>,
    look: impl Fn(&mut Code),
    add: Op,
) {
    let is_early = mutant == Some(Mutant::FlagBeforeSection);
    let looks_if = |looks: bool, code: &mut Code| {
        if looks {
            look(code);
        }
    };
    code.section(
        |code| looks_if(is_early, code),
        |code| {
            looks_if(!is_early, code);
            code.op(add);
        },
    );
}

fn read_out(mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let stop = |code: &mut Code| code.store(FLAG, Value::Is(1), Relaxed);
        let sum = |code: &mut Code| code.sum(How::Add, &COUNTS, Relaxed);
        code.op(Op::Lock(MUTEX));
        around_barrier(code, mutant, Mutant::SumFirst, stop, sum);
        code.op(Op::IsExact(Reg::Sum));
        code.clear(&[Reg::Sum]);
        code.store(FLAG, Value::Is(0), Relaxed);
        code.op(Op::Unlock(MUTEX));
    })
}

fn name(at: Location) -> String {
    match at {
        Location::GpCtr => "flag".into(),
        Location::Word(cpu) => format!("count[{cpu}]"),
        other => other.to_string(),
    }
}
