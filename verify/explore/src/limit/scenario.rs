//! Who retires what, and how much may wait.

use grace::limit::Amount;

/// An object to be retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// What it is counted as, besides as one object.
    pub bytes: u8,
    /// How often it queues itself anew when it is run.
    pub again: u8,
}

/// A thread of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// What it retires, inside or outside of sections.
    pub retires: &'static [Object],
    /// How many sections it may have.
    pub sections: u8,
    /// How many threads do this, each after the end of the one before.
    pub lives: u8,
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// What may wait.
    pub limit: Amount,
    /// What a thread takes at once. ([`grace::limit::chunk`] of a limit as small is nothing.)
    pub chunk: Amount,
    /// The threads, at most three.
    pub clients: Vec<Client>,
    /// Whether the first callback that the worker runs blocks until all threads have ended.
    pub worker_blocks: bool,
}

const UNIT: Object = Object { bytes: 0, again: 0 };
const AGAIN: Object = Object { bytes: 0, again: 2 };
const SMALL: Object = Object { bytes: 1, again: 0 };
const LARGE: Object = Object { bytes: 3, again: 0 };
const HUGE: Object = Object { bytes: 9, again: 0 };

impl Scenario {
    /// Whether any object has bytes. Where none has, the word of the bytes is always 0, and
    /// touching it is no step of its own.
    pub(super) fn has_bytes(&self) -> bool {
        self.clients.iter().flat_map(|client| client.retires).any(|object| object.bytes != 0)
    }
}

/// Retires one after the other, and has as many sections.
const fn client(retires: &'static [Object], sections: u8) -> Client {
    Client { retires, sections, lives: 1 }
}

const fn amount(objects: u64, bytes: u64) -> Amount {
    Amount { objects, bytes }
}

/// All scenarios but the biggest.
pub fn scenarios() -> Vec<Scenario> {
    let base = Scenario {
        name: "two-threads",
        about: "each object is charged by itself; both threads retire in sections and outside",
        limit: amount(1, 0),
        chunk: Amount::NONE,
        clients: vec![client(&[UNIT, UNIT], 1), client(&[UNIT, UNIT], 1)],
        worker_blocks: false,
    };
    vec![
        base.clone(),
        Scenario {
            name: "stocks",
            about: "a thread takes more than it needs, and keeps what it frees",
            limit: amount(2, 0),
            chunk: amount(1, 0),
            clients: vec![client(&[UNIT, UNIT, UNIT], 1), client(&[UNIT], 0)],
            ..base.clone()
        },
        Scenario {
            name: "two-words",
            about: "one thread runs out of objects, the other of bytes",
            limit: amount(2, 4),
            chunk: amount(1, 1),
            clients: vec![client(&[SMALL, SMALL], 0), client(&[LARGE, LARGE], 1)],
            ..base.clone()
        },
        Scenario {
            name: "huge",
            about: "an object that is larger than the limit waits alone",
            limit: amount(2, 4),
            chunk: amount(1, 1),
            clients: vec![client(&[SMALL, HUGE], 0), client(&[SMALL], 0)],
            ..base.clone()
        },
        Scenario {
            name: "again",
            about: "callbacks that queue themselves anew",
            clients: vec![client(&[AGAIN], 0), client(&[UNIT, UNIT], 1)],
            ..base.clone()
        },
        Scenario {
            name: "one-section",
            about: "many objects in sections of one thread",
            clients: vec![client(&[UNIT, UNIT, UNIT, UNIT], 2), client(&[UNIT], 0)],
            ..base.clone()
        },
        Scenario {
            name: "blocked",
            about: "the worker blocks in a callback: all others go on",
            worker_blocks: true,
            ..base.clone()
        },
        Scenario {
            name: "short-threads",
            about: "threads that end over the limit, one after the other",
            clients: vec![
                Client { retires: &[UNIT, UNIT], sections: 1, lives: 2 },
                client(&[UNIT], 0),
            ],
            ..base.clone()
        },
        Scenario {
            name: "three-threads",
            about: "three threads for one place",
            clients: vec![client(&[UNIT], 1), client(&[UNIT], 0), client(&[UNIT], 0)],
            ..base
        },
    ]
}

/// Bigger ones: some millions of states each.
pub fn exhaustive() -> Vec<Scenario> {
    let base = Scenario {
        name: "two-threads-bytes",
        about: "as two-threads, but objects have bytes: each word is touched by itself",
        limit: amount(1, 8),
        chunk: Amount::NONE,
        clients: vec![client(&[SMALL, SMALL], 1), client(&[SMALL, SMALL], 1)],
        worker_blocks: false,
    };
    vec![
        base.clone(),
        Scenario {
            name: "stocks-bytes",
            about: "as stocks, with bytes, and sections of both",
            limit: amount(2, 8),
            chunk: amount(1, 2),
            clients: vec![client(&[SMALL, SMALL, SMALL], 1), client(&[SMALL, SMALL], 1)],
            ..base.clone()
        },
        Scenario {
            name: "huge-bytes",
            about: "as huge, in a section too",
            limit: amount(2, 4),
            chunk: amount(1, 1),
            clients: vec![client(&[SMALL, HUGE, SMALL], 0), client(&[SMALL, HUGE], 1)],
            ..base.clone()
        },
        Scenario {
            name: "three-threads-sections",
            about: "as three-threads, with sections of all",
            limit: amount(1, 0),
            clients: vec![client(&[UNIT], 1), client(&[UNIT, UNIT], 1), client(&[UNIT], 1)],
            ..base
        },
    ]
}

/// The scenario of this name.
pub fn named(name: &str) -> Option<Scenario> {
    scenarios().into_iter().chain(exhaustive()).find(|scenario| scenario.name == name)
}
