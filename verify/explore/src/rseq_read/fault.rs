//! Faults: restartable sequences, and what is built on them, with one step left out or misplaced;
//! and kernels that promise less.

use crate::harness::{self, kebab};

macro_rules! mutants {
    ($($(#[$about:meta])* $mutant:ident,)*) => {
        /// What is left out or done wrongly.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Mutant {
            $($(#[$about])* $mutant,)*
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$mutant,)*];
        }
    };
}

mutants! {
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

/// What is known about a mutant in a scenario.
pub type Fault = harness::Fault<Mutant>;

harness::faults! {
    NoAbortAtPreemption Unsafe Both ["snapshot-one-cpu" "counts"
        "counts-in-two-steps" "snapshot" "local-global" "exact" "big-ref"]
        "a section goes on after the barrier, which does not interrupt who does not run; or on another \
         CPU than the one whose number it has";
    NoAbortBySignal Unsafe Both ["counts-in-two-steps"]
        "what the handler adds between the load and the store is lost";
    NoAbortBySignal Harmless Neither ["counts" "snapshot"]
        "a handler that returns to the same instruction has not let anybody else run there";
    UnmappedAtOnce Unsafe Both ["snapshot-page-fault"]
        "a page fault outlasts the barrier: the kernel looks for the mapping before it aborts";
    NoBarrier Unsafe Both ["snapshot" "guard" "growing-small" "local-global" "exact"
        "big-ref"]
        "nobody is stopped, and nothing is ordered";
    PlainBarrier Unsafe Both ["snapshot" "guard" "local-global" "exact" "big-ref"]
        "a section that has looked already goes on";
    OwnFenceOnly Unsafe Both ["snapshot" "local-global" "exact" "big-ref"]
        "the same";
    BarrierFirst Unsafe Both ["snapshot" "local-global" "exact" "big-ref"]
        "a section begins between the barrier and what it is to see";
    FreeFirst Unsafe Both ["snapshot"]
        "a section has the pointer";
    PlainStore Harmless Neither ["snapshot"]
        "the barrier is a full fence: where there is one writer, a swap is not needed";
    RelaxedSwap Unsafe WeakOnly ["snapshot"]
        "a reader finds an object that it does not see initialised";
    RelaxedPointer Unsafe WeakOnly ["snapshot"]
        "the same";
    PointerBeforeArm Unsafe Both ["snapshot"]
        "between the load and the section nothing is aborted";
    PointerBeforeStart Unsafe Both ["snapshot"]
        "the kernel clears rseq_cs and aborts nothing: the program counter is not in the section yet";
    AbortToStart Unsafe Both ["snapshot-two-updates" "snapshot-crowded"]
        "the kernel has cleared rseq_cs: the second try is protected by nothing";
    AbortKeepsPointer Unsafe Both ["snapshot"]
        "the pointer may be of before the barrier";
    CommitTooEarly Unsafe Both ["snapshot"]
        "the access after the section is not protected";
    RelaxedDrop Unsafe WeakOnly ["big-ref-two-who-stay"]
        "a holder's reads may come after it has let go";
    NoLook Unsafe Both ["guard"]
        "a reader in a guard is not aborted";
    LocksBeforeBarrier Unsafe Both ["guard"]
        "the lock of a reader that has the pointer is in a store buffer";
    LocksFirst Unsafe Both ["guard-two-reads" "guard"]
        "a reader that comes and goes between the sums makes up for one that stays";
    UnlocksAfterBarrier Harmless Neither ["guard" "guard-two-updates"]
        "with release and acquire, whoever sees an unlock sees its lock";
    LocksFirstAfterBarrier Unsafe Both ["guard-two-readers"]
        "a reader that comes and goes between the sums makes up for one that stays";
    FirstIndexOnly Unsafe Both ["guard-two-reads"]
        "a guard is in the other index";
    NoLightFence Unsafe Both ["guard-portable" "growing-portable"]
        "the reader's count is in its store buffer while it loads the old pointer";
    NoLightFence Stuck WeakOnly ["local-global-portable"]
        "on x86 a locked unmark is a fence. Elsewhere: the unmark is in a store buffer while the flag \
         is looked at: nobody wakes the writer";
    NoLightFenceAtUnlock Harmless Neither ["guard-portable"]
        "release and acquire of the unlock order what it orders";
    PointerBeforeCount Unsafe Both ["guard" "guard-portable"]
        "nobody knows of the reader yet";
    UnlockBeforeRead Unsafe Both ["guard" "guard-portable"]
        "nobody knows of the reader any more";
    RelaxedUnlock Harmless Neither ["guard" "big-ref"]
        "the heavy fence after the sum of unlocks, or before that of counts, orders the reads before it";
    RelaxedUnlock Unsafe WeakOnly ["local-global"]
        "the reads may come after the unmark, and no fence follows";
    RelaxedScan Harmless Neither ["guard"]
        "the heavy fence after the sum of unlocks orders what it orders";
    RelaxedScan Unsafe WeakOnly ["local-global"]
        "no fence follows: the writer does not see that the reads are over";
    CpuBeforeSection Unsafe Both ["counts" "counts-in-two-steps"]
        "the word is of another CPU by then";
    LockedAddFromElsewhere Unsafe Both ["counts-strangers"]
        "the owner's instruction is not locked: it loads, and stores later";
    CountersOnce Unsafe Both ["growing-straggler"]
        "a reader that counted itself in on words that were installed meanwhile is overlooked";
    SharedForgotten Unsafe Both ["growing-small"]
        "a reader that counted itself in on the shared words is overlooked";
    PlainSharedAdd Unsafe Both ["counts-strangers"]
        "two CPUs add at once";
    RelaxedCounters Unsafe WeakOnly ["growing-small"]
        "the words are touched before they are there";
    RelaxedGrowth Unsafe WeakOnly ["growing-small"]
        "the same";
    FlagBeforeSection Unsafe Both ["local-global" "exact" "big-ref"]
        "the flag is set, and the barrier over, before the section begins";
    RelaxedFlagLoad Unsafe WeakOnly ["local-global" "local-global-again"]
        "a reader sees that the writer has gone, and not what it has written";
    RelaxedFlagClear Unsafe WeakOnly ["local-global"]
        "the same";
    SlowWithoutMutex Unsafe Both ["local-global" "exact"]
        "a reader enters while the writer is in";
    MarksFirst Harmless Neither ["local-global" "local-global-again"]
        "after the barrier nobody marks any more: one of the sums stands still";
    MarksFirst Unsafe Both ["local-global-portable-two-readers" "local-global-stranger"]
        "a mark that is taken back between the sums makes up for one that stays";
    NoLightFenceAtLock Unsafe WeakOnly ["local-global-portable"]
        "on x86 a locked mark is a fence. Elsewhere: the mark is in a store buffer while the flag is \
         looked at";
    MarkKept Stuck Both ["local-global-portable"]
        "the writer waits for it";
    FlagBeforeUnmark Stuck Both ["local-global"]
        "the writer goes to sleep in between, and nobody wakes it";
    EpochAfterSums Stuck Both ["local-global"]
        "the wake-up came between the sums and the load";
    EpochKept Stuck Both ["local-global"]
        "the wake-up came between the sums and the sleep";
    RelaxedEpoch Stuck WeakOnly ["local-global"]
        "the writer sees the new epoch, and not the unmark before it";
    NoWake Stuck Both ["local-global"]
        "nobody wakes the writer";
    SumFirst Unsafe Both ["exact" "big-ref"]
        "a section counts after the sum";
    SumInTwoSteps Unsafe Both ["big-ref"]
        "what is put on the word in between is lost";
    NoBias Unsafe Both ["big-ref"]
        "the word reaches 0 before what was counted has arrived on it";
    RelaxedKill Unsafe WeakOnly ["big-ref"]
        "whoever releases does not see that others' reads are over";
    CountThenLook Unsafe Both ["big-ref-stranger-alone"]
        "the sum falls between what was counted and its taking back: one too many, or too few, for ever";
    PutUnchecked Unsafe Both ["big-ref"]
        "it is put where nobody counts any more: never released";
    NoBarrier Unsafe Both ["fold" "fold-lock"]
        "a section adds after the words were summed";
    PlainBarrier Unsafe Both ["fold" "fold-lock"]
        "the same";
    BarrierFirst Unsafe Both ["fold" "fold-lock"]
        "the same";
    SumFirst Unsafe Both ["fold" "fold-lock"]
        "the same";
    FlagBeforeSection Unsafe Both ["fold" "fold-lock"]
        "the same";
    NoAbortAtPreemption Unsafe Both ["fold" "fold-lock"]
        "the same";
    WordsKept Unsafe Both ["fold-twice"]
        "what is in them is summed again";
    RelaxedFlagLoad Unsafe WeakOnly ["fold-lock-again"]
        "a reader finds the words again, and not what the writer has written";
    RelaxedFlagClear Unsafe WeakOnly ["fold-lock-again"]
        "the same";
    RelaxedFlagLoad Unsafe WeakOnly ["fold-twice"]
        "a thread finds the words again, and not that they are zero";
    RelaxedFlagClear Unsafe WeakOnly ["fold-twice"]
        "the same";
    RelaxedBegin Unsafe WeakOnly ["fold-lock-again"]
        "a reader sees that the writer has gone, and not what it has written";
    StoppedLate Harmless Neither ["fold-lock"]
        "a reader that finds the words gone counts on the word, which is looked at afterwards";
    NoSecondTry Stuck Both ["fold-lock"]
        "the writer has gone between the look and the mutex: nobody lets the reader go on";
    WaitersNotCounted Unsafe Both ["fold-lock"]
        "a reader goes in that nobody knows of, and takes away what it has not added";
    RelaxedDrop Unsafe WeakOnly ["fold-lock"]
        "the reads may come after it";
    RelaxedScan Unsafe WeakOnly ["fold-lock"]
        "the writer does not see that the reads are over";
    EpochAfterSums Stuck Both ["fold-lock"]
        "the wake-up came between the look and the load";
    EpochKept Stuck Both ["fold-lock"]
        "the wake-up came between the look and the sleep";
    RelaxedEpoch Stuck WeakOnly ["fold-lock"]
        "the writer sees the new epoch, and not the end before it";
    NoWake Stuck Both ["fold-lock"]
        "nobody wakes the writer";
    NotGone Unsafe Both ["fold-portable" "fold-lock-portable"]
        "who has found the words already adds after they were summed";
    RelaxedExchange Unsafe WeakOnly ["fold-lock-portable"]
        "nothing orders what readers read before what the writer writes, or the other way round";
    RelaxedExchange Harmless Neither ["fold-portable"]
        "a sum needs no more than each word's own order";
    PlaceBeforeZero Harmless Neither ["fold-portable" "fold-lock-portable"]
        "a word that is gone still sends those who find it to the one word";
}
