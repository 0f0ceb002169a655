//! Readers and writers of a sequence lock, and of a latch.
//!
//! A copy is two variables. Each write has a number, and both words of its value are that number;
//! a reader that gets two different ones, or an older value than it had before, is what is looked
//! for. Of a pinned reader it is asked as well whether its reads are ordered before the write that
//! follows: each copy is an object of the memory to that end.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::Mutant;
use crate::choice::Choice;
use crate::memory::{LOCATIONS, Layout, Location, Lock, Memory};
use crate::program::{Program, Threads};
use crate::system::Outcome;

/// Threads 0 and 1 write, 2 and 3 read.
const WRITERS: usize = 2;
const READERS: usize = 2;

const SEQUENCE: Location = Location::GpCtr;
const PINS: Location = Location::Wake;

fn word(copy: u8, word: u8) -> Location {
    Location::Variable(2 * copy + word)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    SeqLock,
    Latch,
}

/// Where a writer stands: at which copy, with which sequence before its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Writer {
    Lock,
    Load,
    /// The number that announces the write of a copy.
    Announce(u8, u64),
    Pins(u8, u64),
    Word(u8, u8, u64),
    Even(u64),
    Unlock,
}

/// Where a reader stands; with the sequence that it has loaded, and the first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reader {
    Begin,
    First(u64),
    Second(u64, u64),
    Again(u64, u64, u64),
    /// A sequence lock: under the writers' lock.
    Lock,
    Locked,
    LockedSecond(u64),
    Unlock(u64, u64),
    /// A latch: pinned.
    Pin,
    PinFence,
    PinnedSequence,
    PinnedFirst(u8),
    PinnedSecond(u8, u64),
    Unpin(u64, u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World<M> {
    memory: M,
    held: Option<u8>,
    /// The number of the write under the lock, or of the last one.
    number: u64,
    writers: [(Writer, u8); WRITERS],
    /// With the newest value that each has read.
    readers: [(Reader, u8, u64); READERS],
}

/// How often each thread writes, or reads.
pub(super) struct Words {
    pub(super) kind: Kind,
    pub(super) writes: [u8; WRITERS],
    pub(super) reads: [u8; READERS],
}

type System<M> = Program<M, Words, Mutant>;

impl<M: Memory> System<M> {
    fn write(&self, world: &mut World<M>, me: usize, choice: &mut Choice) -> Outcome {
        let (at, left) = world.writers[me];
        let (memory, number) = (&mut world.memory, world.number);
        let next = match at {
            Writer::Lock if left == 0 || world.held.is_some() => return Outcome::Blocked,
            Writer::Lock => {
                world.held = Some(me as u8);
                world.number += 1;
                memory.lock(me, Lock::Machine);
                Writer::Load
            }
            Writer::Load => Writer::Announce(0, memory.load(me, SEQUENCE, Relaxed, choice)),
            Writer::Announce(copy, before) if self.scenario.kind == Kind::SeqLock => {
                if !self.is(Mutant::SeqNoOdd) {
                    memory.update(me, SEQUENCE, Acquire, |_| before + 1);
                }
                if !self.is(Mutant::SeqNoWriterFence) {
                    memory.release_fence(me);
                }
                Writer::Word(copy, 0, before)
            }
            Writer::Announce(copy, before) => {
                if self.is(Mutant::LatchCopyFirst) {
                    memory.store(me, word(copy, 0), number, Relaxed);
                }
                if self.is(Mutant::LatchNoFence) {
                    memory.store(me, SEQUENCE, before + 1, Release);
                } else {
                    let order = self.unless(Mutant::LatchRelaxedStep, Release);
                    memory.update(me, SEQUENCE, order, |_| before + 1);
                    memory.fence(me);
                }
                Writer::Pins(copy, before + 1)
            }
            Writer::Pins(copy, before) => {
                let order = self.unless(Mutant::LatchRelaxedLook, Acquire);
                if !self.is(Mutant::LatchNoPins) {
                    if memory.load(me, PINS, order, choice) != 0 {
                        return Outcome::Moved; // and loads the pins anew
                    }
                    if let Some(reader) = memory.racing_reader(me, copy) {
                        let reader = reader - WRITERS;
                        return Outcome::Violation(format!(
                            "copy {copy} is written while reader {reader} may still be reading it"
                        ));
                    }
                }
                Writer::Word(copy, 0, before)
            }
            Writer::Word(copy, which, before) => {
                memory.store(me, word(copy, which), number, Relaxed);
                match (which, self.scenario.kind, copy) {
                    (0, ..) => Writer::Word(copy, 1, before),
                    (_, Kind::SeqLock, _) => Writer::Even(before + 2),
                    (_, Kind::Latch, 0) => Writer::Announce(1, before),
                    (_, Kind::Latch, _) => Writer::Unlock,
                }
            }
            Writer::Even(even) => {
                memory.store(me, SEQUENCE, even, self.unless(Mutant::SeqRelaxedEven, Release));
                Writer::Unlock
            }
            Writer::Unlock => {
                memory.unlock(me, Lock::Machine);
                world.held = None;
                world.writers[me] = (Writer::Lock, left - 1);
                return Outcome::Moved;
            }
        };
        world.writers[me] = (next, left);
        Outcome::Moved
    }

    /// The copy that a reader takes.
    fn copy(&self, sequence: u64) -> u8 {
        if self.scenario.kind == Kind::Latch { (sequence & 1) as u8 } else { 0 }
    }

    fn read(&self, world: &mut World<M>, number: usize, choice: &mut Choice) -> Outcome {
        let me = WRITERS + number;
        let (at, left, newest) = world.readers[number];
        let memory = &mut world.memory;
        let load = |memory: &mut M, copy, which, choice: &mut Choice| {
            memory.load(me, word(copy, which), Relaxed, choice)
        };
        let next = match at {
            Reader::Begin if left == 0 => return Outcome::Blocked,
            Reader::Begin => {
                let mutant = self.of_kind(Mutant::SeqRelaxedFirst, Mutant::LatchRelaxedFirst);
                Reader::First(memory.load(me, SEQUENCE, self.unless(mutant, Acquire), choice))
            }
            Reader::First(before) => {
                Reader::Second(before, load(memory, self.copy(before), 0, choice))
            }
            Reader::Second(before, first) => {
                let second = load(memory, self.copy(before), 1, choice);
                if !self.is(self.of_kind(Mutant::SeqNoReaderFence, Mutant::LatchNoReaderFence)) {
                    memory.acquire_fence(me);
                }
                Reader::Again(before, first, second)
            }
            Reader::Again(before, first, second) => {
                let wanted = match self.scenario.kind {
                    Kind::SeqLock if !self.is(Mutant::SeqIgnoresOdd) => before & !1,
                    _ => before,
                };
                let is_whole = memory.load(me, SEQUENCE, Relaxed, choice) == wanted
                    || self.is(self.of_kind(Mutant::SeqNoRecheck, Mutant::LatchNoRecheck));
                match self.scenario.kind {
                    _ if is_whole => return Self::end(world, number, first, second),
                    Kind::SeqLock if self.is(Mutant::SeqNoLock) => Reader::Locked,
                    Kind::SeqLock => Reader::Lock,
                    Kind::Latch => Reader::Pin,
                }
            }
            Reader::Lock if world.held.is_some() => return Outcome::Blocked,
            Reader::Lock => {
                world.held = Some(me as u8);
                memory.lock(me, Lock::Machine);
                Reader::Locked
            }
            Reader::Locked => Reader::LockedSecond(load(memory, 0, 0, choice)),
            Reader::LockedSecond(first) => Reader::Unlock(first, load(memory, 0, 1, choice)),
            Reader::Unlock(first, second) => {
                if !self.is(Mutant::SeqNoLock) {
                    memory.unlock(me, Lock::Machine);
                    world.held = None;
                }
                return Self::end(world, number, first, second);
            }
            Reader::Pin => {
                memory.update(me, PINS, Relaxed, |old| old + 1);
                Reader::PinFence
            }
            Reader::PinFence => {
                if !self.is(Mutant::LatchNoPinFence) {
                    memory.fence(me);
                }
                Reader::PinnedSequence
            }
            Reader::PinnedSequence => {
                Reader::PinnedFirst(self.copy(memory.load(me, SEQUENCE, Acquire, choice)))
            }
            Reader::PinnedFirst(copy) => Reader::PinnedSecond(copy, load(memory, copy, 0, choice)),
            Reader::PinnedSecond(copy, first) => {
                memory.read_object(me, copy);
                Reader::Unpin(first, load(memory, copy, 1, choice))
            }
            Reader::Unpin(first, second) => {
                let order = self.unless(Mutant::LatchRelaxedUnpin, Release);
                memory.update(me, PINS, order, |old| old - 1);
                return Self::end(world, number, first, second);
            }
        };
        world.readers[number] = (next, left, newest);
        Outcome::Moved
    }

    fn of_kind(&self, of_lock: Mutant, of_latch: Mutant) -> Mutant {
        if self.scenario.kind == Kind::SeqLock { of_lock } else { of_latch }
    }

    /// The reader has these words.
    fn end(world: &mut World<M>, number: usize, first: u64, second: u64) -> Outcome {
        let (_, left, newest) = world.readers[number];
        if first != second {
            return Outcome::Violation(format!("words of values {first} and {second} are read"));
        }
        if first < newest {
            return Outcome::Violation(format!("value {first} is read after {newest}"));
        }
        world.readers[number] = (Reader::Begin, left - 1, first);
        Outcome::Moved
    }
}

impl<M: Memory> Threads for System<M> {
    type Memory = M;
    type World = World<M>;

    const NAMES: &'static [&'static str] = &["writer 0", "writer 1", "reader 0", "reader 1"];

    fn first(&self) -> World<M> {
        let readers = ((1 << READERS) - 1) << WRITERS;
        let writers = (1 << WRITERS) - 1;
        let mut loaders = [0; LOCATIONS];
        loaders[SEQUENCE.index()] = readers | writers;
        loaders[PINS.index()] = writers;
        for copy in 0..2 {
            for which in 0..2 {
                loaders[word(copy, which).index()] = readers;
            }
        }
        let threads = WRITERS + READERS;
        World {
            memory: M::new(&Layout { threads, initial: [0; LOCATIONS], loaders }),
            held: None,
            number: 0,
            writers: self.scenario.writes.map(|writes| (Writer::Lock, writes)),
            readers: self.scenario.reads.map(|reads| (Reader::Begin, reads, 0)),
        }
    }

    fn memory(world: &mut World<M>) -> &mut M {
        &mut world.memory
    }

    fn step(&self, world: &mut World<M>, me: usize, choice: &mut Choice) -> Outcome {
        match me {
            0..WRITERS => self.write(world, me, choice),
            _ => self.read(world, me - WRITERS, choice),
        }
    }

    fn active(&self, world: &World<M>) -> u8 {
        let mut active = 0;
        for me in 0..WRITERS {
            active |= u8::from(world.writers[me] != (Writer::Lock, 0)) << me;
        }
        for number in 0..READERS {
            let (at, left, _) = world.readers[number];
            active |= u8::from((at, left) != (Reader::Begin, 0)) << (WRITERS + number);
        }
        active
    }

    fn tell(&self, world: &World<M>) -> String {
        format!("{:?} {:?}", world.writers, world.readers)
    }
}

const _: () = assert!(WRITERS + READERS <= crate::memory::THREADS);
