//! The whole state, and the threads that reclaim.
//!
//! ```text
//! updater:  old = exchange(src, new, AcqRel); old is added to the batch
//!           the batch is closed: its cookie is one more than was requested (AcqRel)
//!           completed >= cookie (Acquire)? or it drives the grace period itself      [HP-1]
//!           the list of blocks (Acquire), each slot (Acquire): what it names is kept  [HP-2]
//!           the others: count -= 1 (AcqRel): was it 1? free
//!           what is kept is added to the shared queue (Release)                       [HP-3]
//! driver:   requested > completed (Acquire)? heavy fence; completed (Release)         [HP-1]
//! worker:   takes the shared queue (Acquire)                                          [HP-3]
//!           each slot again, with no fence (Acquire), until it keeps none             [HP-2]
//! ```

use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Release};

use super::fault::Mutant;
use super::reader::{At, Reader};
use super::runner::{ASLEEP, Runner, STATE, Updater as Retirer};
use super::{Driver, Op, READERS, SLOTS, Scenario};
use crate::choice::Choice;
use crate::memory::{LOCATIONS, Layout, Location, Memory, OBJECTS};
use crate::program::{self, Program};
use crate::system::{self, By, Outcome};

pub(super) const UPDATER: usize = READERS;
/// Or the runner, which is in its place.
pub(super) const WORKER: usize = READERS + 1;
const THREADS: usize = READERS + 2;
/// The second reader, where it has nothing to read and drives.
const THIRD: usize = READERS - 1;

pub(super) const SOURCE: Location = Location::Pointer;
/// References to the first object: that of the place, and those that readers have.
pub(super) const COUNT: Location = Location::Variable(0);
/// Which blocks are in the list.
pub(super) const BLOCKS: Location = Location::Variable(1);
/// A guard on its way from one reader to the other.
pub(super) const CHANNEL: Location = Location::Variable(2);
/// What is protected, on its way to the worker.
const SHARED: Location = Location::Variable(3);
const REQUESTED: Location = Location::GpCtr;
const COMPLETED: Location = Location::Completed;

/// In a slot: no object. Objects have their number plus one there.
pub(super) const NONE: u64 = 0;

/// A slot of a block.
pub(super) fn slot(block: u8, number: u8) -> Location {
    if number == 0 { Location::Word(block) } else { Location::Attention(block) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Updater {
    Begin,
    Publish,
    Add(u8),
    Close,
    /// It drives the grace period itself: the readers that the fence has not reached yet.
    Fence(u8),
    Wait,
    Scan(Scan),
    Sort,
}

/// The thread that executes the fence, if the updater does not, with the number that it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Driving {
    Idle,
    Begin(u64),
    Fence(u64, u8),
    Complete(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Worker {
    Idle,
    Scan(Scan),
    Sort,
}

/// How far a scan has come: from the last slot to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scan {
    Blocks,
    Slots(u8, u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World<M> {
    pub(super) memory: M,
    pub(super) readers: [Reader; READERS],
    updater: Updater,
    driving: Driving,
    worker: Worker,
    pub(super) retirer: Retirer,
    pub(super) runner: Runner,
    /// Whether the runner was woken.
    pub(super) woken: bool,
    /// How many objects were made, and which of them were freed.
    pub(super) objects: u8,
    freed: u8,
    /// Sets of objects: the batch of the updater, or runner, and what its scan has found; the same
    /// of the worker. The runner keeps what it has found.
    pub(super) batch: u8,
    pub(super) found: u8,
    pub(super) kept: u8,
    found_again: u8,
    cookie: u64,
    /// The blocks of which the updater knows, if it took the list early.
    blocks: u8,
}

pub(super) type System<M> = Program<M, Scenario, Mutant>;

impl<M: Memory> World<M> {
    /// A thread looks into an object that it has a guard of, or a reference to.
    pub(super) fn access(&mut self, me: usize, object: u8) -> Option<String> {
        if self.freed & 1 << object != 0 {
            return Some(format!("object {object} is read after it was freed"));
        }
        let is_whole = self.memory.read_object(me, object);
        (!is_whole).then(|| format!("object {object} is read before it is initialised"))
    }

    /// Replaces the object by a new one. Returns the old one.
    pub(super) fn publish(&mut self) -> u8 {
        let new = self.objects;
        self.objects += 1;
        self.memory.initialise(UPDATER, new);
        self.memory.update(UPDATER, SOURCE, AcqRel, |_| u64::from(new)) as u8
    }

    fn free(&mut self, me: usize, object: u8) -> Option<String> {
        if self.freed & 1 << object != 0 {
            return Some(format!("object {object} is freed twice"));
        }
        self.freed |= 1 << object;
        let reader = self.memory.racing_reader(me, object)?;
        Some(format!("object {object} is freed while thread {reader} may still be reading it"))
    }
}

impl<M: Memory> System<M> {
    /// Whether references to the first object are counted.
    fn counts(&self) -> bool {
        self.scenario.readers.iter().any(|ops| ops.contains(&Op::Clone))
    }

    /// Gives back one reference to an object.
    pub(super) fn put(&self, world: &mut World<M>, me: usize, object: u8) -> Option<String> {
        let is_last = object != 0
            || !self.counts()
            || world.memory.update(me, COUNT, AcqRel, |old| old - 1) == 1;
        if is_last { world.free(me, object) } else { None }
    }

    /// Gives back the place's references to these.
    pub(super) fn put_all(&self, world: &mut World<M>, me: usize, objects: u8) -> Outcome {
        let mut each = (0..OBJECTS as u8).filter(|object| objects & 1 << object != 0);
        let fault = each.find_map(|object| self.put(world, me, object));
        fault.map_or(Outcome::Moved, Outcome::Violation)
    }

    fn update(&self, world: &mut World<M>, choice: &mut Choice) -> Outcome {
        let memory = &mut world.memory;
        let is_early = self.is(Mutant::EarlyCookie);
        world.updater = match world.updater {
            Updater::Begin if world.objects > self.scenario.updates => return Outcome::Blocked,
            Updater::Begin => {
                if is_early && world.batch == 0 {
                    world.cookie = memory.update(UPDATER, REQUESTED, AcqRel, |n| n + 1) + 1;
                }
                Updater::Publish
            }
            Updater::Publish => Updater::Add(world.publish()),
            Updater::Add(object) => {
                world.batch |= 1 << object;
                let is_full = world.batch.count_ones() == u32::from(self.scenario.batch);
                match (is_full, is_early) {
                    (false, _) => Updater::Begin,
                    (true, false) => Updater::Close,
                    (true, true) => Updater::Wait,
                }
            }
            Updater::Close => {
                let drives = self.scenario.driver == Driver::Updater;
                if !drives {
                    world.cookie = memory.update(UPDATER, REQUESTED, AcqRel, |n| n + 1) + 1;
                }
                if self.is(Mutant::ScanFirst) || self.is(Mutant::BlocksFirst) {
                    Updater::Scan(Scan::Blocks)
                } else {
                    self.updater_waits(memory)
                }
            }
            Updater::Wait => {
                let cookie = world.cookie;
                if !memory.may_load(UPDATER, COMPLETED, |number| number >= cookie) {
                    return Outcome::Blocked;
                }
                memory.skip_to(UPDATER, COMPLETED, |number| number >= cookie);
                let order = self.unless(Mutant::RelaxedPoll, Acquire);
                memory.load(UPDATER, COMPLETED, order, choice);
                self.waited(world)
            }
            Updater::Fence(left) => match self.fence_step(memory, UPDATER, left, choice) {
                Some(left) => Updater::Fence(left),
                None => self.waited(world),
            },
            Updater::Scan(scan) => {
                let order = self.unless_one_of(&[Mutant::RelaxedScan, Mutant::Release], Acquire);
                match self.scan(memory, UPDATER, order, scan, choice) {
                    (Some(Scan::Slots(blocks, _)), NONE) if self.takes_blocks_first(scan) => {
                        world.blocks = blocks;
                        self.updater_waits(memory)
                    }
                    (next, named) => {
                        world.found |= bit(named);
                        match next {
                            Some(next) => Updater::Scan(next),
                            None if self.is(Mutant::ScanFirst) => self.updater_waits(memory),
                            None => Updater::Sort,
                        }
                    }
                }
            }
            Updater::Sort => {
                let protected = world.batch & core::mem::take(&mut world.found);
                let gone = core::mem::take(&mut world.batch) & !protected;
                if protected != 0 && !self.is(Mutant::KeptLost) {
                    let order = self.unless(Mutant::RelaxedKeep, Release);
                    let by = u64::from(protected);
                    memory.update(UPDATER, SHARED, order, |old| old | by);
                }
                world.updater = Updater::Begin;
                return self.put_all(world, UPDATER, gone);
            }
        };
        Outcome::Moved
    }

    fn takes_blocks_first(&self, scan: Scan) -> bool {
        scan == Scan::Blocks && self.is(Mutant::BlocksFirst)
    }

    /// Waits for the batch's grace period, or begins it.
    fn updater_waits(&self, memory: &mut M) -> Updater {
        match self.scenario.driver {
            Driver::Updater => Updater::Fence(self.begin_fence(memory, UPDATER)),
            _ => Updater::Wait,
        }
    }

    /// What follows the grace period of the batch.
    fn waited(&self, world: &mut World<M>) -> Updater {
        match self.mutant {
            Some(Mutant::ScanFirst) => Updater::Sort,
            Some(Mutant::BlocksFirst) => {
                let blocks = core::mem::take(&mut world.blocks);
                match self.next_slot(blocks, self.slots()) {
                    Some(scan) => Updater::Scan(scan),
                    None => Updater::Sort,
                }
            }
            _ => Updater::Scan(Scan::Blocks),
        }
    }

    /// The thread that drives grace periods, unless that is the updater.
    fn driver(&self) -> Option<usize> {
        match self.scenario.driver {
            Driver::Updater | Driver::Runner => None,
            Driver::Worker => Some(WORKER),
            Driver::Third => Some(THIRD),
        }
    }

    fn drive(&self, world: &mut World<M>, me: usize, choice: &mut Choice) -> Outcome {
        let memory = &mut world.memory;
        world.driving = match world.driving {
            Driving::Idle => {
                let done = memory.newest(COMPLETED);
                if !memory.may_load(me, REQUESTED, |number| number > done) {
                    return Outcome::Blocked;
                }
                memory.skip_to(me, REQUESTED, |number| number > done);
                Driving::Begin(memory.load(me, REQUESTED, Acquire, choice))
            }
            Driving::Begin(number) => Driving::Fence(number, self.begin_fence(memory, me)),
            Driving::Fence(number, left) => match self.fence_step(memory, me, left, choice) {
                Some(left) => Driving::Fence(number, left),
                None => Driving::Complete(number),
            },
            Driving::Complete(number) => {
                let order = self.unless(Mutant::RelaxedComplete, Release);
                memory.update(me, COMPLETED, order, |_| number);
                Driving::Idle
            }
        };
        Outcome::Moved
    }

    fn work(&self, world: &mut World<M>, choice: &mut Choice) -> Outcome {
        let memory = &mut world.memory;
        world.worker = match world.worker {
            Worker::Idle => {
                if world.kept == 0 && memory.newest(SHARED) == 0 {
                    return Outcome::Blocked;
                }
                let order = self.unless(Mutant::RelaxedTake, Acquire);
                world.kept |= memory.update(WORKER, SHARED, order, |_| 0) as u8;
                let is_blind = self.is(Mutant::KeptFreed);
                if is_blind { Worker::Sort } else { Worker::Scan(Scan::Blocks) }
            }
            Worker::Scan(scan) => {
                let order = self.unless_one_of(&[Mutant::RelaxedRescan, Mutant::Release], Acquire);
                let (next, named) = self.scan(memory, WORKER, order, scan, choice);
                world.found_again |= bit(named);
                next.map_or(Worker::Sort, Worker::Scan)
            }
            Worker::Sort => {
                let protected = world.kept & core::mem::take(&mut world.found_again);
                let gone = world.kept & !protected;
                world.kept = protected;
                world.worker = Worker::Idle;
                return self.put_all(world, WORKER, gone);
            }
        };
        Outcome::Moved
    }

    fn slots(&self) -> u8 {
        (READERS * SLOTS) as u8
    }

    /// One step of a scan: what follows it, and what the slot names.
    fn scan(
        &self,
        memory: &mut M,
        me: usize,
        order: Ordering,
        scan: Scan,
        choice: &mut Choice,
    ) -> (Option<Scan>, u64) {
        match scan {
            Scan::Blocks => {
                let blocks = memory.load(me, BLOCKS, Acquire, choice) as u8;
                (self.next_slot(blocks, self.slots()), NONE)
            }
            Scan::Slots(blocks, number) => {
                let at = slot(number / SLOTS as u8, number % SLOTS as u8);
                let named = memory.load(me, at, order, choice);
                (self.next_slot(blocks, number), named)
            }
        }
    }

    /// The slot before this one that a scan looks at.
    fn next_slot(&self, blocks: u8, number: u8) -> Option<Scan> {
        let is_looked_at = |number: &u8| {
            let (block, slot) = (number / SLOTS as u8, number % SLOTS as u8);
            blocks & 1 << block != 0
                && slot < self.scenario.slots
                && !(block > 0 && self.is(Mutant::SkipBlock))
                && !(slot > 0 && self.is(Mutant::SkipSlot))
        };
        let next = (0..number).rev().find(is_looked_at)?;
        Some(Scan::Slots(blocks, next))
    }

    /// The readers that the fence is to reach.
    pub(super) fn begin_fence(&self, memory: &mut M, me: usize) -> u8 {
        let readers = ((1 << READERS) - 1) & !(1 << me);
        match self.mutant {
            Some(Mutant::NoFence) => return 0,
            _ if self.scenario.portable => memory.fence(me),
            _ => memory.heavy_begin(me),
        }
        let reaches = !self.scenario.portable && !self.is(Mutant::OwnFenceOnly);
        if reaches { readers } else { 0 }
    }

    /// The readers that it has not reached yet after one step more, or that it has ended.
    pub(super) fn fence_step(
        &self,
        memory: &mut M,
        me: usize,
        left: u8,
        choice: &mut Choice,
    ) -> Option<u8> {
        if left == 0 {
            if !self.scenario.portable && !self.is(Mutant::NoFence) {
                memory.heavy_end(me);
            }
            return None;
        }
        let reader = choice.one_of(left);
        memory.heavy_arrives(me, reader);
        Some(left & !(1 << reader))
    }

    fn is_done(&self, reader: usize, at: Reader) -> bool {
        at.at == At::Begin && usize::from(at.done) == self.scenario.readers[reader].len()
    }
}

/// What a slot names, as a set.
pub(super) fn bit(named: u64) -> u8 {
    if named == NONE { 0 } else { 1 << (named - 1) }
}

impl<M: Memory> system::System for System<M> {
    type State = World<M>;

    fn first(&self) -> World<M> {
        let scenario = &self.scenario;
        assert!(usize::from(scenario.updates) < OBJECTS, "each update has an object");
        assert_eq!(scenario.updates % scenario.batch, 0, "the last batch is closed");
        let is_free = scenario.driver != Driver::Third || scenario.readers[THIRD].is_empty();
        assert!(is_free, "who drives does nothing else");
        let readers = (1 << READERS) - 1;
        let scanners = if scenario.is_compat() { 1 << WORKER } else { 1 << UPDATER | 1 << WORKER };
        let mut initial = [0; LOCATIONS];
        initial[COUNT.index()] = u64::from(!scenario.is_compat());
        initial[STATE.index()] = if scenario.is_compat() { ASLEEP } else { 0 };
        initial[BLOCKS.index()] = if self.scenario.is_late { 0 } else { readers };
        let mut loaders = [0; LOCATIONS];
        loaders[SOURCE.index()] = readers as u8;
        loaders[CHANNEL.index()] = readers as u8;
        loaders[BLOCKS.index()] = scanners;
        loaders[REQUESTED.index()] = self.driver().map_or(0, |driver| 1 << driver);
        loaders[COMPLETED.index()] = 1 << UPDATER;
        for block in 0..READERS as u8 {
            let owner = if scenario.is_compat() { 0 } else { 1 << block };
            loaders[slot(block, 0).index()] = scanners | owner;
            loaders[slot(block, 1).index()] = scanners | owner;
        }
        World {
            memory: M::new(&Layout { threads: THREADS, initial, loaders }),
            readers: [Reader::FIRST; READERS],
            updater: Updater::Begin,
            driving: Driving::Idle,
            worker: Worker::Idle,
            retirer: Retirer::Publish,
            runner: Runner::Sleep,
            woken: false,
            objects: 1,
            freed: 0,
            batch: 0,
            found: 0,
            kept: 0,
            found_again: 0,
            cookie: 0,
            blocks: 0,
        }
    }

    /// One of each thread, and one of each thread's memory; and that of who drives.
    fn steps(&self) -> u16 {
        2 * THREADS as u16 + 1
    }

    fn take(&self, world: &mut World<M>, step: u16, by: By<'_>) -> Outcome {
        let is_drive = step == 2 * THREADS as u16;
        let (me, is_drain) = match self.driver() {
            Some(driver) if is_drive => (driver, false),
            None if is_drive => return Outcome::Blocked,
            _ => (usize::from(step / 2), step % 2 == 1),
        };
        // A worker that drives does one after the other.
        let is_busy = self.driver() == Some(WORKER)
            && if is_drive { world.worker != Worker::Idle } else { world.driving != Driving::Idle };
        let outcome = match me {
            _ if is_drain => program::drain(&mut world.memory, me),
            WORKER if is_busy => Outcome::Blocked,
            UPDATER if self.scenario.is_compat() => self.retire(world, world.retirer),
            WORKER if self.scenario.is_compat() => self.run(world, by.choice),
            _ if is_drive => self.drive(world, me, by.choice),
            UPDATER => self.update(world, by.choice),
            WORKER => self.work(world, by.choice),
            _ => self.read(world, me, by.choice),
        };
        let is_done = |reader: usize| {
            self.driver() != Some(reader) && self.is_done(reader, world.readers[reader])
        };
        let readers = (0..READERS).filter(|reader| !is_done(*reader));
        let active =
            readers.fold(1 << UPDATER | 1 << WORKER, |active, reader| active | 1 << reader);
        world.memory.settle(active);
        if let Some(told) = by.told {
            let thread = ["reader 0", "reader 1", "updater", "worker"][me];
            let memory = program::seen(is_drain);
            let World { readers: [first, second], updater, driving, worker, .. } = &world;
            let World { retirer, runner, .. } = &world;
            let rest = match self.scenario.is_compat() {
                true => format!("{retirer:?} {runner:?}"),
                false => format!("{updater:?} {driving:?} {worker:?}"),
            };
            *told = format!("{thread}{memory}: {first:?} {second:?} {rest}");
        }
        outcome
    }

    fn is_end(&self, world: &World<M>) -> bool {
        let mut readers = world.readers.iter().enumerate();
        let are_idle = if self.scenario.is_compat() {
            world.retirer == Retirer::Publish && world.runner == Runner::Sleep && !world.woken
        } else {
            world.updater == Updater::Begin
                && world.driving == Driving::Idle
                && world.worker == Worker::Idle
                && world.kept == 0
                && world.memory.newest(SHARED) == 0
        };
        are_idle
            && world.objects > self.scenario.updates
            && readers.all(|(number, reader)| self.is_done(number, *reader))
    }

    /// Of compat what is protected when it is looked at waits for the next one that is retired.
    fn fault(&self, world: &World<M>) -> Option<String> {
        let seen = world.freed | world.kept;
        let left = ((1 << self.scenario.updates) - 1) & !seen;
        (left != 0).then(|| format!("objects {left:#b} are never freed"))
    }
}
