//! The whole state: memory, machine, registry, threads; and whose step may come next.
//!
//! A step is what happens between two moments at which another thread could notice: one access to
//! shared memory, one fence, or one section of a lock. Where a lock is held across several of
//! those, it is held here as well.

mod driver;
mod reader;
mod sleeper;
mod updater;

use core::hash::Hash;
use core::sync::atomic::Ordering;
use std::sync::LazyLock;

use grace::policy::AnyPolicy;
use grace::{Cookie, Event, Machine, Sequence, Start, Urgency, word};

use crate::explore::{Model, Verdict};
use crate::harness::{self, Explored, Table};
use crate::litmus;
use crate::memory::{LOCATIONS, Layout, Location, Memory, OBJECTS, THREADS, VARIABLES};
use crate::program::{self, Program};
use crate::scenario::{Op, Scenario};
use crate::system::{By, Outcome, System};

/// The threads of a scenario.
type Protocol<M> = Program<M, Scenario>;

type Turn<'a> = program::Turn<'a, Scenario>;

/// What a thread may do next, besides its own step: see [`World::drain`] and [`World::vanish`].
const KINDS: u16 = 3;

impl<M: Memory> System for Protocol<M> {
    type State = World<M>;

    fn first(&self) -> World<M> {
        World::new(&self.scenario, self.mutant)
    }

    fn steps(&self) -> u16 {
        self.scenario.threads.len() as u16 * KINDS
    }

    fn can(&self, world: &World<M>, step: u16) -> bool {
        let (me, kind) = (usize::from(step / KINDS), step % KINDS);
        match kind {
            0 => world.threads[me].asleep.is_none() && world.op(&self.scenario, me).is_some(),
            1 => !world.memory.is_quiet(),
            _ => self.scenario.may_vanish == Some(me),
        }
    }

    fn take(&self, world: &mut World<M>, step: u16, by: By<'_>) -> Outcome {
        let me = usize::from(step / KINDS);
        let mut turn = self.turn(me, by);
        turn.tell(|| self.scenario.threads[me].name.into());
        match step % KINDS {
            0 => world.step(&mut turn),
            1 => world.drain(&mut turn),
            _ => world.vanish(&mut turn),
        }
    }

    fn is_end(&self, world: &World<M>) -> bool {
        world.is_end(&self.scenario)
    }

    fn fault(&self, end: &World<M>) -> Option<String> {
        end.is_outcome(&self.scenario).then(|| "the outcome is reached".to_owned())
    }
}

impl Explored for Scenario {
    fn name(&self) -> &str {
        &self.name
    }

    fn explore(&self, model: Model, mutant: Option<&'static str>, limit: usize) -> Verdict {
        let mutant = mutant.unwrap_or_default();
        program::explore(self.clone().with(mutant), model, mutant, limit)
    }
}

/// Grace periods, as a world: with the outcomes that litmus tests forbid.
pub static GRACE_PERIODS: LazyLock<harness::World> = LazyLock::new(|| {
    let mut table: Table<Scenario> = harness::table!("grace_periods");
    table.big.extend(litmus::forbidden().into_iter().chain(litmus::forbidden_exhaustive()));
    harness::World::new(&Model::ALL, table)
});

/// Where a thread stands inside an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum At {
    /// At its first step.
    #[default]
    Begin,
    /// The operation's second step, and third.
    Second,
    Third,
    /// Reporting to a sleeper, after the word was stored.
    Report(reader::Report),
    /// Inside [`Op::Wait`] or [`Op::Advance`], as the driver.
    Drive(driver::Step),
}

/// What a litmus test's variable shows that was not loaded.
const NOT_LOADED: u8 = u8::MAX;

/// What a thread sleeps on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asleep {
    /// The condition variable of those who wait for the driver.
    Turn,
    /// The futex of the driver that waits for holdouts.
    Wake,
}

/// A thread's own state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ThreadState {
    /// The operation it is at.
    op: u8,
    at: At,
    slot: Option<u8>,
    registered: bool,
    /// Its own copy of its word.
    word: u64,
    /// A value just loaded.
    loaded: u64,
    /// The object it read last, and the one it took out of the pointer last.
    object: u8,
    old: u8,
    /// The object it published last (0 at first): what a sole updater knows the pointer to hold.
    published: u8,
    cookie: Option<Cookie>,
    asleep: Option<Asleep>,
    drive: driver::Drive,
    /// Whether it has taken another driver's place.
    took_over: bool,
    variables: [u8; VARIABLES],
}

/// Under the registry's lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Registry {
    /// Slots in use, as a set of bits.
    readers: u8,
    /// Slots given back, the last one on top.
    free: Vec<u8>,
    /// Slots ever made.
    slots: u8,
    /// The holdouts of the last pass that was looked at, and its number.
    holdouts: u8,
    pass: Option<grace::Number>,
    held_by: Option<u8>,
}

/// A state of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World<M> {
    memory: M,
    machine: Machine<AnyPolicy>,
    /// The thread that holds the machine's lock from one step to another.
    held_by: Option<u8>,
    driven: bool,
    /// The number of the driver's term [HO-1].
    term: u8,
    registry: Registry,
    freed: [bool; OBJECTS],
    threads: Vec<ThreadState>,
}

/// The slots in a set, lowest first.
fn members(set: u8) -> impl Iterator<Item = u8> {
    (0..8).filter(move |member| set & (1 << member) != 0)
}

impl<M: Memory> World<M> {
    /// The state at the beginning.
    fn new(scenario: &Scenario, mutant: &str) -> Self {
        assert!(scenario.threads.len() <= THREADS, "too many threads");
        let (mut readers, mut slots) = (0, 0);
        let mut threads = Vec::new();
        for thread in &scenario.threads {
            let slot = thread.registered.then_some(slots);
            let registered = thread.registered && !thread.liburcu;
            readers |= u8::from(registered) << slots;
            slots += u8::from(thread.registered);
            threads.push(ThreadState {
                slot,
                registered,
                word: word::QUIESCENT,
                variables: [NOT_LOADED; VARIABLES],
                ..ThreadState::default()
            });
        }
        let start = scenario.start();
        // The mutants that cut numbers short do it where the driver handles them, so that the
        // machine believes that they are still wide.
        let is_cut = driver::number_mask(scenario, mutant).is_some();
        let number_bits = if is_cut { 32 } else { start.number_bits };
        let machine = Machine::new(scenario.policy(), Start { number_bits, ..start });
        Self {
            memory: M::new(&layout(scenario, machine.number(), machine.sequence())),
            machine,
            held_by: None,
            driven: false,
            term: 0,
            registry: Registry { readers, slots, ..Registry::default() },
            freed: [false; OBJECTS],
            threads,
        }
    }

    /// Whether every thread is done.
    fn is_end(&self, scenario: &Scenario) -> bool {
        (0..self.threads.len()).all(|thread| self.op(scenario, thread).is_none())
    }

    /// Whether the end is the one that the litmus test asks about.
    fn is_outcome(&self, scenario: &Scenario) -> bool {
        let (outcome, finally) = (&scenario.outcome, &scenario.finally);
        let variable = |variable| self.memory.newest(Location::variable(variable));
        !(outcome.is_empty() && finally.is_empty())
            && outcome
                .iter()
                .all(|o| self.threads[o.thread].variables[usize::from(o.variable)] == o.value)
            && (finally.is_empty() || self.memory.is_quiet())
            && finally.iter().all(|(at, value)| variable(*at) == u64::from(*value))
    }

    fn op(&self, scenario: &Scenario, thread: usize) -> Option<Op> {
        let program = &scenario.threads[thread].program;
        program.get(usize::from(self.threads[thread].op)).copied()
    }

    /// The next step of thread `turn.me`.
    fn step(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let thread = &self.threads[turn.me];
        if thread.asleep.is_some() {
            return Outcome::Blocked;
        }
        let Some(op) = self.op(turn.scenario, turn.me) else { return Outcome::Blocked };
        let at = thread.at;
        let outcome = match (at, op) {
            (At::Report(report), _) => self.report(turn, report),
            (At::Drive(step), _) => self.drive(turn, step),
            (At::Begin, Op::Lock) if word::nesting(thread.word) != 0 => self.lock_nested(turn),
            (_, Op::Lock | Op::Online) => self.enter(turn, at),
            (_, Op::Unlock) => self.unlock(turn),
            (_, Op::Read) => self.read(turn, at),
            (_, Op::ReadAgain) => self.read_object(turn),
            (_, Op::QuiescentState) => self.quiescent_state(turn, at),
            (_, Op::Offline) => self.leave(turn, word::QUIESCENT),
            (_, Op::Register) => self.register(turn, at),
            (_, Op::Unregister) => self.unregister(turn),
            (_, Op::Swap(object) | Op::Store(object)) => self.publish(turn, object),
            (_, Op::Request) => self.request(turn, Urgency::Normal),
            (_, Op::RequestInBackground) => self.request(turn, Urgency::Background),
            (_, Op::Wait | Op::WaitImpatiently) => self.wait(turn),
            (_, Op::Advance) => self.advance(turn, false),
            (_, Op::AdvanceAtTick) => self.advance(turn, true),
            (_, Op::Poll) => self.poll(turn),
            (_, Op::Free) => self.free(turn),
            (_, Op::Set(..) | Op::Get(_) | Op::Publish(..) | Op::Follow(_)) => {
                self.litmus(turn, op)
            }
        };
        self.settle(turn.scenario);
        outcome
    }

    /// The oldest buffered store of a thread becomes visible.
    fn drain(&mut self, turn: &mut Turn<'_>) -> Outcome {
        match self.memory.drain(turn.me) {
            None => Outcome::Blocked,
            Some((at, value)) => {
                turn.tell(|| format!("its store {at} = {value:#x} becomes visible"));
                Outcome::Moved
            }
        }
    }

    /// A driver vanishes in mid grace period, and this is reported to the machine.
    fn vanish(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        let is_driving = matches!(self.threads[me].at, At::Drive(_));
        let holds = [self.held_by, self.registry.held_by].contains(&Some(me as u8));
        if turn.scenario.may_vanish != Some(me) || !is_driving || holds {
            return Outcome::Blocked;
        }
        turn.tell(|| "vanishes".into());
        self.threads[me].op = turn.scenario.threads[me].program.len() as u8;
        self.threads[me].at = At::Begin;
        self.threads[me].asleep = None;
        self.threads[me].drive = driver::Drive::default();
        self.driven = false;
        self.registry.holdouts = 0;
        self.registry.pass = None;
        self.machine.observe(Event::Abandoned).expect("fits every step");
        self.wake(Asleep::Turn);
        self.settle(turn.scenario);
        Outcome::Moved
    }

    fn settle(&mut self, scenario: &Scenario) {
        let active = (0..self.threads.len())
            .filter(|thread| self.op(scenario, *thread).is_some())
            .fold(0, |set, thread| set | 1 << thread);
        self.memory.settle(active);
    }

    /// The operation is done.
    fn finish(&mut self, me: usize) -> Outcome {
        let thread = &mut self.threads[me];
        thread.op += 1;
        thread.at = At::Begin;
        thread.loaded = 0;
        thread.drive = driver::Drive::default();
        Outcome::Moved
    }

    fn goto(&mut self, me: usize, at: At) -> Outcome {
        self.threads[me].at = at;
        Outcome::Moved
    }

    /// Those who sleep on this go on.
    fn wake(&mut self, asleep: Asleep) {
        let sleepers = self.threads.iter_mut().filter(|thread| thread.asleep == Some(asleep));
        sleepers.for_each(|thread| thread.asleep = None);
    }

    fn litmus(&mut self, turn: &mut Turn<'_>, op: Op) -> Outcome {
        match op {
            Op::Set(variable, value) => {
                let at = Location::variable(variable);
                self.memory.race(turn.me, at, u64::from(value), turn.choice);
                turn.tell(|| format!("{at} = {value}"));
            }
            Op::Publish(variable, value) => {
                let at = Location::variable(variable);
                let is_relaxed = turn.is("relaxed-publication");
                let order = if is_relaxed { Ordering::Relaxed } else { Ordering::Release };
                self.memory.store(turn.me, at, u64::from(value), order);
                turn.tell(|| format!("{at} = {value}, published"));
            }
            Op::Get(variable) | Op::Follow(variable) => {
                let at = Location::variable(variable);
                let is_relaxed = matches!(op, Op::Get(_)) || turn.is("relaxed-pointer-load");
                let order = if is_relaxed { Ordering::Relaxed } else { Ordering::Acquire };
                let value = self.memory.load(turn.me, at, order, turn.choice);
                self.threads[turn.me].variables[usize::from(variable)] = value as u8;
                turn.tell(|| format!("load {at}: {value}"));
            }
            _ => unreachable!("not an operation of litmus tests"),
        }
        self.finish(turn.me)
    }
}

/// Initial values, and who may load what.
fn layout(scenario: &Scenario, number: grace::Number, sequence: Sequence) -> Layout {
    let mut initial = [0; LOCATIONS];
    initial[Location::GP_CTR.index()] = word::entered(number);
    initial[Location::COMPLETED.index()] = sequence.to_bits();
    let mut loaders = [0; LOCATIONS];
    for (index, thread) in scenario.threads.iter().enumerate() {
        let mut loads = |at: Location| loaders[at.index()] |= 1 << index;
        for op in &thread.program {
            match op {
                Op::Lock | Op::Online | Op::QuiescentState if thread.liburcu => {}
                Op::Lock | Op::Online | Op::QuiescentState => loads(Location::GP_CTR),
                Op::Read => loads(Location::POINTER),
                Op::Poll => loads(Location::COMPLETED),
                // The thread that stores must know what came before, as one who loads does.
                Op::Get(at) | Op::Follow(at) | Op::Set(at, _) | Op::Publish(at, _) => {
                    loads(Location::variable(*at))
                }
                Op::Wait | Op::WaitImpatiently | Op::Advance | Op::AdvanceAtTick => {
                    loads(Location::WAKE);
                    (0..THREADS as u8).for_each(|slot| loads(Location::word(slot)));
                }
                _ => {}
            }
            if matches!(op, Op::Unlock | Op::QuiescentState | Op::Offline | Op::Unregister) {
                (0..THREADS as u8).for_each(|slot| loads(Location::attention(slot)));
            }
        }
    }
    Layout { threads: scenario.threads.len(), initial, loaders }
}
