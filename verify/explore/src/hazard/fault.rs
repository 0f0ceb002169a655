//! Steps that are left out or weakened, and what comes of each.

use crate::harness;

/// A step that is left out or weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
}

/// What is known about a mutant.
pub type Fault = harness::Fault<Mutant>;

harness::faults! {
    NoRecheck Unsafe Both "two-readers"
        "the object was retired, and scanned for, before the slot named it";
    NoFence Unsafe Both "two-readers"
        "the reader's slot is in its store buffer while the slots are scanned";
    OwnFenceOnly Unsafe Both "two-readers" "the same";
    NoReaderFence Unsafe Both "portable-two-readers" "the same";
    ScanFirst Unsafe Both "two-readers" "a slot is stored after the scan";
    BlocksFirst Unsafe WeakOnly "late-readers"
        "a block comes after the list was taken, and its reader does not see what was unlinked";
    SkipBlock Unsafe Both "two-readers" "the second reader is overlooked";
    SkipSlot Unsafe Both "two-slots" "the second guard of the first reader is overlooked";
    EarlyCookie Unsafe Both "two-readers" "the fence was executed before the object was unlinked";
    RelaxedPoll Unsafe WeakOnly "two-readers"
        "what the fence has made visible is not there for the scan";
    RelaxedComplete Harmless Neither "two-readers"
        "the heavy fence before it is a release fence as well";
    RelaxedProtect Unsafe WeakOnly "two-reads"
        "the scan finds the next protection, which says nothing of the read before it";
    RelaxedRelease Unsafe WeakOnly "two-readers" "nothing orders a read before the free";
    RelaxedScan Unsafe WeakOnly "two-readers" "the same";
    RelaxedRescan Unsafe WeakOnly "two-readers" "the same";
    RelaxedOwner Unsafe WeakOnly "handed-over"
        "the scan finds the owner's next protection, which says nothing of the other thread's read";
    Reuse Unsafe WeakOnly "handed-over" "the same";
    Release Unsafe WeakOnly "two-readers" "nothing orders a read before the free";
    BlindOwner Unsafe Both "two-slots" "the slot still protects what another thread reads";
    KeptLost Unsafe Both "two-readers" "it is never freed";
    KeptFreed Unsafe Both "two-readers" "the guard is still there";
    RelaxedKeep Unsafe WeakOnly "third-driver"
        "the worker finds the slot as it was before the fence";
    RelaxedTake Unsafe WeakOnly "third-driver" "the same";
    LateCount Unsafe Both "clone" "the object may be gone before it is counted";
    CopiedProtection Unsafe Both "clone"
        "the scan looks at the second slot before the copy, and at the first one after its end";
}
