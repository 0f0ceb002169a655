//! The whole state: what the threads have in common, what a map must look like, grace periods.
//!
//! ```text
//! driver:   completed = a number more, in progress (Release); heavy fence: of each thread that it
//!           reaches, is it in a section?
//!           waits until those sections have ended; completed = a number more (Release)
//! ```

use core::sync::atomic::Ordering::{Relaxed, Release};

use super::fault::Mutant;
use super::reader::Reader;
use super::updater::{Slot, Updater};
use super::{DEAD, FREE, Key, Kind, Op, STAMPED, Scenario, TAGS};
use crate::choice::Choice;
use crate::memory::{LOCATIONS, Layout, Location, Lock, Memory};
use crate::program::{Program, Threads};
use crate::system::Outcome;

const DRIVER: usize = 0;
pub(super) const UPDATER: usize = 1;
/// The second updater, or the second reader.
const SECOND: usize = 2;
const READER: usize = 3;
const THREADS: usize = 4;

/// The tag word of the bucket: flags, and a byte a slot.
pub(super) const TAG_WORD: Location = Location::Pointer;
/// The overflow node, or the cookie.
pub(super) const OVERFLOW: Location = Location::GpCtr;
pub(super) const COMPLETED: Location = Location::Completed;
/// The tag word of the bucket in the next table.
pub(super) const CHILD: Location = Location::Wake;
const CHILD_SLOTS: Location = Location::Variable(2);
/// Nodes that there may be.
pub(super) const NODES: usize = 4;

pub(super) const LOCK: u64 = 1;
pub(super) const OVER: u64 = 2;
pub(super) const MOVED: u64 = 4;

/// A byte of a tag word.
pub(super) fn byte(word: u64, slot: u8) -> u8 {
    (word >> (8 + 8 * slot)) as u8
}

/// The same word with another byte.
pub(super) fn with_byte(word: u64, slot: u8, byte: u8) -> u64 {
    let shift = 8 + 8 * slot;
    word & !(0xff << shift) | u64::from(byte) << shift
}

/// Where a tag word or slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Area {
    Head,
    Node(u8),
    Child,
}

impl Area {
    pub(super) fn tag_word(self) -> Location {
        match self {
            Self::Head => TAG_WORD,
            Self::Node(node) => Location::Word(node),
            Self::Child => CHILD,
        }
    }
}

impl Slot {
    pub(super) fn location(self) -> Location {
        match self.area {
            Area::Head => Location::Variable(self.number),
            Area::Node(node) => Location::Attention(node),
            Area::Child => CHILD_SLOTS,
        }
    }

    /// Where in the location the entry is.
    pub(super) fn shift(self) -> u8 {
        if self.area == Area::Head { 0 } else { 8 * self.number }
    }

    /// The object that stands for its key and value.
    pub(super) fn object(self) -> u8 {
        debug_assert_eq!(self.area, Area::Head, "the others are written once");
        1 + self.number
    }
}

/// An entry: 0 is none.
pub(super) fn entry(key: Key, value: u8) -> u8 {
    (key as u8 + 1) << 4 | value
}

pub(super) fn key_of(entry: u8) -> u8 {
    entry >> 4
}

pub(super) fn value_of(entry: u8) -> u8 {
    entry & 15
}

/// What a map has under a key, as its operations begin and end. Values are their numbers; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Truth {
    value: u8,
    /// What an update is about to make of it.
    pending: Option<u8>,
    /// How many values there were.
    values: u8,
    /// All that it has been, as a set.
    had: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World<M> {
    pub(super) memory: M,
    pub(super) updaters: [Updater; 2],
    readers: [Reader; 2],
    truth: [Truth; 3],
    /// What a holder of the lock knows: where the keys are, the node, words as last stored.
    pub(super) places: [Option<Slot>; 3],
    pub(super) node: Option<u8>,
    pub(super) nodes: u8,
    pub(super) node_words: [u64; NODES],
    pub(super) packed: [u64; LOCATIONS],
    pub(super) cookie: u64,
    pub(super) has_moved: bool,
    driving: Driving,
    grace_periods: u8,
}

/// The thread that drives grace periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Driving {
    Idle,
    /// The threads that the fence has not reached, and those that it found in a section.
    Fence(u8, u8),
    Wait(u8),
    Complete,
}

pub(super) type System<M> = Program<M, Scenario, Mutant>;

impl<M: Memory> World<M> {
    /// A look-up begins.
    pub(super) fn begin_look(&mut self, me: usize, key: Key, is_timed: bool) -> u16 {
        if is_timed {
            self.memory.lock(me, Lock::Machine);
        }
        let truth = self.truth[key as usize];
        if is_timed { 1 << truth.value } else { truth.had }
    }

    /// A look-up ends with this value: may a map have that?
    pub(super) fn end_look(
        &mut self,
        me: usize,
        (key, value, may_be): (Key, u8, u16),
        is_timed: bool,
    ) -> Option<String> {
        let truth = self.truth[key as usize];
        if may_be & 1 << value == 0 {
            if truth.pending != Some(value) {
                return Some(format!("key {key:?} is found as {value}, which it is not"));
            }
            self.happens(key, value);
        }
        if is_timed {
            self.memory.unlock(me, Lock::Machine);
        }
        None
    }

    /// An update that makes this of the key begins, under the lock.
    pub(super) fn begin_update(&mut self, key: Key, removes: bool) -> u8 {
        let truth = &mut self.truth[key as usize];
        truth.values += u8::from(!removes);
        let value = if removes { 0 } else { truth.values };
        truth.pending = Some(value);
        value
    }

    /// It ends.
    pub(super) fn end_update(&mut self, me: usize, key: Key, is_timed: bool) {
        if let Some(value) = self.truth[key as usize].pending {
            self.happens(key, value);
        }
        if is_timed {
            self.memory.unlock(me, Lock::Machine);
        }
    }

    /// The moment of an update is over: a look-up of the key that is in progress may find that.
    fn happens(&mut self, key: Key, value: u8) {
        let truth = &mut self.truth[key as usize];
        truth.value = value;
        truth.pending = None;
        truth.had |= 1 << value;
        let looking = self.readers.iter_mut().filter(|reader| reader.looks_up(key));
        looking.for_each(|reader| reader.may_be |= 1 << value);
    }

    /// A holder of the lock has a cookie cover the slots that are stamped.
    pub(super) fn set_cookie(&mut self, me: usize, cookie: u64) {
        self.cookie = cookie;
        if self.node.is_none() {
            self.memory.store(me, OVERFLOW, 2 * cookie + 1, Relaxed);
        }
    }

    /// A holder of the lock is about to write a slot of the head.
    pub(super) fn write(&mut self, me: usize, slot: Slot) -> Option<String> {
        if slot.area != Area::Head {
            return None;
        }
        self.memory.initialise(me, slot.object());
        let reader = self.memory.racing_reader(me, slot.object())?;
        let number = slot.number;
        Some(format!("slot {number} is written while thread {reader} may still be reading it"))
    }
}

impl<M: Memory> System<M> {
    pub(super) fn is_boxed(&self) -> bool {
        self.scenario.kind == Kind::Boxed
    }

    pub(super) fn tag(&self, key: Key) -> u8 {
        if self.scenario.is_colliding { TAGS } else { TAGS + key as u8 }
    }

    fn drive(&self, world: &mut World<M>, choice: &mut Choice) -> Outcome {
        let memory = &mut world.memory;
        world.driving = match world.driving {
            Driving::Idle if world.grace_periods == self.scenario.grace_periods => {
                return Outcome::Blocked;
            }
            Driving::Idle => {
                world.grace_periods += 1;
                memory.update(DRIVER, COMPLETED, Release, |number, by| number + by, 1);
                memory.heavy_begin(DRIVER);
                let readers = (0..THREADS).filter(|thread| self.reader_of(*thread).is_some());
                Driving::Fence(readers.fold(0, |set, thread| set | 1 << thread), 0)
            }
            Driving::Fence(0, found) => {
                memory.heavy_end(DRIVER);
                Driving::Wait(found)
            }
            Driving::Fence(left, found) => {
                let which = choice.choose(left.count_ones() as usize);
                let thread = (0..THREADS).filter(|one| left & 1 << one != 0).nth(which);
                let thread = thread.expect("as many as there are to choose from");
                memory.heavy_arrives(DRIVER, thread);
                let is_inside =
                    self.reader_of(thread).is_some_and(|it| world.readers[it].is_inside());
                Driving::Fence(left & !(1 << thread), found | u8::from(is_inside) << thread)
            }
            Driving::Wait(found) => {
                let is_held = (0..THREADS).any(|thread| found & 1 << thread != 0);
                if is_held {
                    return Outcome::Blocked;
                }
                memory.lock(DRIVER, Lock::Registry);
                Driving::Complete
            }
            Driving::Complete => {
                memory.update(DRIVER, COMPLETED, Release, |number, by| number + by, 1);
                Driving::Idle
            }
        };
        Outcome::Moved
    }

    /// The section of this thread has ended: no grace period waits for it any more.
    fn left(world: &mut World<M>, thread: usize) {
        world.memory.unlock(thread, Lock::Registry);
        if let Driving::Fence(_, found) | Driving::Wait(found) = &mut world.driving {
            *found &= !(1 << thread);
        }
    }

    fn updater_of(&self, thread: usize) -> Option<usize> {
        match thread {
            UPDATER => Some(0),
            SECOND if !self.scenario.updaters[1].is_empty() => Some(1),
            _ => None,
        }
    }

    fn reader_of(&self, thread: usize) -> Option<usize> {
        match thread {
            READER => Some(0),
            SECOND if self.scenario.updaters[1].is_empty() => Some(1),
            _ => None,
        }
    }

    fn is_over(&self, world: &World<M>, thread: usize) -> bool {
        match (self.updater_of(thread), self.reader_of(thread)) {
            (Some(it), _) => world.updaters[it].is_over(self.scenario.updaters[it]),
            (_, Some(it)) => world.readers[it].is_over(self.scenario.readers[it]),
            _ => world.driving == Driving::Idle,
        }
    }

    fn put(&self, world: &mut World<M>, initial: &mut [u64; LOCATIONS], key: Key, slot: Slot) {
        let value = 1;
        let truth = &mut world.truth[key as usize];
        *truth = Truth { value, pending: None, values: value, had: 1 << value };
        world.places[key as usize] = Some(slot);
        let at = slot.location().index();
        initial[at] |= u64::from(entry(key, value)) << slot.shift();
        let tag = slot.area.tag_word().index();
        initial[tag] = with_byte(initial[tag], slot.number, self.tag(key));
    }
}

impl<M: Memory> Threads for System<M> {
    type Memory = M;
    type World = World<M>;

    const NAMES: &'static [&'static str] = &["driver", "updater", "second", "reader"];

    fn first(&self) -> World<M> {
        let has_second = !self.scenario.updaters[1].is_empty();
        let is_one = !has_second || self.scenario.readers[1].is_empty();
        assert!(is_one, "one thread is one of the two");
        let mut initial = [0; LOCATIONS];
        let layout = |initial, loaders| Layout { threads: THREADS, initial, loaders };
        let mut world = World {
            memory: M::new(&layout(initial, [0; LOCATIONS])),
            updaters: [Updater::FIRST; 2],
            readers: [Reader::FIRST; 2],
            truth: [Truth { value: 0, pending: None, values: 0, had: 1 }; 3],
            places: [None; 3],
            node: None,
            nodes: 0,
            node_words: [0; NODES],
            packed: [0; LOCATIONS],
            cookie: 0,
            has_moved: false,
            driving: Driving::Idle,
            grace_periods: 0,
        };
        for (number, slot) in self.scenario.head.into_iter().enumerate() {
            let number = number as u8;
            match slot {
                Ok(key) => {
                    self.put(&mut world, &mut initial, key, Slot { area: Area::Head, number })
                }
                Err(byte) => {
                    assert!([FREE, DEAD, STAMPED].contains(&byte), "no tag without an entry");
                    let word = &mut initial[TAG_WORD.index()];
                    *word = with_byte(*word, number, byte);
                }
            }
        }
        initial[OVERFLOW.index()] = 1; // a cookie, which is done
        if self.scenario.node.iter().any(Option::is_some) {
            for (number, key) in self.scenario.node.into_iter().enumerate() {
                let slot = Slot { area: Area::Node(0), number: number as u8 };
                if let Some(key) = key {
                    self.put(&mut world, &mut initial, key, slot);
                }
            }
            initial[TAG_WORD.index()] |= OVER;
            initial[OVERFLOW.index()] = 2;
            world.node_words[0] = initial[Area::Node(0).tag_word().index()];
            (world.node, world.nodes) = (Some(0), 1);
        }
        world.packed = initial;
        let threads = |is: &dyn Fn(usize) -> bool| {
            (0..THREADS).filter(|one| is(*one)).fold(0, |set, one| set | 1 << one)
        };
        let readers: u8 = threads(&|one| self.reader_of(one).is_some());
        let updaters: u8 = threads(&|one| self.updater_of(one).is_some());
        let mut loaders = [readers | updaters; LOCATIONS];
        loaders[COMPLETED.index()] = updaters;
        world.memory = M::new(&layout(initial, loaders));
        world
    }

    fn memory(world: &mut World<M>) -> &mut M {
        &mut world.memory
    }

    fn step(&self, world: &mut World<M>, thread: usize, choice: &mut Choice) -> Outcome {
        if let Some(it) = self.updater_of(thread) {
            return self.update(world, thread, it, choice);
        }
        let Some(it) = self.reader_of(thread) else { return self.drive(world, choice) };
        let mut reader = world.readers[it];
        let outcome = self.read(world, thread, &mut reader, self.scenario.readers[it], choice);
        let has_left = world.readers[it].is_inside() && !reader.is_inside();
        world.readers[it] = reader;
        if has_left {
            Self::left(world, thread);
        }
        outcome
    }

    fn active(&self, world: &World<M>) -> u8 {
        let active = (1..THREADS).filter(|thread| !self.is_over(world, *thread));
        active.fold(1 << DRIVER, |active, thread| active | 1 << thread)
    }

    fn tell(&self, world: &World<M>) -> String {
        let World { updaters, readers, driving, .. } = world;
        format!("{driving:?} {:?} {:?} {readers:?}", updaters[0], updaters[1].at)
    }

    fn is_end(&self, world: &World<M>) -> bool {
        (0..THREADS).all(|thread| self.is_over(world, thread))
    }
}

/// What an operation is about.
impl Op {
    pub(super) fn key(self) -> Option<Key> {
        match self {
            Self::Insert(key) | Self::Remove(key) => Some(key),
            Self::Fold | Self::Touch | Self::Grow => None,
        }
    }
}

const _: () = assert!(THREADS <= crate::memory::THREADS && NODES <= crate::memory::THREADS);
