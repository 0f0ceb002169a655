//! Restartable increments: each CPU's word is added to by an instruction that is not locked.
//!
//! ```text
//! again:   rseq_cs = section {start, end, abort: again}
//! start:   cpu = rseq.cpu_id
//!          word[cpu] += 1 (in one instruction)              the commit
//! end:
//!
//! in two steps:
//! start:   cpu = rseq.cpu_id
//!          v = word[cpu]
//!          word[cpu] = v + 1                                the commit
//! end:
//!
//! without rseq:
//!          shared += 1 (locked)
//! ```
//!
//! A signal's handler adds 1 to the word of its CPU.

use core::sync::atomic::Ordering::Relaxed;

use super::Mutant;
use super::code::{At, Code, Op, Reg, Value};
use super::read::{programs, strangers};
use super::scenario::{Scenario, Subject};
use super::world::{CPUS, End, Plan};
use crate::memory::Location;

const WORDS: [Location; CPUS] = [Location::Word(0), Location::Word(1)];

/// Of threads without rseq.
const SHARED: Location = Location::Wake;

/// The word of the CPU whose number was loaded.
const WORD: At = At::Of { pick: |regs, _| WORDS[regs[Reg::Cpu as usize] as usize], among: &WORDS };

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let thread = increment(scenario.subject == Subject::TwoStepCounts, mutant);
    let mut programs = programs(scenario, ("thread", thread), ("", Code::default()));
    programs.extend(strangers(scenario, &stranger(mutant)));
    let plan = Plan::new(programs, name);
    Plan { objects: 0, handler: Some((1, WORDS)), end: nothing_is_lost, ..plan }
}

fn nothing_is_lost(end: &End<'_>) -> Option<String> {
    let (sum, wanted) = (end.sum(&WORDS) + end.newest(SHARED), end.counted + end.handled);
    (sum != wanted).then(|| format!("{wanted} increments make {sum}"))
}

/// A thread without rseq.
fn stranger(mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let at =
            At::Is(if mutant == Some(Mutant::LockedAddFromElsewhere) { WORDS[0] } else { SHARED });
        code.op(if mutant == Some(Mutant::PlainSharedAdd) {
            Op::Add { at, by: 1, order: Relaxed }
        } else {
            Op::LockedAdd { at, by: Value::Is(1), before: Reg::Sum, order: Relaxed }
        });
        code.op(Op::Counted);
    })
}

fn increment(has_two_steps: bool, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let is_early = mutant == Some(Mutant::CpuBeforeSection);
        if is_early {
            code.op(Op::CpuNumber);
        }
        let nothing = |_: &mut Code| {};
        code.section(nothing, |code| {
            if !is_early {
                code.op(Op::CpuNumber);
            }
            if has_two_steps {
                code.load(Reg::Sum, WORD, Relaxed);
                code.op(Op::Plus(Reg::Sum, 1));
                code.op(Op::Store { at: WORD, value: Value::In(Reg::Sum), order: Relaxed });
            } else {
                code.op(Op::Add { at: WORD, by: 1, order: Relaxed });
            }
        });
        code.op(Op::Counted);
        code.clear(&[Reg::Sum, Reg::Cpu]);
    })
}

fn name(at: Location) -> String {
    match at {
        Location::Word(cpu) => format!("word[{cpu}]"),
        SHARED => "shared".into(),
        other => other.to_string(),
    }
}
