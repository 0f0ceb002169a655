//! The whole state: memory, CPUs, threads on them; and what the kernel does to threads.
//!
//! The memory's actors are CPUs. A thread runs on one, or is off; it may be preempted at any
//! instruction and go on on another CPU, as often as it likes. A context switch is a full barrier,
//! and hands on what the thread has seen. What the kernel does to sections, as in `kernel/rseq.c`:
//! when a thread is preempted, has a signal delivered, or is interrupted by
//! `membarrier(PRIVATE_EXPEDITED_RSEQ)`, and its `rseq_cs` is set, then `rseq_cs` is cleared; and
//! if its program counter is in the section, it continues at the abort's place. So nothing protects
//! code between the store to `rseq_cs` and the section's first instruction.
//!
//! `membarrier` is a full fence of the caller, an interrupt of every other CPU, in any order and
//! each at a moment of its own, and a full fence. A CPU that runs no thread is passed over by the
//! kernel, which is the same as interrupting it: a thread that comes later executes the full
//! barrier of a context switch, and one that has gone has executed it. Memory barriers of several
//! callers come one after the other (the kernel's `membarrier_ipi_mutex`).
//!
//! **Objects.** Every touch of a freed object is a violation, also one in a section that would be
//! aborted a moment later: an access to memory that is not mapped is a signal, not an abort.
//!
//! **Page faults.** A touch may find the page missing (swapped out, say, or not copied since a
//! fork). Then the thread is in the kernel, on behalf of an access that has not happened; an abort
//! waits until it comes back. By then the object may be freed; what matters is whether its memory
//! is still mapped.

use grace::srcu::{Action, AnyDelay, Cookie, Sequence, SrcuMachine};
use grace::steps::Without;

use super::code::{Code, Op, REGS, Reg, Regs};
use super::scenario::Seat;
use crate::memory::{LOCATIONS, Layout, Location, Memory, OBJECTS, THREADS};
use crate::program;
use crate::system::{By, Outcome, System};

/// CPUs on which threads move about; those who never move have their own, after these.
pub(super) const CPUS: usize = 2;

/// A thread of a plan.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) code: Code,
    pub(super) seat: Seat,
}

/// Words of memory under the name that a subject has for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) name: &'static str,
    /// The number of the first [`Location`], and how many there are.
    pub(super) first: usize,
    pub(super) count: usize,
}

/// What is right of an end, all stores of which are seen.
#[derive(Clone, Debug)]
pub(super) enum End {
    Any,
    /// The object is freed.
    Released,
    /// Of the objects that were made all are freed but the one that is found here, and those of a
    /// set, if any.
    AllButTheLast(Location, Option<Location>),
    /// These have the same sum as those.
    Equal([Vec<Term>; 2]),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Term {
    /// All words of a place.
    At(Place),
    Is(u64),
    /// What was counted.
    Counted,
    /// How many signals were handled.
    Handled,
}

/// What does not change while something is explored.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Those who move come first, and are two at most: each has a lock that hands on its view.
    pub(super) programs: Vec<Program>,
    /// How many CPUs the movers share.
    pub(super) shared_cpus: usize,
    pub(super) places: Vec<Place>,
    pub(super) initial: [u64; LOCATIONS],
    /// Objects that there are from the start.
    pub(super) objects: u8,
    /// One signal has a handler that adds 1 to the word of its CPU, the first of which is this;
    /// others only abort.
    pub(super) handler: Option<usize>,
    /// Page faults, at most, in touches of objects.
    pub(super) faults: u8,
    /// How often the kernel aborts a thread's section without anybody asking it to, at most; and
    /// how often it moves it elsewhere, though no other thread is to run.
    pub(super) disturbances_max: Option<u8>,
    /// The delay function of SRCU's machine, and the step that it leaves out.
    pub(super) delay: AnyDelay,
    pub(super) omitted: &'static str,
    pub(super) end: End,
}

impl Plan {
    /// What a location is called here.
    pub(super) fn name(&self, at: Location) -> String {
        let is_in = |place: &&Place| at.index() - place.first < place.count;
        match self.places.iter().rev().filter(|place| place.first <= at.index()).find(is_in) {
            Some(Place { name, count: 1, .. }) => (*name).to_owned(),
            Some(Place { name, first, .. }) => format!("{name}[{}]", at.index() - first),
            None => at.to_string(),
        }
    }

    /// How many CPUs there are.
    pub(super) fn cpus(&self) -> usize {
        let last = self.programs.iter().map(|program| usize::from(program.seat.cpu) + 1).max();
        last.unwrap_or(0).max(self.shared_cpus)
    }

    pub(super) fn may_run(&self, thread: usize, cpu: usize) -> bool {
        let seat = &self.programs[thread].seat;
        match seat.moves || seat.migrations != 0 {
            true => cpu < self.shared_cpus,
            false => cpu == usize::from(seat.cpu),
        }
    }

    fn layout(&self) -> Layout {
        let mut loaders = [0; LOCATIONS];
        for (thread, program) in self.programs.iter().enumerate() {
            let cpus = (0..THREADS).filter(|cpu| self.may_run(thread, *cpu));
            let cpus = cpus.fold(0, |set, cpu| set | 1 << cpu);
            for op in &program.code.ops {
                if let Op::Load { at, .. } | Op::Add { at, .. } = op {
                    at.among().for_each(|at| loaders[at] |= cpus);
                }
            }
        }
        if let Some(first) = self.handler {
            loaders[first..first + CPUS].fill((1 << CPUS) - 1);
        }
        Layout { threads: self.cpus(), initial: self.initial, loaders }
    }
}

/// A section that the kernel knows of: `rseq_cs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Armed {
    /// Where `rseq_cs` was stored.
    pub(super) since: u8,
    pub(super) start: u8,
    pub(super) end: u8,
    pub(super) abort: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    pub(super) pc: u8,
    pub(super) regs: Regs,
    /// Where it runs; `None` while it is off.
    pub(super) cpu: Option<u8>,
    pub(super) armed: Option<Armed>,
    /// The word that it sleeps on.
    pub(super) sleeps_on: Option<Location>,
    /// It is in a page fault: in the kernel, on behalf of its next instruction.
    pub(super) fault: Option<Fault>,
    /// How often its section was aborted without anybody asking, if that has a limit.
    pub(super) aborts: u8,
    /// How often it was moved, if that has a limit.
    pub(super) migrations: u8,
}

/// A page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fault {
    /// Whether the section is to be aborted once the kernel comes back from it.
    pub(super) is_aborted: bool,
}

/// A heavy fence in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Heavy {
    pub(super) thread: u8,
    /// The CPUs that have not answered, as a set of bits.
    pub(super) waits_for: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World<M> {
    pub(super) memory: M,
    pub(super) threads: Vec<Thread>,
    pub(super) heavy: Option<Heavy>,
    pub(super) machine: SrcuMachine<AnyDelay, Without>,
    /// Whether the worker of the machine was queued.
    pub(super) queued: bool,
    pub(super) objects: u8,
    pub(super) freed: [bool; OBJECTS],
    /// What has been counted, whatever memory says.
    pub(super) counted: u8,
    pub(super) handlers: u8,
    pub(super) faults: u8,
}

/// Whose step it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Run,
    Signal,
    Fault,
    Preempt,
    Migrate,
    Resume(u8),
}

impl Move {
    /// What a thread may do, or have done to it.
    const ALL: [Self; 5 + CPUS] = [
        Self::Run,
        Self::Signal,
        Self::Fault,
        Self::Preempt,
        Self::Migrate,
        Self::Resume(0),
        Self::Resume(1),
    ];

    /// The thread and its move that have this number; a CPU, whose memory moves.
    fn numbered(step: u16, plan: &Plan) -> Result<(usize, Self), usize> {
        let (thread, step) = (usize::from(step) / Self::ALL.len(), usize::from(step));
        match step.checked_sub(plan.programs.len() * Self::ALL.len()) {
            None => Ok((thread, Self::ALL[step % Self::ALL.len()])),
            Some(cpu) => Err(cpu),
        }
    }
}

pub(super) type Turn<'a> = program::Turn<'a, Plan>;

impl<M: Memory> System for program::Program<M, Plan> {
    type State = World<M>;

    fn first(&self) -> World<M> {
        World::new(&self.scenario)
    }

    fn steps(&self) -> u16 {
        (self.scenario.programs.len() * Move::ALL.len() + self.scenario.cpus()) as u16
    }

    fn can(&self, world: &World<M>, step: u16) -> bool {
        let plan = &self.scenario;
        let Ok((thread, step)) = Move::numbered(step, plan) else { return true };
        let (cpu, moves) = (world.threads[thread].cpu, plan.programs[thread].seat.moves);
        match step {
            Move::Run | Move::Signal => cpu.is_some(),
            Move::Fault => cpu.is_some() && plan.faults > 0,
            Move::Preempt => cpu.is_some() && moves,
            Move::Migrate => plan.programs[thread].seat.migrations != 0,
            Move::Resume(to) => {
                let is_shared = moves && usize::from(to) < plan.shared_cpus;
                cpu.is_none() && is_shared && !world.is_done(thread, plan)
            }
        }
    }

    fn take(&self, world: &mut World<M>, step: u16, by: By<'_>) -> Outcome {
        let plan = &self.scenario;
        let turn = &mut self.turn(0, by);
        let outcome = match Move::numbered(step, plan) {
            Ok((thread, Move::Run)) => world.run(thread, turn),
            Ok((thread, Move::Preempt)) => world.preempt(thread, turn),
            Ok((thread, Move::Migrate)) => world.migrate(thread, turn),
            Ok((thread, Move::Resume(cpu))) => world.resume(thread, cpu, turn),
            Ok((thread, Move::Signal)) => world.signal(thread, turn),
            Ok((thread, Move::Fault)) => world.fault_begins(thread, turn),
            Err(cpu) => match world.memory.drain(cpu) {
                None => Outcome::Blocked,
                Some((at, value)) => {
                    let name = plan.name(at);
                    turn.tell(|| format!("cpu {cpu}: its store {name} = {value} is seen"));
                    Outcome::Moved
                }
            },
        };
        if outcome == Outcome::Moved {
            world.memory.settle(world.active(plan));
        }
        outcome
    }

    fn is_end(&self, world: &World<M>) -> bool {
        world.is_end(&self.scenario)
    }

    fn fault(&self, end: &World<M>) -> Option<String> {
        end.fault(&self.scenario)
    }

    /// Signals need not come.
    fn is_due(&self, step: u16) -> bool {
        !matches!(Move::numbered(step, &self.scenario), Ok((_, Move::Signal)))
    }
}

impl<M: Memory> World<M> {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut free = [true; THREADS];
        let threads = plan.programs.iter().map(|Program { seat, .. }| {
            let is_free = core::mem::take(&mut free[usize::from(seat.cpu)]);
            let mut regs = [0; REGS];
            regs[Reg::Left as usize] = seat.rounds.into();
            let cpu = (is_free || !seat.moves).then_some(seat.cpu);
            Thread { regs, cpu, ..Thread::default() }
        });
        let mut world = Self {
            memory: M::new(&plan.layout()),
            threads: threads.collect(),
            heavy: None,
            machine: SrcuMachine::with_steps(plan.delay, Sequence::after(0), Without(plan.omitted)),
            queued: false,
            objects: plan.objects,
            freed: [false; OBJECTS],
            counted: 0,
            faults: plan.faults,
            handlers: u8::from(plan.handler.is_some()),
        };
        (0..plan.programs.len()).for_each(|thread| world.go_on(thread, 0, plan));
        world
    }

    /// The next instruction of a thread, if it has not ended.
    fn op(&self, thread: usize, plan: &Plan) -> Option<Op> {
        plan.programs[thread].code.at(self.threads[thread].pc)
    }

    /// Whether a thread need do nothing more: one that serves others may have to all the same.
    pub(super) fn is_done(&self, thread: usize, plan: &Plan) -> bool {
        match self.op(thread, plan) {
            None => true,
            Some(Op::Rest) => self.machine.pending() == Action::Idle,
            Some(Op::RestAt(at, value)) => {
                let value = value.of(&self.threads[thread].regs);
                self.memory.newest(at) == value
            }
            Some(_) => {
                plan.programs[thread].seat.serves && self.threads[thread].sleeps_on.is_some()
            }
        }
    }

    /// Whether all is done and seen.
    pub(super) fn is_end(&self, plan: &Plan) -> bool {
        (0..self.threads.len()).all(|thread| self.is_done(thread, plan)) && self.memory.is_quiet()
    }

    /// What is wrong with an end.
    pub(super) fn fault(&self, plan: &Plan) -> Option<String> {
        match &plan.end {
            End::Any => None,
            End::Released => {
                (!self.freed[0]).then(|| "nobody holds it, and it is never released".into())
            }
            End::AllButTheLast(last, left) => {
                let left = left.map_or(0, |left| self.memory.newest(left));
                self.kept(self.memory.newest(*last) as usize, left)
            }
            End::Equal(sides) => {
                let [left, right] = sides.each_ref().map(|terms| self.sum(terms, plan));
                (left != right).then(|| format!("in the end {left} should be {right}"))
            }
        }
    }

    fn sum(&self, terms: &[Term], plan: &Plan) -> u64 {
        let newest = |at| self.memory.newest(Location::nth(at));
        let value = |term: &Term| match term {
            Term::At(Place { first, count, .. }) => {
                (*first..first + count).map(newest).fold(0, u64::wrapping_add)
            }
            Term::Is(value) => *value,
            Term::Counted => u64::from(self.counted),
            Term::Handled => u64::from(u8::from(plan.handler.is_some()) - self.handlers),
        };
        terms.iter().map(value).fold(0, u64::wrapping_add)
    }

    /// What is wrong where all objects but the last should be freed. Objects are numbered in the
    /// order in which they are made, so there are as many as were swapped.
    fn kept(&self, last: usize, left: u64) -> Option<String> {
        let freed = &self.freed;
        let made = freed.iter().rposition(|freed| *freed).map_or(0, |object| object + 1);
        let is_wrong =
            |object: &usize| freed[*object] != (*object != last) && left & 1 << object == 0;
        (0..made.max(last + 1)).find(is_wrong).map(|object| {
            let what = if freed[object] { "freed though it is current" } else { "never freed" };
            format!("object {object} is {what}")
        })
    }

    /// The CPUs on which somebody may still run.
    fn active(&self, plan: &Plan) -> u8 {
        let busy = |cpu: &usize| {
            let mut threads = 0..self.threads.len();
            threads.any(|thread| self.op(thread, plan).is_some() && plan.may_run(thread, *cpu))
        };
        (0..plan.cpus()).filter(busy).fold(0, |set, cpu| set | 1 << cpu)
    }

    /// Where a thread continues, past what it does by itself.
    pub(super) fn go_on(&mut self, thread: usize, pc: u8, plan: &Plan) {
        let code = &plan.programs[thread].code;
        let me = &mut self.threads[thread];
        me.pc = pc;
        while let Some(op) = code.at(me.pc) {
            let jump = match op {
                Op::Counted => {
                    self.counted += 1;
                    None
                }
                Op::Set(to, value) => {
                    me.regs[to as usize] = value.of(&me.regs);
                    None
                }
                Op::Calculate(to, how, by) => {
                    let by = by.of(&me.regs);
                    me.regs[to as usize] = how(me.regs[to as usize], by);
                    None
                }
                Op::If(reg, holds, value, to) => {
                    holds(me.regs[reg as usize], value.of(&me.regs)).then_some(to)
                }
                Op::IfEnded(cookie, to) => {
                    let cookie = Cookie::from_bits(me.regs[cookie as usize]);
                    let machine = &self.machine;
                    let is_out = !matches!(machine.pending(), Action::HandOut { .. });
                    (cookie.to_bits() != 0 && is_out && machine.sequence().is_done(cookie))
                        .then_some(to)
                }
                Op::IfPast(sequence, cookie, to) => {
                    let cookie = Cookie::from_bits(me.regs[cookie as usize]);
                    let sequence = Sequence::from_bits(me.regs[sequence as usize]);
                    sequence.is_done(cookie).then_some(to)
                }
                Op::Goto(to) => Some(to),
                _ => break,
            };
            me.pc = jump.map_or(me.pc + 1, |to| code.find(to));
        }
        let pc = me.pc;
        // Out of its section, what `rseq_cs` says means nothing; that it may stay so for a while is
        // left out, since it may as well be cleared.
        me.armed = me.armed.filter(|armed| armed.since < pc && pc < armed.end);
        if code.at(pc).is_none() {
            me.regs = [0; REGS];
            (me.aborts, me.migrations) = (0, 0);
        }
    }

    /// The object in a register is touched.
    pub(super) fn touch(&mut self, thread: usize, reg: Reg, turn: &Turn<'_>) -> Outcome {
        let object = self.threads[thread].regs[reg as usize] as u8;
        let Some(cpu) = self.threads[thread].cpu else { return Outcome::Blocked };
        let who = turn.scenario.programs[thread].name;
        if self.freed[usize::from(object)] {
            return Outcome::Violation(format!(
                "object {object} is touched by a {who} after it was freed"
            ));
        }
        if !self.memory.read_object(usize::from(cpu), object) {
            return Outcome::Violation(format!("object {object} is touched by a {who} too early"));
        }
        Outcome::Moved
    }
}
