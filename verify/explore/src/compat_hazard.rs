//! Hazard pointers of `compat`: what is protected is not reclaimed, and what is retired is looked
//! at.
//!
//! Transcribed from `compat/include/hazard_pointer` (the reader), `compat/src/hazard.rs` and
//! `hazard/runner.rs`. One updater retires what it replaces, and the runner reclaims. A place is a
//! `word` here, the stack of what is retired a set of bits: it is taken as a whole, and who finds
//! it empty is what matters.
//!
//! ```text
//! reader:   p = src (Relaxed)
//!           place = p (Release); light fence; q = src (Acquire)                  [HP-1]
//!           q = p? read it; place = none (Release)                               [HP-2]
//!           else p = q, and again
//! updater:  old = exchange(src, new, AcqRel)
//!           before = retired, with old added (Release); if before was empty:      [HP-3]
//!              exchange(state, WANTED, AcqRel); was it ASLEEP? wake
//! runner:   exchange(state, LOOKING, AcqRel)                                       [HP-3]
//!           mine = what was kept, and exchange(retired, none, Acquire)
//!           is there any? heavy fence                                            [HP-1]
//!              each place (Acquire): what it names is kept                         [HP-2]
//!              the others are freed
//!           compare-exchange(state, LOOKING, ASLEEP): else again; sleep while ASLEEP
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::choice::Choice;
use crate::explore::{Model, Verdict};
use crate::harness::{self, World as Harnessed};
use crate::memory::{LOCATIONS, Layout, Location, Memory, OBJECTS};
use crate::program::{self, Program, Threads};
use crate::system::Outcome;

const READERS_MAX: usize = 2;
const UPDATER: usize = READERS_MAX;
const RUNNER: usize = READERS_MAX + 1;

const SOURCE: Location = Location::Pointer;
const RETIRED: Location = Location::Variable(0);
const STATE: Location = Location::Wake;

/// In a place: no object. Objects have their number plus one there.
const NONE: u64 = 0;

const ASLEEP: u64 = 1;
const LOOKING: u64 = 2;
const WANTED: u64 = 3;

/// Which thread does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// How often each reader protects and reads; at most two readers.
    pub reads: [u8; READERS_MAX],
    /// How often the object is replaced.
    pub updates: u8,
    /// Whether all fences are the CPU's own, as without membarrier.
    pub portable: bool,
}

/// A step that is left out or weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// The runner executes no fence.
    NoHeavyFence,
    /// It executes one that reaches no reader.
    OwnFenceOnly,
    /// Without membarrier, the reader executes none.
    NoReaderFence,
    /// The reader does not scan again.
    NoSecondLoad,
    /// The runner looks at the first place only.
    FirstPlaceOnly,
    /// It looks at the places before its fence.
    PlacesBeforeFence,
    /// A protection ends, and begins, by a relaxed store.
    RelaxedPlace,
    /// The runner looks at places by relaxed loads.
    RelaxedLook,
    /// It takes the stack by a relaxed exchange.
    RelaxedTake,
    /// The thread that retires pushes by a relaxed exchange.
    RelaxedPush,
    /// The thread that retires onto an empty stack asks for nothing.
    NoWake,
    /// The runner falls asleep by a plain store.
    BlindSleep,
}

/// What is known about a mutant.
pub type Fault = harness::Fault<Mutant>;

harness::faults! {
    NoHeavyFence Unsafe Both "two-readers"
        "the reader's place is in its store buffer while the runner looks";
    OwnFenceOnly Unsafe Both "two-readers" "the same";
    NoReaderFence Unsafe Both "portable-two-readers" "the same";
    NoSecondLoad Unsafe Both "two-readers"
        "the object was retired, and looked at, before the place named it";
    FirstPlaceOnly Unsafe Both "two-readers" "the second reader is overlooked";
    PlacesBeforeFence Unsafe Both "two-readers" "a place is stored after the look";
    RelaxedPlace Unsafe WeakOnly "two-readers" "nothing orders a read before the free";
    RelaxedLook Unsafe WeakOnly "two-readers" "the same";
    NoWake Unsafe Both "two-readers" "what was retired is not looked at";
    BlindSleep Unsafe Both "three-updates" "the runner misses what came meanwhile";
    RelaxedPush Unsafe WeakOnly "two-reads"
        "the runner frees an object of which it has not seen all";
    RelaxedTake Harmless Neither "two-readers" "the heavy fence is an acquire fence as well";
}

/// Where a reader stands; with what it believes to be published, as it stands in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reader {
    Begin,
    Protect(u64),
    Fence(u64),
    Again(u64),
    Read(u64),
    End,
    Unprotect(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Updater {
    Publish,
    Retire(u8),
    Want,
    Wake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Runner {
    Begin,
    Take,
    /// The readers that the heavy fence has not reached yet.
    Fence(u8),
    Place(u8),
    Free,
    Rest,
    Sleep,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World<M> {
    memory: M,
    readers: [(Reader, u8); READERS_MAX],
    updater: (Updater, u8),
    objects: u8,
    runner: Runner,
    woken: bool,
    /// Sets of objects: in the runner's hands; of these, protected; kept since the last look;
    /// freed.
    mine: u8,
    protected: u8,
    kept: u8,
    freed: u8,
}

type System<M> = Program<M, Scenario, Mutant>;

impl<M: Memory> System<M> {
    fn read(&self, world: &mut World<M>, me: usize, choice: &mut Choice) -> Outcome {
        let (at, left) = world.readers[me];
        let place = Location::Word(me as u8);
        let order = self.unless(Mutant::RelaxedPlace, Release);
        let memory = &mut world.memory;
        let next = match at {
            Reader::Begin if left == 0 => return Outcome::Blocked,
            Reader::Begin => Reader::Protect(memory.load(me, SOURCE, Relaxed, choice) + 1),
            Reader::Protect(object) => {
                memory.store(me, place, object, order);
                Reader::Fence(object)
            }
            Reader::Fence(object) => {
                if self.scenario.portable && !self.is(Mutant::NoReaderFence) {
                    memory.fence(me);
                }
                if self.is(Mutant::NoSecondLoad) {
                    Reader::Read(object)
                } else {
                    Reader::Again(object)
                }
            }
            Reader::Again(object) => {
                let found = memory.load(me, SOURCE, Acquire, choice) + 1;
                if found == object { Reader::Read(object) } else { Reader::Unprotect(found) }
            }
            Reader::Unprotect(next) => {
                memory.store(me, place, NONE, order);
                Reader::Protect(next)
            }
            Reader::Read(object) => {
                let object = object as u8 - 1;
                if world.freed & 1 << object != 0 {
                    return Outcome::Violation(format!(
                        "object {object} is read after it was freed"
                    ));
                }
                if !memory.read_object(me, object) {
                    let what = format!("object {object} is read before it is initialised");
                    return Outcome::Violation(what);
                }
                Reader::End
            }
            Reader::End => {
                memory.store(me, place, NONE, order);
                world.readers[me] = (Reader::Begin, left - 1);
                return Outcome::Moved;
            }
        };
        world.readers[me] = (next, left);
        Outcome::Moved
    }

    fn update(&self, world: &mut World<M>) -> Outcome {
        let (at, left) = world.updater;
        let memory = &mut world.memory;
        let next = match at {
            Updater::Publish if left == 0 => return Outcome::Blocked,
            Updater::Publish => {
                let new = world.objects;
                world.objects += 1;
                memory.initialise(UPDATER, new);
                let old = memory.update(UPDATER, SOURCE, AcqRel, |_, by| by, u64::from(new));
                Updater::Retire(old as u8)
            }
            Updater::Retire(object) => {
                let order = self.unless(Mutant::RelaxedPush, Release);
                let bit = 1 << object;
                let before = memory.update(UPDATER, RETIRED, order, |old, by| old | by, bit);
                if before == 0 && !self.is(Mutant::NoWake) {
                    Updater::Want
                } else {
                    world.updater = (Updater::Publish, left - 1);
                    return Outcome::Moved;
                }
            }
            Updater::Want
                if memory.update(UPDATER, STATE, AcqRel, |_, by| by, WANTED) == ASLEEP =>
            {
                Updater::Wake
            }
            Updater::Want | Updater::Wake => {
                world.woken |= at == Updater::Wake;
                world.updater = (Updater::Publish, left - 1);
                return Outcome::Moved;
            }
        };
        world.updater = (next, left);
        Outcome::Moved
    }

    fn run(&self, world: &mut World<M>, choice: &mut Choice) -> Outcome {
        let readers = (1_u8 << READERS_MAX) - 1;
        let memory = &mut world.memory;
        world.runner = match world.runner {
            Runner::Begin => {
                memory.update(RUNNER, STATE, AcqRel, |_, by| by, LOOKING);
                Runner::Take
            }
            Runner::Take => {
                let order = self.unless(Mutant::RelaxedTake, Acquire);
                let taken = memory.update(RUNNER, RETIRED, order, |_, by| by, 0) as u8;
                world.mine = taken | core::mem::take(&mut world.kept);
                world.protected = 0;
                if world.mine == 0 {
                    Runner::Rest
                } else if self.is(Mutant::PlacesBeforeFence) {
                    Runner::Place(0)
                } else {
                    self.begin_fence(memory, readers)
                }
            }
            Runner::Fence(0) => {
                if !self.scenario.portable {
                    memory.heavy_end(RUNNER);
                }
                if self.is(Mutant::PlacesBeforeFence) { Runner::Free } else { Runner::Place(0) }
            }
            Runner::Fence(left) => {
                let which = choice.choose(left.count_ones() as usize);
                let reader = (0..READERS_MAX).filter(|one| left & 1 << one != 0).nth(which);
                let reader = reader.expect("as many as there are to choose from");
                memory.heavy_arrives(RUNNER, reader);
                Runner::Fence(left & !(1 << reader))
            }
            Runner::Place(reader) => {
                let order = self.unless(Mutant::RelaxedLook, Acquire);
                let found = memory.load(RUNNER, Location::Word(reader), order, choice);
                if found != NONE {
                    world.protected |= world.mine & 1 << (found - 1);
                }
                let is_last = usize::from(reader) + 1 == READERS_MAX;
                if !is_last && !self.is(Mutant::FirstPlaceOnly) {
                    Runner::Place(reader + 1)
                } else if self.is(Mutant::PlacesBeforeFence) {
                    self.begin_fence(memory, readers)
                } else {
                    Runner::Free
                }
            }
            Runner::Free => {
                world.kept = world.mine & world.protected;
                let gone = world.mine & !world.protected;
                let racing = (0..OBJECTS as u8).filter(|object| gone & 1 << object != 0);
                let mut racing = racing
                    .filter_map(|object| Some((object, memory.racing_reader(RUNNER, object)?)));
                if let Some((object, reader)) = racing.next() {
                    return Outcome::Violation(format!(
                        "object {object} is freed while reader {reader} may still be reading it"
                    ));
                }
                world.freed |= gone;
                world.mine = 0;
                Runner::Rest
            }
            Runner::Rest => {
                let asleep = |old, _| if old == LOOKING { ASLEEP } else { old };
                if self.is(Mutant::BlindSleep) {
                    memory.update(RUNNER, STATE, AcqRel, |_, by| by, ASLEEP);
                    Runner::Sleep
                } else if memory.update(RUNNER, STATE, AcqRel, asleep, 0) == LOOKING {
                    Runner::Sleep
                } else {
                    Runner::Begin
                }
            }
            // The futex compares once, and then waits for the wake-up of the thread that found it
            // asleep.
            Runner::Sleep if world.woken => {
                world.woken = false;
                Runner::Begin
            }
            Runner::Sleep => return Outcome::Blocked,
        };
        Outcome::Moved
    }

    fn begin_fence(&self, memory: &mut M, readers: u8) -> Runner {
        if self.is(Mutant::NoHeavyFence) {
            return if self.is(Mutant::PlacesBeforeFence) {
                Runner::Free
            } else {
                Runner::Place(0)
            };
        }
        if self.scenario.portable {
            memory.fence(RUNNER);
            return Runner::Fence(0);
        }
        memory.heavy_begin(RUNNER);
        Runner::Fence(if self.is(Mutant::OwnFenceOnly) { 0 } else { readers })
    }
}

impl<M: Memory> Threads for System<M> {
    type Memory = M;
    type World = World<M>;

    const NAMES: &'static [&'static str] = &["reader 0", "reader 1", "updater", "runner"];

    fn first(&self) -> World<M> {
        assert!(usize::from(self.scenario.updates) < OBJECTS, "each update has an object");
        let mut initial = [0; LOCATIONS];
        initial[STATE.index()] = ASLEEP;
        let mut loaders = [0; LOCATIONS];
        loaders[SOURCE.index()] = (1 << READERS_MAX) - 1;
        for reader in 0..READERS_MAX as u8 {
            loaders[Location::Word(reader).index()] = 1 << RUNNER;
        }
        World {
            memory: M::new(&Layout { threads: RUNNER + 1, initial, loaders }),
            readers: self.scenario.reads.map(|reads| (Reader::Begin, reads)),
            updater: (Updater::Publish, self.scenario.updates),
            objects: 1,
            runner: Runner::Sleep,
            woken: false,
            mine: 0,
            protected: 0,
            kept: 0,
            freed: 0,
        }
    }

    fn memory(world: &mut World<M>) -> &mut M {
        &mut world.memory
    }

    fn step(&self, world: &mut World<M>, me: usize, choice: &mut Choice) -> Outcome {
        match me {
            UPDATER => self.update(world),
            RUNNER => self.run(world, choice),
            _ => self.read(world, me, choice),
        }
    }

    fn active(&self, _world: &World<M>) -> u8 {
        (1 << (RUNNER + 1)) - 1
    }

    fn tell(&self, world: &World<M>) -> String {
        format!("{:?} {:?} {:?}", world.readers, world.updater, world.runner)
    }

    fn is_end(&self, world: &World<M>) -> bool {
        let done = |(at, left): (Reader, u8)| at == Reader::Begin && left == 0;
        world.readers.into_iter().all(done)
            && world.updater == (Updater::Publish, 0)
            && world.runner == Runner::Sleep
            && !world.woken
    }

    /// What is protected when it is looked at waits for the next one that is retired, and is kept.
    fn fault(&self, world: &World<M>) -> Option<String> {
        let seen = world.freed | world.kept;
        let retired = ((1_u16 << self.scenario.updates) - 1) as u8;
        (seen != retired).then(|| format!("objects {:#b} are never looked at", retired & !seen))
    }
}

/// Hazard pointers, as a world.
#[derive(Clone, Copy, Debug)]
pub struct Hazard;

impl Harnessed for Hazard {
    type Mutant = Mutant;
    type Scenario = Scenario;

    const FAULTS: &'static [Fault] = FAULTS;
    const PREFIX: &'static str = "compat-hazard-";

    fn scenarios() -> Vec<Scenario> {
        let of = |name, reads, updates, portable| Scenario { name, reads, updates, portable };
        vec![
            of("two-readers", [1, 1], 1, false),
            of("two-reads", [2, 0], 2, false),
            of("three-updates", [0, 1], 3, false),
            of("portable-two-readers", [1, 1], 1, true),
            of("portable-two-reads", [2, 0], 2, true),
            of("portable-three-updates", [0, 1], 3, true),
        ]
    }

    fn scenario_name(scenario: &Scenario) -> &str {
        scenario.name
    }

    fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
        program::explore(*scenario, model, mutant, limit)
    }
}
