//! What shared memory may do: one trait, two models.
//!
//! [`tso`] is what x86 does; [`weak`] also reorders loads and stores of different locations. The
//! transcriptions of the readers and the updater are written once, against [`Memory`].

pub(crate) mod tso;
pub(crate) mod weak;

use core::hash::Hash;
use core::sync::atomic::Ordering;

use crate::choice::Choice;

/// Threads of a scenario, at most; also slots of readers.
pub(crate) const THREADS: usize = 4;
/// Objects of a scenario, at most.
pub(crate) const OBJECTS: usize = 6;
/// Plain variables of a litmus test, at most.
pub(crate) const VARIABLES: usize = 4;

/// A shared atomic word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location(u8);

/// How many [`Location`]s there are.
pub(crate) const LOCATIONS: usize = 4 + VARIABLES + 2 * THREADS;

impl Location {
    /// The published pointer: the number of an object.
    pub(crate) const POINTER: Self = Self(0);
    /// `gp.ctr`.
    pub(crate) const GP_CTR: Self = Self(1);
    /// The sequence as last made visible.
    pub(crate) const COMPLETED: Self = Self(2);
    /// How many holdouts the sleeping driver waits for.
    pub(crate) const WAKE: Self = Self(3);

    /// A variable of a litmus test.
    pub(crate) const fn variable(variable: u8) -> Self {
        Self(4 + variable)
    }

    /// The word of a reader's slot.
    pub(crate) const fn word(slot: u8) -> Self {
        Self::variable(VARIABLES as u8 + slot)
    }

    /// The marks of a reader's slot.
    pub(crate) const fn attention(slot: u8) -> Self {
        Self::word(THREADS as u8 + slot)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The one whose [`index`](Self::index) this is.
    pub(crate) const fn nth(index: usize) -> Self {
        Self(index as u8)
    }
}

impl core::fmt::Display for Location {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names = ["ptr", "gp.ctr", "completed", "wake", "x", "y", "z", "w"];
        match self.index().checked_sub(names.len()) {
            None => f.write_str(names[self.index()]),
            Some(slot) if slot < THREADS => write!(f, "word[{slot}]"),
            Some(more) => write!(f, "attention[{}]", more - THREADS),
        }
    }
}

/// The locks whose sections order memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lock {
    Machine,
    Registry,
}

/// What a memory needs to know of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) threads: usize,
    /// The value of each location at the start.
    pub(crate) initial: [u64; LOCATIONS],
    /// For each location the threads that ever load it, as a set of bits.
    pub(crate) loaders: [u8; LOCATIONS],
}

/// A model of shared memory. All state is in the value, so that states can be told apart. By
/// default it keeps the order of loads and stores, has no store buffers, and the kernel promises
/// nothing to it.
///
/// Objects are not locations: an access to one is not atomic, so a model says whether the access
/// was ordered, not what it returned.
pub(crate) trait Memory: Clone + Eq + Hash {
    fn new(layout: &Layout) -> Self;

    fn load(&mut self, me: usize, at: Location, order: Ordering, choice: &mut Choice) -> u64;

    fn store(&mut self, me: usize, at: Location, value: u64, order: Ordering);

    /// A relaxed store to a location that several threads store to without any order among them: it
    /// may come before another's in the order of the location.
    fn race(&mut self, me: usize, at: Location, value: u64, _choice: &mut Choice) {
        self.store(me, at, value, Ordering::Relaxed);
    }

    /// An atomic read-modify-write. Returns the value before.
    fn update(&mut self, me: usize, at: Location, order: Ordering, f: impl Fn(u64) -> u64) -> u64;

    /// A sequentially consistent fence.
    fn fence(&mut self, me: usize);

    /// An acquire fence.
    fn acquire_fence(&mut self, _me: usize) {}

    /// A release fence.
    fn release_fence(&mut self, _me: usize) {}

    /// A heavy fence begins: a full fence of the caller.
    fn heavy_begin(&mut self, me: usize) {
        self.fence(me);
    }

    /// The heavy fence of `me` interrupts `reader` where it stands.
    fn heavy_arrives(&mut self, _me: usize, reader: usize) {
        self.fence(reader);
    }

    /// All readers have answered.
    fn heavy_end(&mut self, _me: usize) {}

    /// What taking a lock does to memory; mutual exclusion is the world's.
    fn lock(&mut self, me: usize, lock: Lock);

    fn unlock(&mut self, me: usize, lock: Lock);

    /// What entering the kernel does to memory. By default nothing: it compares the newest value.
    fn system_call(&mut self, _me: usize) {}

    /// The value that all threads will agree on, as a futex compares it.
    fn newest(&self, at: Location) -> u64;

    /// Whether a load could return a value such as `wanted`.
    fn may_load(&self, me: usize, at: Location, wanted: impl Fn(u64) -> bool) -> bool;

    /// Lets time pass until a load could not return an older value than the first that is `wanted`.
    fn skip_to(&mut self, _me: usize, _at: Location, _wanted: impl Fn(u64) -> bool) {}

    /// Whether all stores are visible to every thread that loads it for long enough.
    fn is_quiet(&self) -> bool {
        true
    }

    /// A step of the memory itself on behalf of `me`: the store that became visible, if any.
    fn drain(&mut self, _me: usize) -> Option<(Location, u64)> {
        None
    }

    /// `me` writes a new object, before it publishes it.
    fn initialise(&mut self, _me: usize, _object: u8) {}

    /// `me` reads an object. Returns whether it was sure to see it initialised.
    fn read_object(&mut self, _me: usize, _object: u8) -> bool {
        true
    }

    /// Of whose reads of the object `me` cannot be sure that they are over.
    fn racing_reader(&self, _me: usize, _object: u8) -> Option<usize> {
        None
    }

    /// Forgets what no thread can observe any more, so that equal states look equal. `active` are
    /// the threads that still run, as a set of bits.
    fn settle(&mut self, _active: u8) {}
}
