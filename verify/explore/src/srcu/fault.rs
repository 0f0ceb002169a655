//! Faults: SRCU with one fence, one rule or one step of its machine left out, and what comes of it.

use crate::harness::{self, Kind, Models, kebab};

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A step of [`grace::srcu::STEPS`].
    Omitted(&'static str),
    /// The fence between the two sums.
    NoFenceA,
    /// The fence after a reader has counted itself in.
    NoFenceB,
    /// The fence before it counts itself out.
    NoFenceC,
    /// The fence after the flip.
    NoFenceD,
    /// The fence before it.
    NoFenceE,
    /// Both fences of the flip.
    NoFenceDNorE,
    /// The fence between the sums, and both of the flip.
    NoFenceOfWorker,
    /// Locks are summed before unlocks.
    LocksFirst,
    /// One CPU's counts are looked at.
    FirstCpuOnly,
    /// Each CPU's counts must be equal, not only their sums.
    EachCpuByItself,
    /// A reader counts itself out of the index that it did not count itself into.
    UnlockOtherIndex,
}

impl Mutant {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::LocksFirst => "locks-first".to_owned(),
            Self::Omitted(step) => format!("srcu-without-{step}"),
            other => format!("srcu-{}", kebab(&other)),
        }
    }
}

/// What is known about a mutant.
pub type Fault = harness::Fault<Mutant>;

/// Every mutant.
pub const FAULTS: &[Fault] = &[
    Fault {
        mutant: Mutant::Omitted("serve-later"),
        kind: Kind::Unsafe,
        scenario: "two-updaters",
        models: Models::Both,
        reason: "a request is served by the grace period in progress, which may have looked already",
    },
    Fault {
        mutant: Mutant::Omitted("first-scan"),
        kind: Kind::Unsafe,
        scenario: "straggler",
        models: Models::Both,
        reason: "a straggler of the last flip is in an index that becomes current, and nobody looks \
                 at it",
    },
    Fault {
        mutant: Mutant::Omitted("flip"),
        kind: Kind::Unsafe,
        scenario: "one-reader",
        models: Models::Both,
        reason: "the same index is looked at twice, and the other not",
    },
    Fault {
        mutant: Mutant::Omitted("second-scan"),
        kind: Kind::Unsafe,
        scenario: "one-reader",
        models: Models::Both,
        reason: "the index that was current is not looked at",
    },
    Fault {
        mutant: Mutant::Omitted("heed-check"),
        kind: Kind::Unsafe,
        scenario: "one-reader",
        models: Models::Both,
        reason: "unequal sums count as equal",
    },
    Fault {
        mutant: Mutant::Omitted("requeue"),
        kind: Kind::Stuck,
        scenario: "one-reader",
        models: Models::Both,
        reason: "after a run that failed the worker is not queued again",
    },
    Fault {
        mutant: Mutant::Omitted("begin-next"),
        kind: Kind::Stuck,
        scenario: "two-updaters",
        models: Models::Both,
        reason: "what was requested in mid grace period is not begun when it ends",
    },
    Fault {
        mutant: Mutant::Omitted("begin-while-handing-out"),
        kind: Kind::Harmless,
        scenario: "two-updaters",
        models: Models::Neither,
        reason: "the next grace period begins after callbacks are handed out: later, that is all",
    },
    Fault {
        mutant: Mutant::Omitted("note-expedited"),
        kind: Kind::Harmless,
        scenario: "straggler",
        models: Models::Neither,
        reason: "nobody is in a hurry: slower, that is all",
    },
    Fault {
        mutant: Mutant::Omitted("reset-count"),
        kind: Kind::Harmless,
        scenario: "counting",
        models: Models::Neither,
        reason: "a phase inherits the count of the one before: it waits sooner, that is all",
    },
    Fault {
        mutant: Mutant::Omitted("throttle"),
        kind: Kind::Harmless,
        scenario: "counting",
        models: Models::Neither,
        reason: "any number of runs in a jiffy: it costs CPU time, that is all",
    },
    Fault {
        mutant: Mutant::Omitted("extra-check"),
        kind: Kind::Harmless,
        scenario: "straggler",
        models: Models::Neither,
        reason: "a check less in a run: the next run makes it",
    },
    Fault {
        mutant: Mutant::NoFenceA,
        kind: Kind::Unsafe,
        scenario: "straggler",
        models: Models::Both,
        reason: "on x86 the new pointer is still in the worker's store buffer while the first scan \
                 passes; under weaker memory nothing orders a section against the free either",
    },
    Fault {
        mutant: Mutant::NoFenceB,
        kind: Kind::Unsafe,
        scenario: "one-reader",
        models: Models::Both,
        reason: "the reader's count is in its store buffer while it loads the old pointer",
    },
    Fault {
        mutant: Mutant::NoFenceC,
        kind: Kind::Unsafe,
        scenario: "one-reader",
        models: Models::WeakOnly,
        reason: "the section is delayed past its end; x86 does no such thing",
    },
    Fault {
        mutant: Mutant::NoFenceD,
        kind: Kind::Harmless,
        scenario: "straggler",
        models: Models::Neither,
        reason: "fence A before the second scan's locks orders what it orders",
    },
    Fault {
        mutant: Mutant::NoFenceE,
        kind: Kind::Harmless,
        scenario: "straggler",
        models: Models::Neither,
        reason: "fence A of the first scan orders what it orders",
    },
    Fault {
        mutant: Mutant::NoFenceDNorE,
        kind: Kind::Harmless,
        scenario: "straggler",
        models: Models::Neither,
        reason: "fence A is enough for both",
    },
    Fault {
        mutant: Mutant::NoFenceOfWorker,
        kind: Kind::Unsafe,
        scenario: "one-reader",
        models: Models::Both,
        reason: "so one of the worker's is needed",
    },
    Fault {
        mutant: Mutant::LocksFirst,
        kind: Kind::Unsafe,
        scenario: "straggler",
        models: Models::Both,
        reason: "a reader that comes and goes between the sums makes up for one that stays",
    },
    Fault {
        mutant: Mutant::FirstCpuOnly,
        kind: Kind::Unsafe,
        scenario: "two-readers",
        models: Models::Both,
        reason: "the reader on the other CPU is overlooked",
    },
    Fault {
        mutant: Mutant::EachCpuByItself,
        kind: Kind::Stuck,
        scenario: "migrating",
        models: Models::Both,
        reason: "the counts of a reader that migrated never match on either CPU",
    },
    Fault {
        mutant: Mutant::UnlockOtherIndex,
        kind: Kind::Unsafe,
        scenario: "two-readers",
        models: Models::Both,
        reason: "one index looks drained while a reader is in it, and the other never drains",
    },
];
