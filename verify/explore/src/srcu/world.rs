//! The whole state: memory, machine, worker, readers (`reader`); and the worker's steps,
//! transcribed.
//!
//! ```text
//! check:   u = sum over cpus of unlock[b] (Relaxed, one by one)
//!          fence A
//!          l = sum over cpus of lock[b] (Relaxed, one by one); drained if equal
//! flip:    fence E; srcu_idx = other (Relaxed); fence D
//! hand out: completed = sequence (Release)
//! update:  ptr = new object (Release); request; grace period; free the old object
//! ```
//!
//! The worker touches the machine without any memory effect of its own, though the kernel's takes
//! locks there: a fence that is missing shall not hide behind one. Only against a second updater,
//! who requests from elsewhere, does it take the lock.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use grace::Urgency;
use grace::srcu::{Action, AnyDelay, Cookie, Event, Sequence, SrcuMachine};
use grace::steps::Steps;

use super::fault::Mutant;
use super::reader::Reader;
use super::scenario::Scenario;
use crate::memory::{LOCATIONS, Layout, Location, Lock, Memory, OBJECTS};
use crate::program::{self, Program};
use crate::system::{By, Outcome, System};

/// CPUs that run readers; the worker's and the other updater's come after them.
pub(super) const CPUS: usize = 2;
const WORKER: usize = CPUS;
const OTHER: usize = CPUS + 1;

/// The machine's mutant, chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Omission(pub(super) Option<&'static str>);

impl Steps for Omission {
    fn omits(&self, step: &'static str) -> bool {
        self.0 == Some(step)
    }
}

/// The machine with its counts, CPUs and readers.
pub(super) type Counts<M> = Program<M, Scenario, Mutant>;

pub(super) type Turn<'a> = program::Turn<'a, Scenario, Mutant>;

fn has_plain_flip(turn: &Turn<'_>) -> bool {
    turn.is(Mutant::NoFenceDNorE) || turn.is(Mutant::NoFenceOfWorker)
}

/// Where the worker stands inside an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WorkerAt {
    Next,
    /// Summing: which sum (0 or 1), of which CPU next, and the differences so far.
    Sum {
        second: bool,
        cpu: u8,
        counts: [i8; CPUS],
    },
    FenceA {
        counts: [i8; CPUS],
    },
    Store,
    FenceD,
}

/// One who publishes, waits and frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Updater {
    updates: u8,
    old: Option<u8>,
    cookie: Option<Cookie>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World<M> {
    pub(super) memory: M,
    machine: SrcuMachine<AnyDelay, Omission>,
    queued: bool,
    at: WorkerAt,
    pub(super) readers: Vec<Reader>,
    worker: Updater,
    other: Updater,
    objects: u8,
    pub(super) freed: [bool; OBJECTS],
}

pub(super) const INDEX: Location = Location::GpCtr;

pub(super) fn lock_count(index: u8, cpu: u8) -> Location {
    Location::Word(index * CPUS as u8 + cpu)
}

pub(super) fn unlock_count(index: u8, cpu: u8) -> Location {
    Location::Attention(index * CPUS as u8 + cpu)
}

fn layout() -> Layout {
    let mut initial = [0; LOCATIONS];
    initial[Location::Completed.index()] = Sequence::after(0).to_bits();
    let mut loaders = [0; LOCATIONS];
    let cpus = (1 << CPUS) - 1;
    loaders[INDEX.index()] = cpus;
    loaders[Location::Pointer.index()] = cpus;
    loaders[Location::Completed.index()] = 1 << OTHER;
    for cpu in 0..CPUS as u8 {
        for index in 0..2 {
            loaders[lock_count(index, cpu).index()] = 1 << WORKER | 1 << cpu;
            loaders[unlock_count(index, cpu).index()] = 1 << WORKER | 1 << cpu;
        }
    }
    Layout { threads: OTHER + 1, initial, loaders }
}

impl<M: Memory> System for Counts<M> {
    type State = World<M>;

    fn first(&self) -> World<M> {
        let omission = match self.mutant {
            Some(Mutant::Omitted(step)) => Omission(Some(step)),
            _ => Omission(None),
        };
        let (scenario, start) = (&self.scenario, Sequence::after(0));
        let updater = |updates| Updater { updates, old: None, cookie: None };
        World {
            memory: M::new(&layout()),
            machine: SrcuMachine::with_steps(scenario.delay.function(), start, omission),
            queued: false,
            at: WorkerAt::Next,
            readers: scenario.readers.iter().map(Reader::new).collect(),
            worker: updater(scenario.updates),
            other: updater(u8::from(scenario.other_updater)),
            objects: 1,
            freed: [false; OBJECTS],
        }
    }

    /// One of each reader, and its migration; the worker's, the other updater's; one of each CPU's
    /// memory.
    fn steps(&self) -> u16 {
        (2 * self.scenario.readers.len() + 2 + CPUS + 2) as u16
    }

    fn take(&self, world: &mut World<M>, step: u16, by: By<'_>) -> Outcome {
        let (step, readers) = (usize::from(step), self.scenario.readers.len());
        let turn = &mut self.turn(step, by);
        let outcome = match step.checked_sub(2 * readers) {
            None if step < readers => world.read(step, turn),
            None => world.migrate(step - readers, turn),
            Some(0) => world.work(turn),
            Some(1) => world.other_updates(turn),
            Some(after) => match world.memory.drain(after - 2) {
                None => Outcome::Blocked,
                Some((at, value)) => {
                    let cpu = after - 2;
                    turn.tell(|| format!("cpu {cpu}: its store {} = {value} is seen", name(at)));
                    Outcome::Moved
                }
            },
        };
        let is_read = !world.readers.iter().all(Reader::is_done);
        let cpus = if is_read { (1 << CPUS) - 1 } else { 0 };
        world.memory.settle(cpus | 1 << WORKER | 1 << OTHER);
        outcome
    }

    fn is_end(&self, world: &World<M>) -> bool {
        world.readers.iter().all(Reader::is_done)
            && World::<M>::is_done(&world.worker)
            && World::<M>::is_done(&world.other)
            && world.machine.pending() == Action::Idle
    }
}

impl<M: Memory> World<M> {
    fn is_done(updater: &Updater) -> bool {
        updater.updates == 0 && updater.old.is_none()
    }

    fn tell_machine(&mut self, event: Event) {
        self.machine.observe(event).expect("it answers the pending action");
    }

    fn work(&mut self, turn: &mut Turn<'_>) -> Outcome {
        match self.at {
            WorkerAt::Next => {}
            WorkerAt::Sum { second, cpu, counts } => return self.sum(second, cpu, counts, turn),
            WorkerAt::FenceA { counts } => {
                turn.tell(|| "worker: fence A".into());
                if !turn.is(Mutant::NoFenceA) && !turn.is(Mutant::NoFenceOfWorker) {
                    self.memory.fence(WORKER);
                }
                self.at = WorkerAt::Sum { second: true, cpu: 0, counts };
                return Outcome::Moved;
            }
            WorkerAt::Store => return self.store_index(turn),
            WorkerAt::FenceD => {
                turn.tell(|| "worker: fence D".into());
                if !turn.is(Mutant::NoFenceD) && !has_plain_flip(turn) {
                    self.memory.fence(WORKER);
                }
                self.at = WorkerAt::Next;
                self.tell_machine(Event::Flipped);
                return Outcome::Moved;
            }
        }
        let action = self.machine.pending();
        let is_handed_out = !matches!(action, Action::HandOut { .. });
        let done = |cookie| self.machine.sequence().is_done(cookie);
        if is_handed_out && self.worker.cookie.is_some_and(done) {
            return self.free(WORKER, turn);
        }
        if action == Action::Idle {
            return self.update(WORKER, turn);
        }
        self.drive(action, turn)
    }

    fn drive(&mut self, action: Action, turn: &mut Turn<'_>) -> Outcome {
        match action {
            Action::Idle => return Outcome::Blocked,
            Action::Queue(_) => {
                turn.tell(|| "worker: is queued".into());
                self.queued = true;
                self.tell_machine(Event::Queued);
            }
            Action::Await => {
                if !core::mem::take(&mut self.queued) {
                    return Outcome::Blocked;
                }
                turn.tell(|| "worker: runs".into());
                if turn.scenario.other_updater {
                    self.memory.lock(WORKER, Lock::Machine);
                }
                self.tell_machine(Event::Runs);
            }
            Action::Check { .. } => {
                turn.tell(|| "worker: begins to sum".into());
                self.at = WorkerAt::Sum { second: false, cpu: 0, counts: [0; CPUS] };
            }
            Action::Spin { .. } => {
                turn.tell(|| "worker: spins".into());
                self.tell_machine(Event::Spun);
            }
            Action::Flip { .. } => {
                turn.tell(|| "worker: fence E".into());
                if !turn.is(Mutant::NoFenceE) && !has_plain_flip(turn) {
                    self.memory.fence(WORKER);
                }
                self.at = WorkerAt::Store;
            }
            Action::HandOut { sequence, .. } => {
                turn.tell(|| format!("worker: completed = {}", sequence.ended()));
                self.memory.store(WORKER, Location::Completed, sequence.to_bits(), Release);
                self.tell_machine(Event::HandedOut);
            }
        }
        Outcome::Moved
    }

    /// Loads one count. Unlocks are summed first, as negative numbers; then locks.
    fn sum(
        &mut self,
        second: bool,
        cpu: u8,
        mut counts: [i8; CPUS],
        turn: &mut Turn<'_>,
    ) -> Outcome {
        let Action::Check { index } = self.machine.pending() else { return Outcome::Blocked };
        let is_lock = second != turn.is(Mutant::LocksFirst);
        let at = if is_lock { lock_count(index, cpu) } else { unlock_count(index, cpu) };
        let value = self.memory.load(WORKER, at, Relaxed, turn.choice) as i8;
        turn.tell(|| format!("worker: load {}: {value}", name(at)));
        counts[usize::from(cpu)] += if is_lock { value } else { -value };
        let is_last = usize::from(cpu) + 1 == CPUS || turn.is(Mutant::FirstCpuOnly);
        self.at = match (is_last, second) {
            (false, _) => WorkerAt::Sum { second, cpu: cpu + 1, counts },
            (true, false) => WorkerAt::FenceA { counts },
            (true, true) => WorkerAt::Next,
        };
        if is_last && second {
            let drained = if turn.is(Mutant::EachCpuByItself) {
                counts == [0; CPUS]
            } else {
                counts.iter().sum::<i8>() == 0
            };
            self.tell_machine(Event::Checked { drained });
        }
        Outcome::Moved
    }

    fn store_index(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let Action::Flip { to } = self.machine.pending() else { return Outcome::Blocked };
        turn.tell(|| format!("worker: srcu_idx = {to}"));
        self.memory.store(WORKER, INDEX, u64::from(to), Relaxed);
        self.at = WorkerAt::FenceD;
        Outcome::Moved
    }

    fn updater(&mut self, me: usize) -> &mut Updater {
        if me == WORKER { &mut self.worker } else { &mut self.other }
    }

    /// Publishes a new object, and then requests a grace period for the old one.
    fn update(&mut self, me: usize, turn: &mut Turn<'_>) -> Outcome {
        let updater = *self.updater(me);
        if updater.old.is_some() {
            turn.tell(|| format!("cpu {me}: requests a grace period"));
            if turn.scenario.other_updater {
                self.memory.lock(me, Lock::Machine);
            }
            let cookie = self.machine.request(Urgency::Expedited);
            if turn.scenario.other_updater {
                self.memory.unlock(me, Lock::Machine);
            }
            self.updater(me).cookie = Some(cookie);
            return Outcome::Moved;
        }
        if updater.updates == 0 {
            return Outcome::Blocked;
        }
        let new = self.objects;
        self.objects += 1;
        self.memory.initialise(me, new);
        let old = if turn.scenario.other_updater {
            self.memory.update(me, Location::Pointer, AcqRel, |_| u64::from(new)) as u8
        } else {
            self.memory.store(me, Location::Pointer, u64::from(new), Release);
            new - 1
        };
        turn.tell(|| format!("cpu {me}: publishes object {new} in place of {old}"));
        let updater = self.updater(me);
        (updater.old, updater.updates) = (Some(old), updater.updates - 1);
        Outcome::Moved
    }

    fn free(&mut self, me: usize, turn: &mut Turn<'_>) -> Outcome {
        let updater = self.updater(me);
        updater.cookie = None;
        let Some(old) = updater.old.take() else { return Outcome::Blocked };
        turn.tell(|| format!("cpu {me}: frees object {old}"));
        if let Some(cpu) = self.memory.racing_reader(me, old) {
            let what = format!("object {old} is freed while cpu {cpu} may still be reading it");
            return Outcome::Violation(what);
        }
        self.freed[usize::from(old)] = true;
        Outcome::Moved
    }

    fn other_updates(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let Some(cookie) = self.other.cookie else { return self.update(OTHER, turn) };
        let done = |bits| Sequence::from_bits(bits).is_done(cookie);
        if !self.memory.may_load(OTHER, Location::Completed, done) {
            return Outcome::Blocked;
        }
        self.memory.skip_to(OTHER, Location::Completed, done);
        self.memory.load(OTHER, Location::Completed, Acquire, turn.choice);
        self.free(OTHER, turn)
    }
}

/// The memory's locations under the names that they have here.
fn name(at: Location) -> String {
    let split = |slot: u8| (slot / CPUS as u8, slot % CPUS as u8);
    match at {
        Location::GpCtr => "srcu_idx".into(),
        Location::Word(slot) => format!("lock[{}][{}]", split(slot).0, split(slot).1),
        Location::Attention(slot) => format!("unlock[{}][{}]", split(slot).0, split(slot).1),
        other => other.to_string(),
    }
}
