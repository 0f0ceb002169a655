//! What the kernel does to threads: aborts, preemption, signals, page faults, memory barriers.
//! `world` says how, and what is left out.

use core::sync::atomic::Ordering::Relaxed;

use super::code::{Barrier, Op, Reg};
use super::world::{CPUS, Fault, Heavy, Plan, Thread, Turn, World};
use crate::memory::{Location, Lock, Memory};
use crate::system::Outcome;

impl<M: Memory> World<M> {
    /// What the kernel does to the section of a thread on its way back to it.
    pub(super) fn abort(&mut self, thread: usize, turn: &mut Turn<'_>) {
        if let Some(fault) = &mut self.threads[thread].fault {
            fault.is_aborted = true;
            return;
        }
        let pc = self.threads[thread].pc;
        let Some(armed) = self.threads[thread].armed.take() else { return };
        if armed.start <= pc && pc < armed.end {
            turn.tell(|| "its section is aborted".into());
            self.go_on(thread, armed.abort, turn.scenario);
        }
    }

    /// Whether the kernel may disturb a thread now: abort its section, or move it elsewhere.
    fn may_disturb(&mut self, thread: usize, plan: &Plan) -> bool {
        let is_needed = (0..self.threads.len()).any(|other| {
            let Thread { cpu, sleeps_on, .. } = self.threads[other];
            cpu.is_none() && sleeps_on.is_none() && !self.is_done(other, plan)
        });
        let me = &mut self.threads[thread];
        let Some(limit) = plan.disturbances_max else { return true };
        let count = match (me.armed, is_needed) {
            (Some(_), _) => &mut me.aborts,
            (None, false) => &mut me.migrations,
            (None, true) => return true, // somebody else is to run
        };
        let may = *count < limit;
        *count += u8::from(may);
        may
    }

    /// The page of what the next instruction touches is not there: the kernel is entered.
    pub(super) fn fault_begins(&mut self, thread: usize, turn: &mut Turn<'_>) -> Outcome {
        let Thread { pc, cpu, fault, .. } = self.threads[thread];
        let program = &turn.scenario.programs[thread];
        let touches = matches!(program.code.at(pc), Some(Op::Touch(_)));
        if self.faults == 0 || !touches || fault.is_some() || cpu.is_none() {
            return Outcome::Blocked;
        }
        turn.tell(|| format!("{} {thread}: a page fault", program.name));
        self.faults -= 1;
        self.threads[thread].fault = Some(Fault { is_aborted: false });
        Outcome::Moved
    }

    /// The kernel looks for the mapping, brings the page, and goes back. Where there is no mapping,
    /// it sends a signal, whatever is to be aborted.
    pub(super) fn fault_ends(&mut self, thread: usize, turn: &mut Turn<'_>) -> Outcome {
        let me = &mut self.threads[thread];
        let object = me.regs[Reg::Object as usize] as usize;
        let is_aborted = me.fault.take().is_some_and(|fault| fault.is_aborted);
        turn.tell(|| format!("page of object {object} is looked for"));
        if self.freed[object] && turn.is("unmapped-at-once") {
            return Outcome::Violation(format!("object {object} is unmapped in a page fault"));
        }
        if is_aborted {
            self.abort(thread, turn);
        }
        Outcome::Moved
    }

    fn lock_of(thread: usize) -> Lock {
        [Lock::Machine, Lock::Registry][thread]
    }

    fn is_in_barrier(&self, thread: usize) -> bool {
        self.heavy.is_some_and(|heavy| usize::from(heavy.thread) == thread)
    }

    pub(super) fn preempt(&mut self, thread: usize, turn: &mut Turn<'_>) -> Outcome {
        let Some(cpu) = self.threads[thread].cpu else { return Outcome::Blocked };
        let others = self.threads.iter().any(|other| other.cpu.is_none());
        let is_idle = self.is_done(thread, turn.scenario) && !others;
        if is_idle || self.is_in_barrier(thread) || !self.may_disturb(thread, turn.scenario) {
            return Outcome::Blocked;
        }
        let name = turn.scenario.programs[thread].name;
        turn.tell(|| format!("{name} {thread} is preempted on cpu {cpu}"));
        if !turn.is("no-abort-at-preemption") {
            self.abort(thread, turn);
        }
        self.switch_out(thread);
        Outcome::Moved
    }

    pub(super) fn switch_out(&mut self, thread: usize) {
        let Some(cpu) = self.threads[thread].cpu.take() else { return };
        self.memory.fence(usize::from(cpu));
        self.memory.unlock(usize::from(cpu), Self::lock_of(thread));
    }

    pub(super) fn resume(&mut self, thread: usize, cpu: u8, turn: &mut Turn<'_>) -> Outcome {
        let is_free = self.threads.iter().all(|other| other.cpu != Some(cpu));
        let me = &self.threads[thread];
        if me.cpu.is_some()
            || me.sleeps_on.is_some()
            || !is_free
            || self.is_done(thread, turn.scenario)
        {
            return Outcome::Blocked;
        }
        let name = turn.scenario.programs[thread].name;
        turn.tell(|| format!("{name} {thread} goes on on cpu {cpu}"));
        self.memory.lock(usize::from(cpu), Self::lock_of(thread));
        self.memory.fence(usize::from(cpu));
        self.threads[thread].cpu = Some(cpu);
        Outcome::Moved
    }

    /// Goes on on the other CPU, whatever runs there: a context switch here, and one there.
    pub(super) fn migrate(&mut self, thread: usize, turn: &mut Turn<'_>) -> Outcome {
        let Some(from) = self.threads[thread].cpu else { return Outcome::Blocked };
        let program = &turn.scenario.programs[thread];
        let migrations = self.threads[thread].migrations;
        if migrations == program.seat.migrations || self.is_done(thread, turn.scenario) {
            return Outcome::Blocked;
        }
        let to = 1 ^ from;
        turn.tell(|| format!("{} {thread} migrates to cpu {to}", program.name));
        self.memory.fence(usize::from(from));
        self.memory.unlock(usize::from(from), Lock::Registry);
        self.memory.lock(usize::from(to), Lock::Registry);
        self.memory.fence(usize::from(to));
        (self.threads[thread].cpu, self.threads[thread].migrations) = (Some(to), migrations + 1);
        Outcome::Moved
    }

    /// A signal is delivered. Nothing is promised to memory.
    pub(super) fn signal(&mut self, thread: usize, turn: &mut Turn<'_>) -> Outcome {
        let Some(cpu) = self.threads[thread].cpu else { return Outcome::Blocked };
        // (In a page fault it waits until the kernel goes back, where it makes no difference.)
        let is_in_kernel = self.is_in_barrier(thread) || self.threads[thread].fault.is_some();
        let matters = match turn.scenario.handler {
            Some(_) => self.handlers > 0 && usize::from(cpu) < CPUS,
            None => self.threads[thread].armed.is_some(),
        };
        if is_in_kernel
            || self.is_done(thread, turn.scenario)
            || !matters
            || !self.may_disturb(thread, turn.scenario)
        {
            return Outcome::Blocked;
        }
        let name = turn.scenario.programs[thread].name;
        turn.tell(|| format!("{name} {thread} on cpu {cpu}: a signal"));
        if !turn.is("no-abort-by-signal") {
            self.abort(thread, turn);
        }
        if let Some(words) = turn.scenario.handler {
            self.handlers -= 1;
            turn.tell(|| "its handler adds 1".into());
            self.add(cpu, Location::nth(words + usize::from(cpu)), 1, Relaxed, turn);
        }
        Outcome::Moved
    }

    /// The heavy fence of `thread` continues: its beginning, or one more CPU reports. Whether it is
    /// over.
    pub(super) fn barrier(
        &mut self,
        thread: usize,
        kind: Barrier,
        turn: &mut Turn<'_>,
    ) -> Option<bool> {
        let me = usize::from(self.threads[thread].cpu?);
        let cpus = if kind == Barrier::Readers { CPUS } else { turn.scenario.cpus() };
        let all = (1u8 << cpus) - 1;
        match self.heavy {
            Some(heavy) if usize::from(heavy.thread) != thread => return None,
            Some(Heavy { waits_for, .. }) => {
                let cpu = turn.choice.one_of(waits_for);
                turn.tell(|| format!("interrupts cpu {cpu}"));
                self.memory.heavy_arrives(me, cpu);
                let there = self.threads.iter().position(|other| other.cpu == Some(cpu as u8));
                if let Some(there) = there.filter(|_| kind == Barrier::Restart) {
                    self.abort(there, turn);
                }
                let waits_for = waits_for & !(1 << cpu);
                self.heavy = Some(Heavy { thread: thread as u8, waits_for });
            }
            None => {
                turn.tell(|| "begins its barrier".into());
                self.memory.heavy_begin(me);
                self.heavy = Some(Heavy { thread: thread as u8, waits_for: all & !(1 << me) });
            }
        }
        let is_over = self.heavy.is_some_and(|heavy| heavy.waits_for == 0);
        if is_over {
            self.memory.heavy_end(me);
            self.heavy = None;
        }
        Some(is_over)
    }
}
