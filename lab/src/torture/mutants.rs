//! The steps that can be removed, by name: the proof that the torture would notice.
//!
//! Most are removed inside the library (`quiescence_chaos::chaos::Mutant`); two are mistakes of a
//! user of RCU, made by the torture itself.

use quiescence_chaos::PerCpuPath::{self, Portable, Restartable};
use quiescence_chaos::chaos::{self, Mutant};

use crate::exit::Failure;

use super::themes::Theme;

/// A mistake that the torture itself makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// An updater publishes a block and writes its payload only then.
    PublishBeforeInit,
    /// A reader looks at a block once more after it has left its section.
    LeaveEarly,
}

/// Where the step is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Library(Mutant),
    Torture(Bug),
}

/// A removed step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removed {
    pub(super) name: &'static str,
    /// What notices that it is missing.
    pub(super) theme: Theme,
    /// How the process must count for the step to be taken at all.
    pub(super) per_cpu: Option<PerCpuPath>,
    place: Place,
}

const fn library(name: &'static str, mutant: Mutant) -> Removed {
    of(name, mutant, Theme::Readers)
}

const fn of(name: &'static str, mutant: Mutant, theme: Theme) -> Removed {
    Removed { name, theme, per_cpu: None, place: Place::Library(mutant) }
}

const fn on(path: PerCpuPath, name: &'static str, mutant: Mutant, theme: Theme) -> Removed {
    Removed { name, theme, per_cpu: Some(path), place: Place::Library(mutant) }
}

const fn torture(name: &'static str, bug: Bug) -> Removed {
    Removed { name, theme: Theme::Readers, per_cpu: None, place: Place::Torture(bug) }
}

/// Every step that can be removed. Each is caught within 30 s, each time.
const MUTANTS: &[Removed] = &[
    library("no-wait", Mutant::NoWait),
    library("skip-last-reader", Mutant::SkipLastReader),
    library("no-registration", Mutant::NoRegistration),
    library("no-wake-up", Mutant::NoWakeUp),
    library("no-second-look", Mutant::NoSecondLook),
    library("lost-mark", Mutant::LostMark),
    library("phase-bit", Mutant::PhaseBit),
    library("nested-unlock", Mutant::NestedUnlock),
    library("early-cookie", Mutant::EarlyCookie),
    library("early-callbacks", Mutant::EarlyCallbacks),
    library("retire-before-unlink", Mutant::RetireBeforeUnlink),
    library("no-barrier", Mutant::NoBarrier),
    library("always-alone", Mutant::AlwaysAlone),
    library("no-sharing", Mutant::NoSharing),
    torture("publish-before-init", Bug::PublishBeforeInit),
    torture("leave-early", Bug::LeaveEarly),
    of("no-limit", Mutant::NoLimit, Theme::Limits),
    of("no-refusal", Mutant::NoRefusal, Theme::Limits),
    of("no-settle", Mutant::NoSettle, Theme::Limits),
    of("uncharged-twice", Mutant::UnchargedTwice, Theme::Limits),
    of("lost-room", Mutant::LostRoom, Theme::Limits),
    of("lost-local-stock", Mutant::LostLocalStock, Theme::Limits),
    of("skip-one", Mutant::SkipOne, Theme::Floods),
    of("lost-tail", Mutant::LostTail, Theme::Quiet),
    of("lazy-forever", Mutant::LazyForever, Theme::Quiet),
    of("no-announcement", Mutant::NoAnnouncement, Theme::Quiet),
    of("runner-after-fork", Mutant::RunnerAfterFork, Theme::Processes),
    of("one-scan", Mutant::OneScan, Theme::Sleepable),
    of("early-hand-out", Mutant::EarlyHandOut, Theme::Sleepable),
    of("no-flip", Mutant::NoFlip, Theme::Sleepable),
    of("locks-first", Mutant::LocksFirst, Theme::Sleepable),
    of("wrong-index", Mutant::WrongIndex, Theme::Sleepable),
    of("shared-only", Mutant::SharedOnly, Theme::Sleepable),
    of("lost-waker", Mutant::LostWaker, Theme::Sleepable),
    on(Restartable, "no-restart", Mutant::NoRestart, Theme::Tools),
    on(Restartable, "plain-barrier", Mutant::PlainBarrier, Theme::RseqRead),
    on(Restartable, "no-restart-barrier", Mutant::NoRestartBarrier, Theme::RseqRead),
    on(Portable, "no-fallback-look", Mutant::NoFallbackLook, Theme::RseqRead),
    of("no-stall-flag", Mutant::NoStallFlag, Theme::Tools),
    on(Restartable, "no-stall-barrier", Mutant::NoStallBarrier, Theme::Tools),
    of("early-release", Mutant::EarlyRelease, Theme::Tools),
    of("no-writer-wake-up", Mutant::NoWriterWakeUp, Theme::Tools),
];

/// The names, in the order of the list.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    MUTANTS.iter().map(|removed| removed.name)
}

/// The step with this name.
pub(super) fn by_name(name: &str) -> Result<Removed, Failure> {
    MUTANTS.iter().find(|removed| removed.name == name).copied().ok_or_else(|| {
        let known = names().collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("there is no mutant {name:?}; there are: {known}"))
    })
}

impl Removed {
    /// Removes the step for the rest of the process, if it is the library's.
    pub(super) fn remove(self) {
        if let Place::Library(mutant) = self.place {
            assert!(chaos::remove_step(mutant), "one step is removed in a process");
        }
    }

    /// The mistake that the torture must make.
    pub(super) fn bug(self) -> Option<Bug> {
        match self.place {
            Place::Library(_) => None,
            Place::Torture(bug) => Some(bug),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_the_library_has_a_name() {
        for mutant in Mutant::ALL {
            let listed = MUTANTS.iter().any(|removed| removed.place == Place::Library(mutant));
            assert!(listed, "{mutant:?}");
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let Err(Failure::Usage(message)) = by_name("no-such") else {
            panic!("a usage error is due");
        };
        assert!(message.contains("no-wake-up"));
    }
}
