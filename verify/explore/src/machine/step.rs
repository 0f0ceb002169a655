//! What each instruction does.

use core::sync::atomic::Ordering;

use grace::Urgency;
use grace::srcu::{Action, Event};

use super::code::{Barrier, Code, Label, Op, Reg};
use super::world::{Armed, Turn, World};
use crate::memory::{Location, Lock, Memory};
use crate::system::Outcome;

/// A sum of counts is a difference: a small number, of either sign.
fn signed(value: u64) -> i64 {
    value as i64
}

impl<M: Memory> World<M> {
    /// The next instruction of a thread.
    pub(super) fn run(&mut self, thread: usize, turn: &mut Turn<'_>) -> Outcome {
        let me = &self.threads[thread];
        let (Some(cpu), None) = (me.cpu, me.sleeps_on) else { return Outcome::Blocked };
        let program = &turn.scenario.programs[thread];
        let Some(op) = program.code.at(me.pc) else { return Outcome::Blocked };
        let name = program.name;
        turn.tell(|| format!("{name} {thread} on cpu {cpu}"));
        if me.fault.is_some() {
            return self.fault_ends(thread, turn);
        }
        let (mut op, mut this_is_first) = (Some(op), true);
        while let Some(this) = op.take() {
            let mut next = self.threads[thread].pc + 1;
            let outcome = self.execute((thread, cpu), this, &mut next, turn);
            assert!(outcome != Outcome::Blocked || this_is_first, "what is joined does not wait");
            if outcome != Outcome::Moved {
                return outcome;
            }
            this_is_first = false;
            self.go_on(thread, next, turn.scenario);
            let pc = self.threads[thread].pc;
            op = program.code.at(pc).filter(|_| program.code.joined.contains(&pc));
        }
        Outcome::Moved
    }

    /// One instruction, after which the thread goes on at `next`. Each of the functions from here
    /// to `synchronise` knows a group of them, and asks the next one for the others.
    fn execute(
        &mut self,
        (thread, cpu): (usize, u8),
        op: Op,
        next: &mut u8,
        turn: &mut Turn<'_>,
    ) -> Outcome {
        match op {
            Op::Arm { start, end, abort } => {
                let code = &turn.scenario.programs[thread].code;
                turn.tell(|| "rseq_cs = section".into());
                let since = self.threads[thread].pc;
                let find = |label: Label| Code::find(code, label);
                let armed = Armed { since, start: find(start), end: find(end), abort: find(abort) };
                self.threads[thread].armed = Some(armed);
            }
            Op::CpuNumber => {
                turn.tell(|| format!("cpu = {cpu}"));
                self.set(thread, Reg::Cpu, u64::from(cpu));
            }
            Op::Fence(Ordering::Acquire) => self.memory.acquire_fence(usize::from(cpu)),
            Op::Fence(Ordering::Release) => self.memory.release_fence(usize::from(cpu)),
            Op::Fence(_) => {
                turn.tell(|| "full fence".into());
                self.memory.fence(usize::from(cpu));
            }
            Op::Barrier(Barrier::None) => turn.tell(|| "no barrier".into()),
            Op::Barrier(kind) => match self.barrier(thread, kind, turn) {
                None => return Outcome::Blocked,
                Some(is_over) => *next -= u8::from(!is_over),
            },
            Op::Rest | Op::RestAt(..) if self.is_done(thread, turn.scenario) => {
                return Outcome::Blocked;
            }
            Op::Rest | Op::RestAt(..) => turn.tell(|| "has something to do".into()),
            Op::Request { cookie, is_locked } => {
                turn.tell(|| "asks for a grace period".into());
                if is_locked {
                    self.memory.lock(usize::from(cpu), Lock::Machine);
                }
                let given = self.machine.request(Urgency::Expedited).to_bits();
                if is_locked {
                    self.memory.unlock(usize::from(cpu), Lock::Machine);
                }
                cookie.into_iter().for_each(|cookie| self.set(thread, cookie, given));
            }
            Op::Drive { .. } => return self.drive((thread, cpu), op, next, turn),
            Op::Checked | Op::Flipped | Op::HandedOut => self.tell_machine(thread, op, turn),
            Op::IsExact(reg) => {
                let (found, counted) = (self.threads[thread].regs[reg as usize], self.counted);
                turn.tell(|| format!("reads out {found}"));
                if found != u64::from(counted) {
                    return Outcome::Violation(format!("{found} is read out, and is {counted}"));
                }
            }
            _ => return self.access(thread, cpu, op, turn),
        }
        Outcome::Moved
    }

    fn set(&mut self, thread: usize, reg: Reg, value: u64) {
        self.threads[thread].regs[reg as usize] = value;
    }

    /// An addition that is whole for its own CPU only.
    pub(super) fn add(
        &mut self,
        cpu: u8,
        at: Location,
        by: u64,
        order: Ordering,
        turn: &mut Turn<'_>,
    ) {
        let me = usize::from(cpu);
        let before = self.memory.load(me, at, Ordering::Relaxed, turn.choice);
        self.memory.store(me, at, before.wrapping_add(by), order);
    }

    /// What is done to memory.
    fn access(&mut self, thread: usize, cpu: u8, op: Op, turn: &mut Turn<'_>) -> Outcome {
        let me = usize::from(cpu);
        let plan = turn.scenario;
        let regs = self.threads[thread].regs;
        match op {
            Op::Load { to, how, at, order } => {
                let at = at.find(&regs, cpu);
                let found = self.memory.load(me, at, order, turn.choice);
                turn.tell(|| format!("loads {}: {}", plan.name(at), signed(found)));
                self.set(thread, to, how(regs[to as usize], found));
            }
            Op::Store { at, value, order } => {
                let (at, value) = (at.find(&regs, cpu), value.of(&regs));
                turn.tell(|| format!("{} = {}", plan.name(at), signed(value)));
                self.memory.store(me, at, value, order);
            }
            Op::Add { at, by, order } => {
                let at = at.find(&regs, cpu);
                turn.tell(|| format!("{} += {}", plan.name(at), signed(by)));
                self.add(cpu, at, by, order, turn);
            }
            Op::Update { at, how, by, unless: (holds, value), before, order } => {
                // One that changes nothing is a load; as an update it is stronger under TSO only.
                let (at, by) = (at.find(&regs, cpu), by.of(&regs));
                let update = |old| if holds(old, value) { old } else { how(old, by) };
                let found = self.memory.update(me, at, order, update);
                let after = signed(update(found));
                turn.tell(|| format!("{} = {after}, was {}", plan.name(at), signed(found)));
                self.set(thread, before, found);
            }
            _ => return self.handle(thread, cpu, op, turn),
        }
        Outcome::Moved
    }

    /// What is done to objects.
    fn handle(&mut self, thread: usize, cpu: u8, op: Op, turn: &mut Turn<'_>) -> Outcome {
        let me = usize::from(cpu);
        let regs = self.threads[thread].regs;
        match op {
            Op::New(to) => {
                let object = self.objects;
                turn.tell(|| format!("makes object {object}"));
                self.objects += 1;
                self.memory.initialise(me, object);
                self.set(thread, to, u64::from(object));
            }
            Op::NewAt(object) => {
                turn.tell(|| format!("makes object {object}"));
                self.memory.initialise(me, object);
            }
            Op::Touch(reg) => {
                let object = regs[reg as usize];
                turn.tell(|| format!("touches object {object}"));
                return self.touch(thread, reg, turn);
            }
            Op::Free(reg) => {
                let object = regs[reg as usize] as u8;
                turn.tell(|| format!("frees object {object}"));
                if core::mem::replace(&mut self.freed[usize::from(object)], true) {
                    return Outcome::Violation(format!("object {object} is freed twice"));
                }
                if let Some(cpu) = self.memory.racing_reader(me, object) {
                    let what =
                        format!("object {object} is freed while cpu {cpu} may still touch it");
                    return Outcome::Violation(what);
                }
                self.set(thread, reg, 0);
            }
            _ => return self.copy(thread, cpu, op, turn),
        }
        Outcome::Moved
    }

    /// What is read and written in copies of two words, and looked at.
    fn copy(&mut self, thread: usize, cpu: u8, op: Op, turn: &mut Turn<'_>) -> Outcome {
        let me = usize::from(cpu);
        let regs = self.threads[thread].regs;
        match op {
            Op::ReadCopy(of) => {
                turn.tell(|| format!("is at copy {}", regs[of as usize]));
                self.memory.read_object(me, regs[of as usize] as u8);
            }
            Op::WriteCopy(copy) => {
                turn.tell(|| format!("begins to write copy {copy}"));
                if let Some(reader) = self.memory.racing_reader(me, copy) {
                    return Outcome::Violation(format!(
                        "copy {copy} is written while cpu {reader} may still be reading it"
                    ));
                }
            }
            Op::IsValue { first, second, newest } => {
                let [first, second, before] = [first, second, newest].map(|reg| regs[reg as usize]);
                turn.tell(|| format!("has read {first}"));
                if first != second {
                    let what = format!("words of values {first} and {second} are read");
                    return Outcome::Violation(what);
                }
                if first < before {
                    return Outcome::Violation(format!("value {first} is read after {before}"));
                }
                self.set(thread, newest, first);
            }
            _ => return self.synchronise(thread, cpu, op, turn),
        }
        Outcome::Moved
    }

    /// What threads do to each other.
    fn synchronise(&mut self, thread: usize, cpu: u8, op: Op, turn: &mut Turn<'_>) -> Outcome {
        let me = usize::from(cpu);
        match op {
            Op::Lock(at) => {
                if self.memory.newest(at) != 0 {
                    return Outcome::Blocked;
                }
                turn.tell(|| "takes the mutex".into());
                self.memory.update(me, at, Ordering::Acquire, |_| 1);
            }
            Op::Unlock(at) => {
                turn.tell(|| "lets go of the mutex".into());
                // A swap, since std's is one.
                self.memory.update(me, at, Ordering::Release, |_| 0);
            }
            Op::Sleep(at, reg) => {
                self.memory.system_call(me);
                let is_same = self.memory.newest(at) == self.threads[thread].regs[reg as usize];
                turn.tell(|| if is_same { "sleeps" } else { "need not sleep" }.into());
                self.threads[thread].sleeps_on = is_same.then_some(at);
                if is_same && turn.scenario.programs[thread].seat.moves {
                    self.switch_out(thread);
                }
            }
            Op::Await(at, reg) => {
                if self.memory.newest(at) == self.threads[thread].regs[reg as usize] {
                    return Outcome::Blocked;
                }
                turn.tell(|| "is told to go on".into());
            }
            Op::Wake(at) => {
                turn.tell(|| "wakes who sleeps".into());
                self.memory.system_call(me);
                let asleep = self.threads.iter_mut().filter(|other| other.sleeps_on == Some(at));
                asleep.for_each(|other| other.sleeps_on = None);
            }
            _ => unreachable!("an instruction that is joined to another, or that nobody knows"),
        }
        Outcome::Moved
    }

    /// The machine of the two indexes is told of something.
    fn tell_machine(&mut self, thread: usize, op: Op, turn: &mut Turn<'_>) {
        let event = match op {
            Op::Checked => {
                let drained = self.threads[thread].regs[Reg::Sum as usize] == 0;
                self.set(thread, Reg::Sum, 0);
                Event::Checked { drained }
            }
            Op::Flipped => Event::Flipped,
            _ => Event::HandedOut,
        };
        turn.tell(|| format!("{event:?}"));
        self.machine.observe(event).expect("it answers the pending action");
    }

    fn drive(
        &mut self,
        (thread, cpu): (usize, u8),
        op: Op,
        next: &mut u8,
        turn: &mut Turn<'_>,
    ) -> Outcome {
        let Op::Drive { check, flip, hand_out, idle, is_locked } = op else {
            return Outcome::Blocked;
        };
        let (reg, value, label) = loop {
            let action = self.machine.pending();
            turn.tell(|| format!("{action:?}"));
            let event = match action {
                Action::Idle => break (Reg::Index, 0, idle),
                Action::Check { index } => break (Reg::Index, u64::from(index), check),
                Action::Flip { to } => break (Reg::Index, u64::from(to), flip),
                Action::HandOut { sequence, .. } => match hand_out {
                    Some(hand_out) => break (Reg::Sum, sequence.to_bits(), hand_out),
                    None => Event::HandedOut,
                },
                Action::Await if !core::mem::take(&mut self.queued) => return Outcome::Blocked,
                Action::Await => Event::Runs,
                Action::Queue(_) => Event::Queued,
                Action::Spin { .. } => Event::Spun,
            };
            self.queued |= event == Event::Queued;
            if is_locked && event == Event::Runs {
                self.memory.lock(usize::from(cpu), Lock::Machine);
            }
            self.machine.observe(event).expect("it answers the pending action");
            if hand_out.is_some() {
                *next -= 1;
                return Outcome::Moved;
            }
        };
        self.set(thread, reg, value);
        *next = turn.scenario.programs[thread].code.find(label);
        Outcome::Moved
    }
}
