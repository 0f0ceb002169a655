//! Steps that are left out or weakened, and what comes of each.

use serde::Deserialize;

/// A step that is left out or weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutant {
    /// The reader does not load the pointer again.
    NoRecheck,
    /// The grace period executes no fence.
    NoFence,
    /// It executes one that reaches no reader.
    OwnFenceOnly,
    /// Without membarrier, the reader executes none.
    NoReaderFence,
    /// The slots are scanned before the grace period has ended.
    ScanFirst,
    /// The list of blocks is taken before the grace period has ended.
    BlocksFirst,
    /// The scan looks at the first block only.
    SkipBlock,
    /// It looks at the first slot of each block only.
    SkipSlot,
    /// A batch has a cookie from before its objects were unlinked.
    EarlyCookie,
    /// The grace period is polled by a relaxed load.
    RelaxedPoll,
    /// Its driver says by a relaxed store that it has ended.
    RelaxedComplete,
    /// A slot gets its object by a relaxed store.
    RelaxedProtect,
    /// A slot is given back by a relaxed store.
    RelaxedRelease,
    /// The scan looks at slots by relaxed loads.
    RelaxedScan,
    /// The second scan does, of what is kept.
    RelaxedRescan,
    /// The owner takes a slot that it finds free by a relaxed load.
    RelaxedOwner,
    /// Both of the owner's, of a slot: the look at it and the protection.
    Reuse,
    /// Both of the end: the store, and the scan's load.
    Release,
    /// The owner takes its first slot without a look at it.
    BlindOwner,
    /// What is protected is scanned by none again.
    KeptLost,
    /// It is freed by the worker without another scan.
    KeptFreed,
    /// It is given to the worker by a relaxed exchange.
    RelaxedKeep,
    /// The worker takes it by a relaxed exchange.
    RelaxedTake,
    /// A reference is counted after the slot was given back.
    LateCount,
    /// In place of a reference, a second slot gets the object; then the first is given back.
    CopiedProtection,
    /// The updater of `compat` pushes what it retires by a relaxed exchange.
    RelaxedPush,
    /// The runner takes all that was retired by a relaxed exchange.
    RelaxedPop,
    /// The updater that retires onto an empty stack does not ask for the runner.
    NoWake,
    /// The runner falls asleep by a plain store.
    BlindSleep,
}
