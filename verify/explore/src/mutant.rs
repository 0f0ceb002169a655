//! Mutants: the protocol with one step removed, weakened or misplaced. Each must be found.
//!
//! The machine stays the real one. A fault that would be the machine's is made by driving it
//! wrongly.

use serde::Deserialize;

use crate::scenario::{Op, Scenario, Thread};

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
        for Thread { program, .. } in &mut scenario.threads {
            match self {
                Self::MoveRemovesFirst => {
                    turn(program, |two| matches!(two, [Op::Publish(..), Op::Publish(..)]));
                }
                Self::MoveReadFromTheEnd => {
                    turn(program, |two| matches!(two, [Op::Follow(_), Op::Follow(_)]));
                }
                Self::RequestBeforePublication => turn(program, |two| {
                    matches!(two, [Op::Swap(_) | Op::Store(_) | Op::Set(..), Op::Request])
                }),
                Self::MoveWaitsTooEarly => {
                    if let Some(at) = program.iter().position(|op| *op == Op::Request) {
                        program[at - 1..=at + 1].rotate_left(1);
                    }
                }
                Self::MoveWithoutGracePeriod => {
                    program.retain(|op| !matches!(op, Op::Request | Op::Wait));
                }
                _ => {}
            }
        }
        scenario
    }
}

/// Exchanges the operations of each pair of which this holds.
fn turn(program: &mut [Op], holds: fn(&[Op]) -> bool) {
    let mut at = 1;
    while at < program.len() {
        if holds(&program[at - 1..=at]) {
            program.swap(at - 1, at);
            at += 1;
        }
        at += 1;
    }
}
