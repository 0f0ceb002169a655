//! Faults: restartable sequences, and what is built on them, with one step left out or misplaced;
//! and kernels that promise less.

use serde::Deserialize;

use crate::harness::kebab;

/// What is left out or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutant {
    /// A kernel that does not abort a section at preemption.
    NoAbortAtPreemption,
    /// A kernel that does not abort a section when a signal is delivered.
    NoAbortBySignal,
    /// An allocator that unmaps what is freed at once.
    UnmappedAtOnce,
    /// The writer executes no barrier.
    NoBarrier,
    /// The writer's barrier is `membarrier(PRIVATE_EXPEDITED)`, which aborts nothing.
    PlainBarrier,
    /// The writer's barrier is a full fence of its own.
    OwnFenceOnly,
    /// The barrier comes before the pointer is swapped, or the flag is set.
    BarrierFirst,
    /// The old object is freed, and then comes the barrier.
    FreeFirst,
    /// The only writer loads and stores in place of a swap.
    PlainStore,
    /// The swap is relaxed.
    RelaxedSwap,
    /// Readers load the pointer relaxed.
    RelaxedPointer,
    /// The pointer is loaded before `rseq_cs` is stored.
    PointerBeforeArm,
    /// The pointer is loaded after `rseq_cs` is stored, and before the section's first instruction.
    PointerBeforeStart,
    /// After an abort the section begins again without a new store to `rseq_cs`.
    AbortToStart,
    /// After an abort the section continues with the pointer it has.
    AbortKeepsPointer,
    /// The section ends before its last access.
    CommitTooEarly,
    /// A reference is dropped by a relaxed decrement.
    RelaxedDrop,
    /// The writer does not look for guards.
    NoLook,
    /// Both sums are made before the barrier.
    LocksBeforeBarrier,
    /// Locks are summed before the barrier, and unlocks after it.
    LocksFirst,
    /// Both sums are made after the barrier, unlocks first.
    UnlocksAfterBarrier,
    /// Both sums are made after the barrier, locks first.
    LocksFirstAfterBarrier,
    /// One index is looked at.
    FirstIndexOnly,
    /// No light fence, neither after lock nor before unlock, nor between unlock and a look.
    NoLightFence,
    /// No light fence after a reader has counted itself in.
    NoLightFenceAtLock,
    /// No light fence before a reader counts itself out.
    NoLightFenceAtUnlock,
    /// A guard loads the pointer before it counts itself in.
    PointerBeforeCount,
    /// A guard reads after it has counted itself out.
    UnlockBeforeRead,
    /// Readers count themselves out by a relaxed store.
    RelaxedUnlock,
    /// Unlocks are summed by relaxed loads.
    RelaxedScan,
    /// The CPU's number is loaded before the section.
    CpuBeforeSection,
    /// A thread without rseq adds to a CPU's word by a locked instruction.
    LockedAddFromElsewhere,
    /// The pointer to the words of CPUs is loaded once, before the fence between the sums.
    CountersOnce,
    /// The shared words are not summed any more once there are words of CPUs.
    SharedForgotten,
    /// The shared words are added to by an instruction that is not locked.
    PlainSharedAdd,
    /// Readers load the pointer to the words of CPUs relaxed.
    RelaxedCounters,
    /// The words of CPUs are installed relaxed.
    RelaxedGrowth,
    /// The flag is looked at before the section.
    FlagBeforeSection,
    /// Readers load the flag relaxed.
    RelaxedFlagLoad,
    /// The writer clears the flag relaxed.
    RelaxedFlagClear,
    /// A reader that found the flag set marks without the mutex.
    SlowWithoutMutex,
    /// Marks are summed before unmarks.
    MarksFirst,
    /// A reader that found the flag set after its mark does not take the mark back.
    MarkKept,
    /// A reader looks at the flag, and then takes its mark back.
    FlagBeforeUnmark,
    /// The writer loads the epoch after it has summed.
    EpochAfterSums,
    /// A reader wakes the writer without a new epoch.
    EpochKept,
    /// The epoch is added to relaxed.
    RelaxedEpoch,
    /// A reader does not wake the writer.
    NoWake,
    /// The counts are summed before the barrier.
    SumFirst,
    /// The sum is added to the word by a load and a store.
    SumInTwoSteps,
    /// The word begins at 1.
    NoBias,
    /// The sum is added relaxed.
    RelaxedKill,
    /// A thread without rseq counts on a shared word, looks, and takes back what it has counted.
    CountThenLook,
    /// The words keep what they have when they are summed.
    WordsKept,
    /// On the portable path words are summed and set to zero, not exchanged for the mark that they
    /// are gone.
    NotGone,
    /// On the portable path additions and exchanges are relaxed.
    RelaxedExchange,
    /// On the portable path the words are put back into their place before they are zero.
    PlaceBeforeZero,
    /// The words are taken out of their place before the lock says that it is stopped.
    StoppedLate,
    /// A reader that was asked to wait does not look once more under the mutex.
    NoSecondTry,
    /// Readers that wait are let go on without being counted.
    WaitersNotCounted,
    /// A reader that finds the words gone counts itself by a relaxed instruction.
    RelaxedBegin,
    /// A put does not ask whether it was killed.
    PutUnchecked,
}

impl Mutant {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::NoBarrier => "no-restart-barrier".to_owned(),
            Self::PlainBarrier => "plain-barrier".to_owned(),
            Self::NoLook => "no-fallback-look".to_owned(),
            other => format!("restart-{}", kebab(&other)),
        }
    }
}
