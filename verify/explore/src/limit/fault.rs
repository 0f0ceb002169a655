//! Faults: bounded memory with one rule left out, and what comes of it.

use crate::harness;

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

/// What is known about a mutant. [`Kind::Unsafe`](crate::Kind::Unsafe) is any promise that is
/// broken.
pub type Fault = harness::Fault<Mutant>;

harness::faults! {
    NoUndo Unsafe Both "two-threads" "room is lost for ever";
    UndoObjectsOnly Unsafe Both "two-words" "bytes are lost for ever";
    UndoWholeObject Unsafe Both "two-words"
        "a thread that had some left takes back more than it charged";
    LookThenAdd Unsafe Both "two-threads" "two threads see the same room";
    ObjectsOnly Unsafe Both "two-words" "few objects, many bytes";
    BytesOnly Unsafe Both "two-words" "few bytes, many objects";
    HugeAnytime Unsafe Both "huge" "beside all that waits";
    HugeKeepsStock Harmless Neither "huge"
        "it does not fit beside its own thread's stock: it is freed after a wait";
    GiveBackTwice Unsafe Both "stocks" "the same room is used twice";
    WorkerFillsStock Unsafe Both "stocks" "a thread that has ended gives nothing back";
    GiveBackEarly Unsafe Both "two-threads" "more waits than is charged";
    NoUncharged Unsafe Both "again"
        "a callback runs inside of itself, as often as it queues itself";
    WaitInSection Stuck Both "two-threads" "for itself";
    FreeInSection Unsafe Both "two-threads" "under its own section";
    FreeWithoutWaiting Unsafe Both "two-threads" "under another's section";
    WaitForRoom Stuck Both "blocked" "all of it may be what a callback that blocks was charged";
    WaitForRunner Stuck Both "blocked"
        "the callback that is run there may wait for this very thread";
    NoRunAfterWaiting Harmless Neither "two-threads"
        "each object at the limit costs a grace period: slower, that is all";
    SecondLoan Unsafe Both "one-section" "a section retires without bound";
    LoanNotOwed Unsafe Both "one-section" "the same";
    LookBeforeLoan Unsafe Both "one-section"
        "without the loan the limit holds: a relaxed load must not find what its own thread has \
         replaced";
    NoSettling Harmless Neither "one-section"
        "the thread remembers, and borrows no more until it has paid: over the limit for longer";
    OverLimitForgotten Unsafe Both "one-section" "each section borrows anew";
    ExitWithoutRunning Unsafe Both "short-threads"
        "each of many short threads leaves an object over the limit";
    ExitKeepsStock Unsafe Both "stocks" "room is lost for ever";
    RunnerLeavesOrphan Unsafe Both "short-threads"
        "the same as ending without running, if the queue was being run just then";
}
