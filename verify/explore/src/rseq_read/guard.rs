//! The fallback: a read that gives up its section takes a guard of a domain with two indexes.
//!
//! ```text
//! read:    aborts = 0
//! again:   rseq_cs = section {start, end, abort: aborted}
//! start:   p = ptr (Acquire); touch p
//! end:     done
//! aborted: aborts += 1; aborts < max: again
//! guard:   b = index (Relaxed)
//!          lock[b][this cpu] += 1 (Relaxed, in one instruction)
//!          light fence
//!          p = ptr (Acquire); touch p
//!          light fence
//!          unlock[b][this cpu] += 1 (Release)
//!
//! store:   n = a new object; old = swap ptr, n (AcqRel)
//!          u = sum over srcu_counts and cpus of unlock (Acquire)
//!          membarrier(PRIVATE_EXPEDITED_RSEQ)
//!          l = sum over srcu_counts and cpus of lock (Relaxed)
//!          equal: free old.  Else: a grace period of the two srcu_counts; free old
//!
//! check b: u = sum over cpus of unlock[b] (Acquire); heavy fence; l = sum over cpus of lock[b]
//!             (Relaxed)
//! flip:    index = other (Relaxed)
//! ```
//!
//! Where sections do not work there are guards only; light and heavy fences are full ones then.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use super::Mutant;
use super::code::{At, Barrier, Code, How, Op, Reg, Regs, Value};
use super::read::{barrier, programs, publish};
use super::scenario::Scenario;
use super::world::{CPUS, End, Plan};
use crate::memory::Location;

const INDEX: Location = Location::GpCtr;
pub(super) const LOCKS: [Location; 4] =
    [Location::Word(0), Location::Word(1), Location::Word(2), Location::Word(3)];
pub(super) const UNLOCKS: [Location; 4] = [
    Location::Attention(0),
    Location::Attention(1),
    Location::Attention(2),
    Location::Attention(3),
];

fn of_cpu(regs: &Regs, cpu: u8) -> usize {
    regs[Reg::Index as usize] as usize * CPUS + usize::from(cpu)
}

/// `lock[index][this cpu]`.
pub(super) const OWN_LOCK: At =
    At::Of { pick: |regs, cpu| LOCKS[of_cpu(regs, cpu)], among: &LOCKS };
/// `unlock[index][this cpu]`.
pub(super) const OWN_UNLOCK: At =
    At::Of { pick: |regs, cpu| UNLOCKS[of_cpu(regs, cpu)], among: &UNLOCKS };

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let (reader, writer) = (read(scenario, mutant), store(scenario, mutant));
    let programs = programs(scenario, ("reader", reader), ("writer", writer));
    Plan { end: srcu_counts_are_drained, ..Plan::new(programs, name) }
}

fn srcu_counts_are_drained(end: &End<'_>) -> Option<String> {
    (end.sum(&LOCKS) != end.sum(&UNLOCKS)).then(|| "an index is never drained".into())
}

/// A fence of readers: for the compiler only, where membarrier makes up for it.
pub(super) fn light_fence(code: &mut Code, scenario: &Scenario, mutant: Option<Mutant>) {
    if scenario.is_portable && mutant != Some(Mutant::NoLightFence) {
        code.op(Op::Fence);
    }
}

pub(super) fn heavy_fence(scenario: &Scenario, kind: Barrier) -> Op {
    Op::Barrier(if scenario.is_portable { Barrier::Own } else { kind })
}

/// The barrier of a writer, or what there is in its place.
pub(super) fn writers_barrier(scenario: &Scenario, mutant: Option<Mutant>) -> Op {
    match barrier(mutant) {
        Op::Barrier(Barrier::Restart) => heavy_fence(scenario, Barrier::Restart),
        other => other,
    }
}

fn read(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let done = code.label();
        if !scenario.is_portable {
            let (start, end, aborted) = (code.label(), code.label(), code.label());
            let again = code.here();
            code.op(Op::Arm { start, end, abort: aborted });
            code.place(start);
            code.load(Reg::Object, At::Is(Location::Pointer), Acquire);
            code.op(Op::Touch(Reg::Object));
            code.place(end);
            code.op(Op::Goto(done));
            code.place(aborted);
            code.op(Op::Plus(Reg::Aborts, 1));
            code.op(Op::IfNot(Reg::Aborts, u64::from(scenario.aborts_max), again));
        }
        guard(code, scenario, mutant);
        code.place(done);
        code.clear(&[Reg::Object, Reg::Index, Reg::Aborts]);
    })
}

fn guard(code: &mut Code, scenario: &Scenario, mutant: Option<Mutant>) {
    let pointer = At::Is(Location::Pointer);
    let is_early = mutant == Some(Mutant::PointerBeforeCount);
    if is_early {
        code.load(Reg::Object, pointer, Acquire);
    }
    code.load(Reg::Index, At::Is(INDEX), Relaxed);
    code.op(Op::Add { at: OWN_LOCK, by: 1, order: Relaxed });
    light_fence(code, scenario, mutant);
    if !is_early {
        code.load(Reg::Object, pointer, Acquire);
    }
    let unlock = Op::Add {
        at: OWN_UNLOCK,
        by: 1,
        order: if mutant == Some(Mutant::RelaxedUnlock) { Relaxed } else { Release },
    };
    if mutant == Some(Mutant::UnlockBeforeRead) {
        code.op(unlock);
        code.op(Op::Touch(Reg::Object));
        return;
    }
    code.op(Op::Touch(Reg::Object));
    if mutant != Some(Mutant::NoLightFenceAtUnlock) {
        light_fence(code, scenario, mutant);
    }
    code.op(unlock);
}

/// The words of the index in `Reg::Index`.
pub(super) const INDEX_LOCKS: [At; CPUS] = [
    At::Of { pick: |regs, _| LOCKS[of_cpu(regs, 0)], among: &LOCKS },
    At::Of { pick: |regs, _| LOCKS[of_cpu(regs, 1)], among: &LOCKS },
];
pub(super) const INDEX_UNLOCKS: [At; CPUS] = [
    At::Of { pick: |regs, _| UNLOCKS[of_cpu(regs, 0)], among: &UNLOCKS },
    At::Of { pick: |regs, _| UNLOCKS[of_cpu(regs, 1)], among: &UNLOCKS },
];

/// Adds words to `Reg::Sum`, or subtracts them, one by one.
pub(super) fn sum(code: &mut Code, how: How, of: &[At], order: Ordering) {
    of.iter().for_each(|at| code.op(Op::Load { to: Reg::Sum, how, at: *at, order }));
}

/// A grace period of the two indexes, driven by the machine. `check` sums an index's counts.
pub(super) fn grace_period(code: &mut Code, check: impl Fn(&mut Code)) {
    let (on_check, flip, idle) = (code.label(), code.label(), code.label());
    code.op(Op::Request);
    let drive = code.here();
    code.op(Op::Drive { check: on_check, flip, idle });
    code.place(on_check);
    check(code);
    code.op(Op::Checked);
    code.op(Op::Goto(drive));
    code.place(flip);
    code.store(INDEX, Value::In(Reg::Index), Relaxed);
    code.op(Op::Flipped);
    code.op(Op::Goto(drive));
    code.place(idle);
    code.clear(&[Reg::Index]);
}

/// Whether anybody is in a guard, and the barrier that ends all sections, in the order of the
/// mutant.
fn look(code: &mut Code, scenario: &Scenario, mutant: Option<Mutant>) {
    let srcu_counts = if mutant == Some(Mutant::FirstIndexOnly) { CPUS } else { 2 * CPUS };
    let order = if mutant == Some(Mutant::RelaxedScan) { Relaxed } else { Acquire };
    let barrier = writers_barrier(scenario, mutant);
    let steps = match mutant {
        Some(Mutant::NoLook) => ["barrier"].as_slice(),
        Some(Mutant::LocksBeforeBarrier) => &["unlocks", "locks", "barrier"],
        Some(Mutant::LocksFirst) => &["locks", "barrier", "unlocks"],
        Some(Mutant::UnlocksAfterBarrier) => &["barrier", "unlocks", "locks"],
        Some(Mutant::LocksFirstAfterBarrier) => &["barrier", "locks", "unlocks"],
        _ => &["unlocks", "barrier", "locks"],
    };
    for step in steps {
        match *step {
            "barrier" => code.op(barrier),
            "unlocks" => code.sum(How::Add, &UNLOCKS[..srcu_counts], order),
            _ => code.sum(How::Subtract, &LOCKS[..srcu_counts], Relaxed),
        }
    }
}

fn store(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let free = code.label();
        publish(code, mutant);
        look(code, scenario, mutant);
        code.op(Op::IfIs(Reg::Sum, 0, free));
        code.clear(&[Reg::Sum]);
        grace_period(code, |code| {
            let order = if mutant == Some(Mutant::RelaxedScan) { Relaxed } else { Acquire };
            sum(code, How::Add, &INDEX_UNLOCKS, order);
            code.op(heavy_fence(scenario, Barrier::Plain));
            sum(code, How::Subtract, &INDEX_LOCKS, Relaxed);
        });
        code.place(free);
        code.op(Op::Free(Reg::Object));
    })
}

fn name(at: Location) -> String {
    let split = |slot: u8| (slot / CPUS as u8, slot % CPUS as u8);
    match at {
        Location::GpCtr => "index".into(),
        Location::Word(slot) => format!("lock[{}][{}]", split(slot).0, split(slot).1),
        Location::Attention(slot) => format!("unlock[{}][{}]", split(slot).0, split(slot).1),
        other => other.to_string(),
    }
}
