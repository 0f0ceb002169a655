//! A bucket of the hash map: a slot that is filled again, overflow, growth.
//!
//! Transcribed from `quiescence/src/collections/hash_map`: `reader` has the look-ups, `updater` the
//! updates under the bucket's lock, `world` the whole state and the grace periods. A bucket has two
//! slots here, so has a node, and so has the bucket that it moves to. A grace period is the model's
//! own: a fence that reaches each thread, which waits for the sections that it finds there; the
//! machine that gives out cookies is explored in [`crate::explore`].
//!
//! # What is asked
//!
//! A look-up's result is one that a map has whose updates happen at one moment each, between their
//! begin and their end ([`Scenario::is_timed`]: an operation that ends before another begins comes
//! before it; otherwise nothing orders the threads but the map's own words). A reference out of the
//! map has the same entry until the section ends. No slot is written while it may still be read.
//!
//! # What it confirms
//!
//! **A slot is filled again without a copy of the bucket**: one cookie for all slots that were dead
//! when it was taken, none added to it afterwards ([`Mutant::SharedCookie`]).
//!
//! **A reader that finds a cookie where its tag word speaks of a node tries again**
//! ([`Mutant::CookieIsAbsence`]).
//!
//! **The overflow word is loaded before the tag word and again after it** ([`Mutant::NoRecheck`]).
//! That the tag word has its old value says nothing: in one section a slot that was dead may be
//! filled, and be dead again; but no node has the address of an earlier one. A third look, after a
//! miss in the node, is not needed ([`Mutant::NoSecondRecheck`]), nor is the second where there is
//! the third.
//!
//! **Where a slot is used again at once, behind a pointer, the pointer is the moment**, and the tag
//! a hint that comes first and goes last: a reader with an old tag word finds the next entry of the
//! same tag, and must not find it earlier than others do ([`Mutant::PointerFirst`]).

mod fault;
mod reader;
mod updater;
mod world;

use crate::explore::{Model, Verdict};
use crate::harness::World as Harnessed;
use crate::program;

pub use fault::{FAULTS, Fault, Mutant};

/// A key. What else is in a bucket does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The first.
    A,
    /// The second.
    B,
    /// The third.
    C,
}

impl Key {
    const ALL: [Self; 3] = [Self::A, Self::B, Self::C];
}

/// What an updater does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// It inserts the key, or replaces its value.
    Insert(Key),
    /// It removes the key, which is there.
    Remove(Key),
    /// It moves the entries of the node to the head, if there is room.
    Fold,
    /// It takes the lock, and attends to dead slots.
    Touch,
    /// It moves the bucket to the next table.
    Grow,
}

/// Whose slots may be written beside readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Key and value are in the slot.
    Inline,
    /// The slot is a pointer.
    Boxed,
}

/// Which thread does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What the slots hold.
    pub kind: Kind,
    /// What is in the head at first: in each slot a key, or none and the byte.
    pub head: [Result<Key, u8>; 2],
    /// What is in the node at first; none of both: there is no node.
    pub node: [Option<Key>; 2],
    /// What the updaters do.
    pub updaters: [&'static [Op]; 2],
    /// What the readers look up, each key in a section of its own. The second reader's place is the
    /// second updater's, if that has something to do.
    pub readers: [&'static [Key]; 2],
    /// How many grace periods there are.
    pub grace_periods: u8,
    /// Whether all keys have the same tag.
    pub is_colliding: bool,
    /// Whether an operation that begins after another has ended comes after it.
    pub is_timed: bool,
}

/// Bytes of the tag word. Tags begin after them.
pub(crate) const FREE: u8 = 0;
pub(crate) const DEAD: u8 = 1;
pub(crate) const STAMPED: u8 = 2;
pub(crate) const TAGS: u8 = 3;

use Key::{A, B, C};

const PLAIN: Scenario = Scenario {
    name: "refilled",
    kind: Kind::Inline,
    head: [Ok(A), Err(FREE)],
    node: [None, None],
    updaters: [&[Op::Insert(A), Op::Touch, Op::Insert(A)], &[]],
    readers: [&[A], &[]],
    grace_periods: 1,
    is_colliding: false,
    is_timed: false,
};

/// The same, where no slot waits for a grace period.
const CALM: Scenario = Scenario { grace_periods: 0, ..PLAIN };

/// Every scenario as its own order of operations has it; those with timed ones are these again.
const SCENARIOS: [Scenario; 10] = [
    PLAIN,
    Scenario {
        name: "refilled-twice",
        head: [Ok(A), Err(DEAD)],
        updaters: [&[Op::Insert(A), Op::Insert(B), Op::Insert(B)], &[]],
        readers: [&[A], &[]],
        grace_periods: 2,
        ..PLAIN
    },
    Scenario {
        name: "insert",
        updaters: [&[Op::Insert(B), Op::Remove(B), Op::Insert(B)], &[]],
        readers: [&[B, B], &[]],
        is_colliding: true,
        ..CALM
    },
    Scenario {
        name: "overflow",
        head: [Ok(A), Ok(B)],
        updaters: [&[Op::Insert(A), Op::Insert(B)], &[]],
        readers: [&[A, B], &[]],
        ..CALM
    },
    Scenario {
        name: "folded",
        head: [Ok(B), Err(FREE)],
        node: [Some(A), None],
        updaters: [&[Op::Fold, Op::Insert(B)], &[]],
        readers: [&[A, B], &[]],
        ..CALM
    },
    Scenario {
        name: "same-tags-again",
        head: [Ok(B), Err(STAMPED)],
        node: [Some(A), None],
        updaters: [&[Op::Fold, Op::Insert(C), Op::Insert(A), Op::Touch], &[]],
        readers: [&[A], &[]],
        ..CALM
    },
    Scenario {
        name: "copied",
        head: [Ok(B), Ok(C)],
        node: [Some(A), None],
        updaters: [&[Op::Insert(A), Op::Insert(A), Op::Insert(B)], &[]],
        readers: [&[A, B], &[]],
        ..CALM
    },
    Scenario {
        name: "in-place",
        head: [Ok(A), Ok(B)],
        node: [Some(C), None],
        updaters: [&[Op::Insert(C), Op::Remove(C), Op::Insert(A)], &[]],
        readers: [&[A, C], &[]],
        ..CALM
    },
    Scenario {
        name: "grown",
        head: [Err(DEAD), Err(STAMPED)],
        node: [Some(A), None],
        updaters: [&[Op::Insert(A), Op::Grow, Op::Insert(A)], &[]],
        readers: [&[A, A], &[A]],
        ..CALM
    },
    Scenario {
        name: "two-updaters",
        head: [Ok(A), Ok(B)],
        node: [Some(C), None],
        updaters: [&[Op::Insert(C)], &[Op::Insert(B)]],
        readers: [&[C, B], &[]],
        ..CALM
    },
];

const BOXED: Scenario = Scenario {
    name: "boxed",
    kind: Kind::Boxed,
    updaters: [&[Op::Remove(A), Op::Insert(B)], &[]],
    readers: [&[A, B], &[B]],
    is_colliding: true,
    is_timed: true,
    ..CALM
};

const TIMED: [&str; SCENARIOS.len()] = [
    "timed-refilled",
    "timed-refilled-twice",
    "timed-insert",
    "timed-overflow",
    "timed-folded",
    "timed-same-tags-again",
    "timed-copied",
    "timed-in-place",
    "timed-grown",
    "timed-two-updaters",
];

/// The bucket, as a world.
#[derive(Clone, Copy, Debug)]
pub struct Bucket;

impl Harnessed for Bucket {
    type Mutant = Mutant;
    type Scenario = Scenario;

    const FAULTS: &'static [Fault] = FAULTS;
    const PREFIX: &'static str = "map-";

    fn scenarios() -> Vec<Scenario> {
        let timed = SCENARIOS.into_iter().zip(TIMED);
        let timed = timed.map(|(scenario, name)| Scenario { name, is_timed: true, ..scenario });
        SCENARIOS.into_iter().chain(timed).chain([BOXED]).collect()
    }

    fn scenario_name(scenario: &Scenario) -> &str {
        scenario.name
    }

    fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
        program::explore(*scenario, model, mutant, limit)
    }
}
