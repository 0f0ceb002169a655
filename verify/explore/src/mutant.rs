//! Mutants: the protocol with one step removed, weakened or misplaced. Each must be found.
//!
//! The machine stays the real one. A fault that would be the machine's is made by driving it
//! wrongly.

use crate::harness::{Fault, Kind, Models};
use crate::scenario::{Op, Scenario};

macro_rules! mutants {
    ($($variant:ident $name:literal $kind:ident $scenario:literal $models:ident [$($edge:literal)*]
       $reason:literal;)*) => {
        /// A fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Mutant {
            $(#[doc = $reason] $variant,)*
        }

        /// Every mutant, with where it is found.
        pub const MUTANTS: &[Fault<Mutant>] = &[
            $(Fault {
                mutant: Mutant::$variant,
                kind: Kind::$kind,
                scenario: $scenario,
                models: Models::$models,
                reason: $reason,
            },)*
        ];

        impl Mutant {
            /// Its name: that of `verify/mutants/mutants.toml`, if the step is one of the code,
            /// too.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The edges of `docs/ORDERINGS.md` that it takes away.
            pub const fn edges(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($edge),*],)*
                }
            }
        }
    };
}

mutants! {
    NoHeavyFence "no-heavy-fence" Unsafe "one-reader" Both ["GP-1"]
        "The grace period executes no heavy fence.";
    OwnFenceOnly "own-fence-only" Unsafe "one-reader" Both ["GP-1"]
        "In place of the heavy fence the updater executes a full fence of its own.";
    NoLightFenceAtLock "no-light-fence-at-lock" Unsafe "portable" Both ["GP-1"]
        "Without membarrier, lock executes no full fence.";
    FenceBeforePublication "fence-before-publication" Unsafe "one-reader" Both ["GP-1"]
        "The heavy fence comes before the publication.";
    RelaxedUnlock "relaxed-unlock" Unsafe "one-reader" WeakOnly ["GP-2"]
        "Unlock stores the word with relaxed order.";
    RelaxedLock "relaxed-lock" Unsafe "two-sections" WeakOnly ["GP-2"]
        "Lock stores the word with relaxed order: a scan that finds it skips the unlock before it.";
    RelaxedNestedLock "relaxed-nested-lock" Unsafe "nested-second" WeakOnly ["GP-2"]
        "A nested lock stores the word with relaxed order, with the same effect.";
    RelaxedScan "relaxed-scan" Unsafe "one-reader" WeakOnly ["GP-2"]
        "The scan loads words with relaxed order.";
    NoScan "no-scan" Unsafe "one-reader" Both ["GP-2"]
        "The grace period does not look at the readers.";
    ScanFirstReaderOnly "scan-first-reader-only" Unsafe "two-readers" Both ["GP-2"]
        "The scan stops after the first reader.";
    NestedUnlockEnds "nested-unlock-ends" Unsafe "nested" Both ["GP-2"]
        "A nested unlock stores 0 and ends the outer section as well.";
    RelaxedNumberLoad "relaxed-number-load" Unsafe "qsbr" WeakOnly ["GP-3"]
        "Readers load gp.ctr with relaxed order.";
    RelaxedAnnounce "relaxed-announce" Harmless "qsbr" Neither []
        "gp.ctr is stored with relaxed order: the fence before it is a release fence.";
    AnnounceBeforeFence "announce-before-fence" Harmless "one-reader" Neither []
        "The number is announced before the fence: its release and acquire order the publication.";
    OnePassAfterATurn "one-pass-after-a-turn" Unsafe "stalled-for-a-turn" Both []
        "One pass a grace period though numbers have come round.";
    PhaseBit "phase-bit" Unsafe "stalled-for-a-phase" Both []
        "One phase bit in place of a number, and one pass.";
    CompletedBeforeScan "completed-before-scan" Unsafe "polled" Both ["GP-4"]
        "The sequence is made visible before the scan.";
    RelaxedComplete "relaxed-complete" Unsafe "polled" WeakOnly ["GP-4"]
        "The sequence is made visible with relaxed order.";
    RelaxedPoll "relaxed-poll" Unsafe "polled" WeakOnly ["GP-4"]
        "A poll loads the sequence with relaxed order.";
    AlwaysAlone "always-alone" Unsafe "one-reader" Both ["GP-5"]
        "The driver believes that nobody else is registered.";
    AloneWithoutLock "alone-without-lock" Unsafe "late-reader" WeakOnly ["GP-5"]
        "The driver looks at the registry without its lock.";
    NoRegistration "no-registration" Unsafe "late-reader" Both ["GP-5"]
        "A reader does not register.";
    RegisterWithoutFence "register-without-fence" Harmless "late-reader" Neither []
        "Registration executes no full fence: the lock orders all that must be.";
    NoFenceBeforeSecondLook "no-fence-before-second-look" Stuck "sleeper" Both ["GP-6"]
        "No heavy fence between the marks and the second look.";
    MarkAfterFence "mark-after-fence" Stuck "sleeper" Both ["GP-6"]
        "The marks are set after the heavy fence.";
    NoSecondLook "no-second-look" Stuck "sleeper" Both ["GP-6"]
        "The driver sleeps without looking again.";
    NoLightFenceAtUnlock "no-light-fence-at-unlock" Stuck "portable-sleeper" Both ["GP-6"]
        "Without membarrier, unlock executes no full fence before it looks for the mark.";
    OwnFenceBeforeSleep "own-fence-before-sleep" Stuck "qsbr-sleeper" Both ["GP-6"]
        "With QSBR readers only, the sleeper executes its own fence instead of the heavy one.";
    NoWakeUp "no-wake-up" Stuck "sleeper" Both ["GP-7"]
        "Unlock does not look for the mark.";
    MarkCountedTwice "mark-counted-twice" Stuck "sleeper" Both ["GP-7"]
        "Reader and driver both count a mark, whoever took it.";
    ForgottenMark "forgotten-mark" Stuck "slot-handed-on" Both ["GP-7"]
        "Whoever takes over a slot clears the mark that a sleeper has set there.";
    RelaxedCount "relaxed-count" Harmless "sleeper" Neither []
        "wake is decremented with relaxed order: the scan that follows loads the words itself.";
    RelaxedMarkTake "relaxed-mark-take" Harmless "sleeper" Neither []
        "The mark is taken with relaxed order.";
    RelaxedWakeLoad "relaxed-wake-load" Harmless "sleeper" Neither []
        "wake is loaded with relaxed order.";
    OnlineWithoutFence "online-without-fence" Unsafe "qsbr" Both ["GP-8"]
        "A QSBR reader comes online without its full fence.";
    RequestBeforePublication "request-before-publication" Unsafe "two-updaters" Both ["GP-9"]
        "The grace period is requested before the publication.";
    ServedByThePresent "served-by-the-present" Unsafe "two-updaters" Both ["GP-9"]
        "A request is served by the grace period in progress.";
    RelaxedPublication "relaxed-publication" Unsafe "one-reader" WeakOnly ["GP-10"]
        "The pointer is stored with relaxed order.";
    RelaxedPointerLoad "relaxed-pointer-load" Unsafe "one-reader" WeakOnly ["GP-10"]
        "Readers load the pointer with relaxed order and without a dependency.";
    NobodyIsNotified "nobody-is-notified" Stuck "two-updaters" Both []
        "A driver that completes or leaves wakes nobody.";
    SupersededDriverReports "superseded-driver-reports" Unsafe "hand-over" Both []
        "A superseded driver reports what it has found.";
    SupersededDriverMarks "superseded-driver-marks" Stuck "hand-over" Both []
        "A superseded driver scans and marks holdouts.";
    MarksOutliveTheirDriver "marks-outlive-their-driver" Stuck "hand-over" Both []
        "Whoever takes over leaves the marks of the superseded driver, and does not wake it.";
}

impl Mutant {
    /// The mutants that are a different program, rather than a different step.
    pub(crate) fn rewrite(self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        if self == Self::RequestBeforePublication {
            for thread in &mut scenario.threads {
                for at in 1..thread.program.len() {
                    let publishes =
                        matches!(thread.program[at - 1], Op::Swap(_) | Op::Store(_) | Op::Set(..));
                    if publishes && thread.program[at] == Op::Request {
                        thread.program.swap(at - 1, at);
                    }
                }
            }
        }
        scenario
    }
}
