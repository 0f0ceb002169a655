//! What a run is about: themes, each with threads of its own, and which of them take part.

use clap::ValueEnum;

/// What some threads of a run are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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
    /// The theme that is asked for by this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::from_str(name, false).ok()
    }
}

/// Some themes, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Themes(Vec<Theme>);

impl Themes {
    /// The themes in the order in which they are declared; of an empty list all but the forks.
    pub(crate) fn new(asked: &[Theme]) -> Self {
        let is_asked = |theme: &&Theme| match asked {
            [] => **theme != Theme::Forks,
            asked => asked.contains(theme),
        };
        Self(Theme::value_variants().iter().filter(is_asked).copied().collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Theme> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn has(&self, theme: Theme) -> bool {
        self.0.contains(&theme)
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
}
