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
    MoveRemovesFirst,
    MoveReadFromTheEnd,
    MoveWaitsTooEarly,
    MoveWithoutGracePeriod,
}

impl Mutant {
    /// The mutants that are a different program, rather than a different step.
    pub(crate) fn rewrite(self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        let mut turned = |is_one: fn(&Op) -> bool| {
            for thread in &mut scenario.threads {
                if let Some(at) = thread.program.windows(2).position(|two| two.iter().all(is_one)) {
                    thread.program.swap(at, at + 1);
                }
            }
        };
        match self {
            Self::MoveRemovesFirst => turned(|op| matches!(op, Op::Publish(..))),
            Self::MoveReadFromTheEnd => turned(|op| matches!(op, Op::Follow(_))),
            Self::MoveWaitsTooEarly => {
                for thread in &mut scenario.threads {
                    if let Some(at) = thread.program.iter().position(|op| *op == Op::Request) {
                        thread.program[at - 1..=at + 1].rotate_left(1);
                    }
                }
            }
            Self::MoveWithoutGracePeriod => {
                let stays = |op: &Op| !matches!(op, Op::Request | Op::Wait);
                scenario.threads.iter_mut().for_each(|thread| thread.program.retain(stays));
            }
            _ => {}
        }
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
