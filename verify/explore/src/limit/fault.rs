//! Faults: bounded memory with one rule left out, and what comes of it.

use crate::harness::{self, Kind, Models, kebab};

/// What is left out or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A charge that does not fit is not taken back.
    NoUndo,
    /// Of a charge that does not fit the objects are taken back, and the bytes are not.
    UndoObjectsOnly,
    /// The object is taken back, not what was charged.
    UndoWholeObject,
    /// The words are looked at, and then added to.
    LookThenAdd,
    /// Only the objects are compared with the limit.
    ObjectsOnly,
    /// Only the bytes are compared with the limit.
    BytesOnly,
    /// An object larger than the limit is admitted whatever waits.
    HugeAnytime,
    /// A thread keeps its stock when it retires an object that is larger than the limit.
    HugeKeepsStock,
    /// What an owner frees goes to its stock, and to the domain too.
    GiveBackTwice,
    /// What the worker frees goes to the stock of the owner.
    WorkerFillsStock,
    /// What is about to be run is given back before it is taken out of the queue.
    GiveBackEarly,
    /// A callback that queues itself anew does not use the room that it had.
    NoUncharged,
    /// In a section a thread waits as it does outside.
    WaitInSection,
    /// In a section an object that does not fit is freed.
    FreeInSection,
    /// An object that does not fit is freed without waiting.
    FreeWithoutWaiting,
    /// Outside of sections a thread waits until there is room.
    WaitForRoom,
    /// Outside of sections a thread that finds its queue being run waits until it is not.
    WaitForRunner,
    /// Nothing is run after the wait.
    NoRunAfterWaiting,
    /// A second object is admitted over the limit.
    SecondLoan,
    /// What is admitted over the limit is not noted.
    LoanNotOwed,
    /// Whether a thread is over the limit is asked of words that are older than the charge.
    LookBeforeLoan,
    /// At the end of a section what is over the limit is not settled: later, perhaps.
    NoSettling,
    /// At the end of a section what is over the limit is forgotten.
    OverLimitForgotten,
    /// A thread ends without running what it can.
    ExitWithoutRunning,
    /// A thread ends without giving back its stock.
    ExitKeepsStock,
    /// The thread that runs the queue of a thread that has ended meanwhile leaves what is ready.
    RunnerLeavesOrphan,
}

impl Mutant {
    /// Its name.
    pub fn name(self) -> String {
        format!("limit-{}", kebab(&self))
    }
}

/// What is known about a mutant. [`Kind::Unsafe`] is any promise that is broken.
pub type Fault = harness::Fault<Mutant>;

const fn fault(mutant: Mutant, kind: Kind, scenario: &'static str, reason: &'static str) -> Fault {
    let models = match kind {
        Kind::Harmless => Models::Neither,
        _ => Models::Both,
    };
    Fault { mutant, kind, scenario, models, reason }
}

/// Every mutant.
pub const FAULTS: &[Fault] = &[
    fault(Mutant::NoUndo, Kind::Unsafe, "two-threads", "room is lost for ever"),
    fault(Mutant::UndoObjectsOnly, Kind::Unsafe, "two-words", "bytes are lost for ever"),
    fault(
        Mutant::UndoWholeObject,
        Kind::Unsafe,
        "two-words",
        "a thread that had some left takes back more than it charged",
    ),
    fault(Mutant::LookThenAdd, Kind::Unsafe, "two-threads", "two threads see the same room"),
    fault(Mutant::ObjectsOnly, Kind::Unsafe, "two-words", "few objects, many bytes"),
    fault(Mutant::BytesOnly, Kind::Unsafe, "two-words", "few bytes, many objects"),
    fault(Mutant::HugeAnytime, Kind::Unsafe, "huge", "beside all that waits"),
    fault(
        Mutant::HugeKeepsStock,
        Kind::Harmless,
        "huge",
        "it does not fit beside its own thread's stock: it is freed after a wait",
    ),
    fault(Mutant::GiveBackTwice, Kind::Unsafe, "stocks", "the same room is used twice"),
    fault(
        Mutant::WorkerFillsStock,
        Kind::Unsafe,
        "stocks",
        "a thread that has ended gives nothing back",
    ),
    fault(Mutant::GiveBackEarly, Kind::Unsafe, "two-threads", "more waits than is charged"),
    fault(
        Mutant::NoUncharged,
        Kind::Unsafe,
        "again",
        "a callback runs inside of itself, as often as it queues itself",
    ),
    fault(Mutant::WaitInSection, Kind::Stuck, "two-threads", "for itself"),
    fault(Mutant::FreeInSection, Kind::Unsafe, "two-threads", "under its own section"),
    fault(Mutant::FreeWithoutWaiting, Kind::Unsafe, "two-threads", "under another's section"),
    fault(
        Mutant::WaitForRoom,
        Kind::Stuck,
        "blocked",
        "all of it may be what a callback that blocks was charged",
    ),
    fault(
        Mutant::WaitForRunner,
        Kind::Stuck,
        "blocked",
        "the callback that is run there may wait for this very thread",
    ),
    fault(
        Mutant::NoRunAfterWaiting,
        Kind::Harmless,
        "two-threads",
        "each object at the limit costs a grace period: slower, that is all",
    ),
    fault(Mutant::SecondLoan, Kind::Unsafe, "one-section", "a section retires without bound"),
    fault(Mutant::LoanNotOwed, Kind::Unsafe, "one-section", "the same"),
    fault(
        Mutant::LookBeforeLoan,
        Kind::Unsafe,
        "one-section",
        "without the loan the limit holds: a relaxed load must not find what its own thread has replaced",
    ),
    fault(
        Mutant::NoSettling,
        Kind::Harmless,
        "one-section",
        "the thread remembers, and borrows no more until it has paid: over the limit for longer",
    ),
    fault(Mutant::OverLimitForgotten, Kind::Unsafe, "one-section", "each section borrows anew"),
    fault(
        Mutant::ExitWithoutRunning,
        Kind::Unsafe,
        "short-threads",
        "each of many short threads leaves an object over the limit",
    ),
    fault(Mutant::ExitKeepsStock, Kind::Unsafe, "stocks", "room is lost for ever"),
    fault(
        Mutant::RunnerLeavesOrphan,
        Kind::Unsafe,
        "short-threads",
        "the same as ending without running, if the queue was being run just then",
    ),
];
