//! Faults: bounded memory with one rule left out, and what comes of it.

use serde::Deserialize;

/// What is left out or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
