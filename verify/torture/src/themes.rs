//! What a run is about: themes, each with threads of its own, and which of them take part.

use std::ops::RangeInclusive;

use clap::ValueEnum;
use serde::Serialize;

use crate::kinds::{Named, Operation};

/// What some threads of a run are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Theme {
    /// Readers and updaters of every kind; blocks with an age
    Readers,
    /// Callbacks queued as fast as possible, in every form
    Floods,
    /// Domains with room for only a few objects, or 1 MiB
    Limits,
    /// Deferred memory is freed in time without further calls
    Quiet,
    /// Readers that block, and readers of low priority
    Stalls,
    /// Threads that live only for a moment
    Churn,
    /// Child processes: stopped and continued; one forks
    Processes,
    /// Sleepable domains: sections across threads and tasks
    Sleepable,
    /// Restartable reads: Snapshot
    RseqRead,
    /// Sequence locks and latches
    Sequences,
    /// Hazard pointers: ArcCell, its guards, bare pointers
    Hazards,
    /// Cells with exact counts: ExactCell
    Exact,
    /// Tagged atomic pointers and guards: quiescence::epoch
    Epoch,
    /// Per-CPU tools: counters, BigRef, LocalGlobalLock
    Tools,
    /// Lists, queues and stacks of values
    Lists,
    /// Id tables: ids, marks, and reused indexes
    Ids,
    /// Maps: every operation; the histories are checked
    Maps,
    /// Storms of forks; in a child process unless asked for
    Forks,
}

impl Theme {
    /// What its threads do, each within a few seconds. Others it may do as well.
    fn operations(self) -> RangeInclusive<usize> {
        use Operation as O;
        let (first, last) = match self {
            Self::Readers => return RangeInclusive::new(1, 0),
            Self::Floods => (O::Box, O::DeferBarrier),
            Self::Limits => (O::Blocked, O::LargeClosure),
            Self::Quiet => (O::LeftAlone, O::LastWords),
            Self::Stalls => (O::Blocked, O::Blocked),
            Self::Churn => (O::ShortThread, O::ShortThread),
            Self::Processes => (O::ChildStart, O::Stopped),
            Self::Sleepable => (O::Grown, O::Abandoned),
            Self::RseqRead => (O::SnapshotLoad, O::SnapshotUpdate),
            Self::Sequences => (O::SeqRead, O::LatchWrite),
            Self::Hazards => (O::ArcLoad, O::HazardDomainEnd),
            Self::Exact => (O::ExactLoad, O::ExactShared),
            Self::Epoch => (O::EpochPin, O::EpochFlush),
            Self::Tools => (O::CounterAdd, O::LockElsewhere),
            Self::Lists => (O::ListRead, O::StackAll),
            Self::Ids => (O::IdUse, O::IdSearch),
            Self::Maps => (O::MapGet, O::MapEnd),
            Self::Forks => (O::Fork, O::Fork),
        };
        first.index()..=last.index()
    }

    /// Whether its threads are moved and interrupted.
    fn is_moved(self) -> bool {
        (Self::Sleepable as usize..=Self::Ids as usize).contains(&(self as usize))
    }
}

/// Some themes, each once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Themes(pub(crate) Vec<Theme>);

impl Themes {
    /// The themes in the order in which they are declared; of an empty list all but the forks.
    pub(crate) fn new(asked: &[Theme]) -> Self {
        let is_asked = |theme: &&Theme| match asked {
            [] => **theme != Theme::Forks,
            asked => asked.contains(theme),
        };
        Self(Theme::value_variants().iter().filter(is_asked).copied().collect())
    }

    pub(crate) fn has(&self, theme: Theme) -> bool {
        self.0.contains(&theme)
    }

    /// Whether one of them has this done.
    pub(crate) fn have(&self, operation: Operation) -> bool {
        let of_movers = matches!(operation, Operation::Shuffled | Operation::Signalled);
        self.0.iter().any(|theme| {
            theme.operations().contains(&operation.index()) || of_movers && theme.is_moved()
        })
    }

    /// Their names, as they are asked for.
    pub(crate) fn names(&self) -> Vec<String> {
        let name =
            |theme: &Theme| theme.to_possible_value().map(|value| value.get_name().to_owned());
        self.0.iter().filter_map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn themes_have_an_order_and_come_once() {
        let themes = Themes::new(&[Theme::Quiet, Theme::Readers, Theme::Quiet]);
        assert_eq!(themes.names(), ["readers", "quiet"]);
        assert!(!Themes::new(&[]).has(Theme::Forks), "nobody forks in the main process");
        assert_eq!(Themes::new(&[]).names().len(), Theme::value_variants().len() - 1);
    }

    /// Else no test would miss it.
    #[test]
    fn each_operation_that_is_not_rare_is_a_themes() {
        let all = Themes::new(Theme::value_variants());
        let rare = [Operation::LowPriority, Operation::Tune, Operation::MapRefused];
        for operation in Operation::ALL {
            assert_eq!(all.have(*operation), !rare.contains(operation), "{operation:?}");
        }
    }
}
