//! Mutants: the protocol with one step removed, weakened or misplaced. Each must be found.
//!
//! The machine stays the real one. A fault that would be the machine's is made by driving it
//! wrongly.

use serde::Deserialize;

use crate::scenario::{Op, Scenario};

/// A fault: `worlds/grace_periods.toml` says what each is.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutant {
    NoHeavyFence,
    OwnFenceOnly,
    NoLightFenceAtLock,
    FenceBeforePublication,
    RelaxedUnlock,
    RelaxedLock,
    RelaxedNestedLock,
    RelaxedScan,
    NoScan,
    ScanFirstReaderOnly,
    NestedUnlockEnds,
    RelaxedNumberLoad,
    RelaxedAnnounce,
    AnnounceBeforeFence,
    OnePassAfterATurn,
    PhaseBit,
    CompletedBeforeScan,
    RelaxedComplete,
    RelaxedPoll,
    AlwaysAlone,
    AloneWithoutLock,
    NoRegistration,
    RegisterWithoutFence,
    NoFenceBeforeSecondLook,
    MarkAfterFence,
    NoSecondLook,
    NoLightFenceAtUnlock,
    OwnFenceBeforeSleep,
    NoWakeUp,
    MarkCountedTwice,
    ForgottenMark,
    RelaxedCount,
    RelaxedMarkTake,
    RelaxedWakeLoad,
    OnlineWithoutFence,
    RequestBeforePublication,
    ServedByThePresent,
    RelaxedPublication,
    RelaxedPointerLoad,
    NobodyIsNotified,
    SupersededDriverReports,
    SupersededDriverMarks,
    MarksOutliveTheirDriver,
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
