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
use super::read::{barrier, programs, repeat};
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
    let mut code = Code::new();
    let begin = code.here();
    let (start, end, slow, done) = (code.label(), code.label(), code.label(), code.label());
    let look = |code: &mut Code| {
        code.load(Reg::Flag, At::Is(FLAG), Relaxed);
        code.op(Op::IfNot(Reg::Flag, 0, slow));
    };
    let add = Op::Add { at: OWN_COUNT, by: 1, order: Relaxed };
    let again = code.here();
    if mutant == Some(Mutant::FlagBeforeSection) {
        look(&mut code);
    }
    code.op(Op::Arm { start, end, abort: again });
    code.place(start);
    if mutant != Some(Mutant::FlagBeforeSection) {
        look(&mut code);
    }
    code.op(add);
    code.place(end);
    code.op(Op::Counted);
    code.op(Op::Goto(done));
    code.place(slow);
    code.op(Op::Set(Reg::Flag, Value::Is(0)));
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
    repeat(&mut code, begin);
    code
}

fn read_out(mutant: Option<Mutant>) -> Code {
    let mut code = Code::new();
    let begin = code.here();
    let stop = |code: &mut Code| code.store(FLAG, Value::Is(1), Relaxed);
    let sum = |code: &mut Code| code.sum(How::Add, &COUNTS, Relaxed);
    code.op(Op::Lock(MUTEX));
    match mutant {
        Some(Mutant::BarrierFirst) => {
            code.op(barrier(mutant));
            stop(&mut code);
            sum(&mut code);
        }
        Some(Mutant::SumFirst) => {
            stop(&mut code);
            sum(&mut code);
            code.op(barrier(mutant));
        }
        _ => {
            stop(&mut code);
            code.op(barrier(mutant));
            sum(&mut code);
        }
    }
    code.op(Op::IsExact(Reg::Sum));
    code.op(Op::Set(Reg::Sum, Value::Is(0)));
    code.store(FLAG, Value::Is(0), Relaxed);
    code.op(Op::Unlock(MUTEX));
    repeat(&mut code, begin);
    code
}

fn name(at: Location) -> String {
    match at {
        Location::GpCtr => "flag".into(),
        Location::Word(cpu) => format!("count[{cpu}]"),
        other => other.to_string(),
    }
}
