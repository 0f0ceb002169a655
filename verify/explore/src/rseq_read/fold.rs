//! Folding: the words of CPUs are taken out of their place and moved into one word; on it stand
//! `ExactCounter` and `LocalGlobalLock` as the library has them.
//!
//! ```text
//! add n:   again: rseq_cs = section {start, end, abort: again}
//! start:   p = place (Acquire); null: no
//!          p[this cpu] += n                                 the commit
//! end:
//!
//! stop:    place = null (Relaxed)
//! gather:  membarrier(PRIVATE_EXPEDITED_RSEQ)
//!          for each word: s += word; word = 0 (Relaxed)
//!          central += s (AcqRel, locked)
//! go on:   place = words (Release)
//!
//! ExactCounter
//! add:     add 1; told no: central += 1 (Relaxed, locked)
//! sum:     take the mutex; stop; gather: the sum is what central is now; go on; let go of the mutex
//!
//! LocalGlobalLock; central begins as NOBODY
//! read:    add 1 to word 0; told no: central += 1 unless it is STOPPED (Acquire, locked); else
//!             take the mutex; the same once more; else waiting += 1, let go of the mutex and
//!             sleep until turns changes
//! end:     add -1 to word 1; told no: before = central -= 1 (AcqRel, locked)
//!             before == NOBODY | STOPPED + 1: drained += 1 (Release, locked); wake the writer
//! write:   take the mutex; central |= STOPPED (Relaxed, locked); stop; let go of the mutex; gather
//! wait:    e = drained (Acquire); central != NOBODY | STOPPED (Acquire): sleep if drained is
//!             still e; wait
//!          write what is locked
//!          take the mutex; central += waiting (Relaxed, locked); waiting = 0; turns += 1
//!          central &= !STOPPED (Release, locked); go on; let go of the mutex
//! ```
//!
//! Without restartable sequences an addition is a locked one that each word may refuse:
//!
//! ```text
//! add n:   p = place (Acquire); null: no
//!          p[this cpu] += n unless it is GONE (AcqRel, locked); GONE: no
//! gather:  for each word: s += swap word, GONE (AcqRel)
//! go on:   for each word: word = 0 (Release); place = words (Release)
//! ```
//!
//! `lock` and `exact` are the designs without folding, with a flag beside the words.

use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use super::Mutant;
use super::code::{At, Code, How, Label, MINUS_ONE, Op, Reg, Value};
use super::exact::look_and_add;
use super::read::{barrier, programs};
use super::scenario::{Scenario, Subject};
use super::world::{CPUS, End, Plan};
use crate::memory::Location;

/// 1 while the words are in their place.
const PLACE: Location = Location::GpCtr;
const MUTEX: Location = Location::Completed;
const DRAINED: Location = Location::Wake;
const CENTRAL: Location = Location::Variable(0);
const WAITING: Location = Location::Variable(1);
const TURNS: Location = Location::Variable(2);
const WORDS: [Location; 2 * CPUS] =
    [Location::Word(0), Location::Word(1), Location::Attention(0), Location::Attention(1)];
const FIRST: At = At::Of { pick: |_, cpu| WORDS[usize::from(cpu)], among: &WORDS };
const SECOND: At = At::Of { pick: |_, cpu| WORDS[CPUS + usize::from(cpu)], among: &WORDS };

/// In a word, on the portable path: it is not counted here now.
const GONE: u64 = 1 << 30;
/// More than there are readers.
const NOBODY: u64 = 1 << 10;
const STOPPED: u64 = 1 << 20;

pub(super) fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let is_lock = scenario.subject == Subject::FoldingLock;
    let (reader, writer) = if is_lock {
        (("reader", read(scenario, mutant)), ("writer", write(scenario, mutant)))
    } else {
        (("thread", count(scenario, mutant)), ("reader", sum(scenario, mutant)))
    };
    Plan {
        initial: vec![(PLACE, 1), (CENTRAL, if is_lock { NOBODY } else { 0 })],
        end: if is_lock { nobody_reads } else { nothing_is_lost },
        ..Plan::new(programs(scenario, reader, writer), name)
    }
}

fn nothing_is_lost(end: &End<'_>) -> Option<String> {
    let sum = end.sum(&WORDS) + end.newest(CENTRAL);
    (sum != end.counted).then(|| format!("{} increments make {sum}", end.counted))
}

fn nobody_reads(end: &End<'_>) -> Option<String> {
    let sum = end.sum(&WORDS).wrapping_add(end.newest(CENTRAL));
    (sum != NOBODY).then(|| "a reader that has left is still counted".into())
}

/// Adds to a word of this CPU, without sections.
fn add_portably(code: &mut Code, (at, by): (At, u64), mutant: Option<Mutant>, no: Label) {
    code.load(Reg::Flag, At::Is(PLACE), Acquire);
    code.op(Op::IfIs(Reg::Flag, 0, no));
    let how = |count: u64, by| if count == GONE { count } else { count.wrapping_add(by) };
    let order = if mutant == Some(Mutant::RelaxedExchange) { Relaxed } else { AcqRel };
    code.op(Op::LockedChange { at, how, by, before: Reg::Flag, order });
    code.op(Op::IfIs(Reg::Flag, GONE, no));
    code.clear(&[Reg::Flag]);
}

/// Adds to a word of this CPU; continues at `no` if there are none.
fn add(
    code: &mut Code,
    scenario: &Scenario,
    (at, by): (At, u64),
    mutant: Option<Mutant>,
    no: Label,
) {
    if scenario.is_portable {
        return add_portably(code, (at, by), mutant, no);
    }
    let order = if mutant == Some(Mutant::RelaxedFlagLoad) { Relaxed } else { Acquire };
    let look = |code: &mut Code| {
        code.load(Reg::Flag, At::Is(PLACE), order);
        code.op(Op::IfIs(Reg::Flag, 0, no));
    };
    look_and_add(code, mutant, look, Op::Add { at, by, order: Relaxed });
    code.clear(&[Reg::Flag]);
}

fn add_to_central(code: &mut Code, by: Value, order: Ordering) {
    code.op(Op::LockedAdd { at: At::Is(CENTRAL), by, before: Reg::Sum, order });
}

fn stop(code: &mut Code) {
    code.store(PLACE, Value::Is(0), Relaxed);
}

/// The words that are in use.
fn words(scenario: &Scenario) -> impl Iterator<Item = Location> {
    let has_two = scenario.subject == Subject::FoldingLock;
    let cpus = 0..usize::from(scenario.cpus);
    let of_cpu = move |cpu| [Some(WORDS[cpu]), has_two.then_some(WORDS[CPUS + cpu])];
    cpus.flat_map(of_cpu).flatten()
}

/// The words' sum, in `Reg::Sum`; they are zero afterwards, or gone.
fn gather(code: &mut Code, scenario: &Scenario, mutant: Option<Mutant>) {
    let sum = |code: &mut Code| {
        for at in words(scenario) {
            if scenario.is_portable && mutant != Some(Mutant::NotGone) {
                let order = if mutant == Some(Mutant::RelaxedExchange) { Relaxed } else { AcqRel };
                let (at, value) = (At::Is(at), Value::Is(GONE));
                code.op(Op::Swap { at, value, before: Reg::Flag, order });
                code.op(Op::PlusReg(Reg::Sum, Reg::Flag));
                code.clear(&[Reg::Flag]);
                continue;
            }
            code.sum(How::Add, &[at], Relaxed);
            if mutant != Some(Mutant::WordsKept) {
                code.store(at, Value::Is(0), Relaxed);
            }
        }
    };
    if scenario.is_portable {
        return sum(code);
    }
    if mutant == Some(Mutant::SumFirst) {
        sum(code);
        code.op(barrier(None));
        return;
    }
    if mutant != Some(Mutant::BarrierFirst) {
        code.op(barrier(mutant));
    }
    sum(code);
}

fn go_on(code: &mut Code, scenario: &Scenario, mutant: Option<Mutant>) {
    let order = if mutant == Some(Mutant::RelaxedFlagClear) { Relaxed } else { Release };
    let zero = |code: &mut Code| {
        let stores = words(scenario).filter(|_| scenario.is_portable);
        stores.for_each(|at| code.store(at, Value::Is(0), order));
    };
    let is_early = mutant == Some(Mutant::PlaceBeforeZero);
    if !is_early {
        zero(code);
    }
    code.store(PLACE, Value::Is(1), order);
    if is_early {
        zero(code);
    }
}

fn count(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let (no, done) = (code.label(), code.label());
        add(code, scenario, (FIRST, 1), mutant, no);
        code.op(Op::Counted);
        code.op(Op::Goto(done));
        code.place(no);
        add_to_central(code, Value::Is(1), Relaxed);
        code.op(Op::Counted);
        code.clear(&[Reg::Sum]);
        code.place(done);
    })
}

fn sum(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        code.op(Op::Lock(MUTEX));
        if mutant == Some(Mutant::BarrierFirst) {
            code.op(barrier(None));
        }
        stop(code);
        gather(code, scenario, mutant);
        code.op(Op::ReadOut(CENTRAL));
        code.clear(&[Reg::Sum]);
        go_on(code, scenario, mutant);
        code.op(Op::Unlock(MUTEX));
    })
}

fn begin_at_once(code: &mut Code, mutant: Option<Mutant>, inside: Label) {
    let order = if mutant == Some(Mutant::RelaxedBegin) { Relaxed } else { Acquire };
    let how = |readers, _| if readers & STOPPED == 0 { readers + 1 } else { readers };
    code.op(Op::LockedChange { at: At::Is(CENTRAL), how, by: 1, before: Reg::Sum, order });
    code.op(Op::IfBitless(Reg::Sum, STOPPED, inside));
    code.clear(&[Reg::Sum]);
}

fn read(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let (no, slept, unlock, inside, ended) =
            (code.label(), code.label(), code.label(), code.label(), code.label());
        add(code, scenario, (FIRST, 1), mutant, no);
        code.op(Op::Goto(inside));
        code.place(no);
        begin_at_once(code, mutant, inside);
        code.op(Op::Lock(MUTEX));
        if mutant != Some(Mutant::NoSecondTry) {
            begin_at_once(code, mutant, unlock);
        }
        code.op(Op::Add { at: At::Is(WAITING), by: 1, order: Relaxed });
        code.load(Reg::Epoch, At::Is(TURNS), Relaxed);
        code.op(Op::Unlock(MUTEX));
        code.op(Op::Await(TURNS, Reg::Epoch));
        code.op(Op::Goto(slept));
        code.place(unlock);
        code.op(Op::Unlock(MUTEX));
        code.op(Op::Goto(inside));
        code.place(slept);
        code.op(Op::Lock(MUTEX));
        code.op(Op::Unlock(MUTEX));
        code.place(inside);
        for reg in [Reg::Sum, Reg::Flag, Reg::Epoch] {
            code.op(Op::Set(reg, Value::Is(0)));
        }
        code.load(Reg::Object, At::Is(Location::Pointer), Relaxed);
        code.op(Op::Touch(Reg::Object));
        code.clear(&[Reg::Object]);
        let no = code.label();
        add(code, scenario, (SECOND, MINUS_ONE), mutant, no);
        code.op(Op::Goto(ended));
        code.place(no);
        let order = if mutant == Some(Mutant::RelaxedDrop) { Relaxed } else { AcqRel };
        add_to_central(code, Value::Is(MINUS_ONE), order);
        code.op(Op::IfNot(Reg::Sum, (NOBODY | STOPPED) + 1, ended));
        if mutant != Some(Mutant::EpochKept) {
            let (at, by) = (At::Is(DRAINED), Value::Is(1));
            let order = if mutant == Some(Mutant::RelaxedEpoch) { Relaxed } else { Release };
            code.op(Op::LockedAdd { at, by, before: Reg::Sum, order });
        }
        if mutant != Some(Mutant::NoWake) {
            code.op(Op::Wake);
        }
        code.place(ended);
        code.clear(&[Reg::Sum]);
    })
}

fn write(scenario: &Scenario, mutant: Option<Mutant>) -> Code {
    Code::rounds(|code| {
        let alone = code.label();
        code.op(Op::Lock(MUTEX));
        if mutant == Some(Mutant::BarrierFirst) {
            code.op(barrier(None));
        }
        if mutant == Some(Mutant::StoppedLate) {
            stop(code);
            add_to_central(code, Value::Is(STOPPED), Relaxed);
        } else {
            add_to_central(code, Value::Is(STOPPED), Relaxed);
            stop(code);
        }
        code.clear(&[Reg::Sum]);
        code.op(Op::Unlock(MUTEX));
        gather(code, scenario, mutant);
        add_to_central(code, Value::In(Reg::Sum), AcqRel);
        code.clear(&[Reg::Sum]);
        let wait = code.here();
        let epoch = |code: &mut Code| code.load(Reg::Epoch, At::Is(DRAINED), Acquire);
        if mutant != Some(Mutant::EpochAfterSums) {
            epoch(code);
        }
        let order = if mutant == Some(Mutant::RelaxedScan) { Relaxed } else { Acquire };
        code.load(Reg::Sum, At::Is(CENTRAL), order);
        code.op(Op::IfIs(Reg::Sum, NOBODY | STOPPED, alone));
        code.clear(&[Reg::Sum]);
        if mutant == Some(Mutant::EpochAfterSums) {
            epoch(code);
        }
        code.op(Op::Sleep(DRAINED, Reg::Epoch));
        code.op(Op::Goto(wait));
        code.place(alone);
        code.clear(&[Reg::Sum, Reg::Epoch]);
        code.load(Reg::Object, At::Is(Location::Pointer), Relaxed);
        code.op(Op::Free(Reg::Object));
        code.op(Op::New(Reg::Object));
        code.store(Location::Pointer, Value::In(Reg::Object), Relaxed);
        code.clear(&[Reg::Object]);
        end_write(code, scenario, mutant);
    })
}

fn end_write(code: &mut Code, scenario: &Scenario, mutant: Option<Mutant>) {
    let nobody = code.label();
    code.op(Op::Lock(MUTEX));
    code.load(Reg::Epoch, At::Is(WAITING), Relaxed);
    code.op(Op::IfIs(Reg::Epoch, 0, nobody));
    if mutant != Some(Mutant::WaitersNotCounted) {
        add_to_central(code, Value::In(Reg::Epoch), Relaxed);
    }
    code.store(WAITING, Value::Is(0), Relaxed);
    code.op(Op::Add { at: At::Is(TURNS), by: 1, order: Relaxed });
    code.place(nobody);
    code.clear(&[Reg::Epoch]);
    let order = if mutant == Some(Mutant::RelaxedFlagClear) { Relaxed } else { Release };
    add_to_central(code, Value::Is(STOPPED.wrapping_neg()), order);
    code.clear(&[Reg::Sum]);
    go_on(code, scenario, mutant);
    code.op(Op::Unlock(MUTEX));
}

fn name(at: Location) -> String {
    match at {
        PLACE => "place".into(),
        DRAINED => "drained".into(),
        CENTRAL => "central".into(),
        WAITING => "waiting".into(),
        TURNS => "turns".into(),
        Location::Word(cpu) => format!("word 0 of cpu {cpu}"),
        Location::Attention(cpu) => format!("word 1 of cpu {cpu}"),
        other => other.to_string(),
    }
}
