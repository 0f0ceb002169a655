//! Faults: SRCU with one fence, one rule or one step of its machine left out, and what comes of it.

use crate::harness::{self, kebab};

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

harness::faults! {
    Omitted("serve-later") Unsafe Both "two-updaters"
        "a request is served by the grace period in progress, which may have looked already";
    Omitted("first-scan") Unsafe Both "straggler"
        "a straggler of the last flip is in an index that becomes current, and nobody looks at it";
    Omitted("flip") Unsafe Both "one-reader" "the same index is looked at twice, and the other not";
    Omitted("second-scan") Unsafe Both "one-reader" "the index that was current is not looked at";
    Omitted("heed-check") Unsafe Both "one-reader" "unequal sums count as equal";
    Omitted("requeue") Stuck Both "one-reader"
        "after a run that failed the worker is not queued again";
    Omitted("begin-next") Stuck Both "two-updaters"
        "what was requested in mid grace period is not begun when it ends";
    Omitted("begin-while-handing-out") Harmless Neither "two-updaters"
        "the next grace period begins after callbacks are handed out: later, that is all";
    Omitted("note-expedited") Harmless Neither "straggler"
        "nobody is in a hurry: slower, that is all";
    Omitted("reset-count") Harmless Neither "counting"
        "a phase inherits the count of the one before: it waits sooner, that is all";
    Omitted("throttle") Harmless Neither "counting"
        "any number of runs in a jiffy: it costs CPU time, that is all";
    Omitted("extra-check") Harmless Neither "straggler"
        "a check less in a run: the next run makes it";
    NoFenceA Unsafe Both "straggler"
        "on x86 the new pointer is still in the worker's store buffer while the first scan passes; \
         under weaker memory nothing orders a section against the free either";
    NoFenceB Unsafe Both "one-reader"
        "the reader's count is in its store buffer while it loads the old pointer";
    NoFenceC Unsafe WeakOnly "one-reader"
        "the section is delayed past its end; x86 does no such thing";
    NoFenceD Harmless Neither "straggler"
        "fence A before the second scan's locks orders what it orders";
    NoFenceE Harmless Neither "straggler" "fence A of the first scan orders what it orders";
    NoFenceDNorE Harmless Neither "straggler" "fence A is enough for both";
    NoFenceOfWorker Unsafe Both "one-reader" "so one of the worker's is needed";
    LocksFirst Unsafe Both "straggler"
        "a reader that comes and goes between the sums makes up for one that stays";
    FirstCpuOnly Unsafe Both "two-readers" "the reader on the other CPU is overlooked";
    EachCpuByItself Stuck Both "migrating"
        "the counts of a reader that migrated never match on either CPU";
    UnlockOtherIndex Unsafe Both "two-readers"
        "one index looks drained while a reader is in it, and the other never drains";
}
