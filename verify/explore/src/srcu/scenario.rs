//! Who does what.

use grace::srcu::{AdaptiveDelay, AnyDelay, Published};
use serde::Deserialize;

use crate::machine::Seat;

/// A reader: sections one after the other, each of which reads the published object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Task {
    /// How many.
    pub sections: u8,
    /// How often it may migrate.
    pub migrations: u8,
    /// The CPU it begins on: 0 or 1.
    pub cpu: u8,
}

impl Task {
    pub(super) fn seat(self) -> Seat {
        let Self { sections, migrations, cpu } = self;
        Seat { rounds: sections, cpu, migrations, ..Seat::default() }
    }
}

impl Default for Task {
    fn default() -> Self {
        Self { sections: 1, migrations: 0, cpu: 0 }
    }
}

/// What the worker does between its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delay {
    /// It never waits.
    #[default]
    Spins,
    /// It waits after the first run, with counts.
    Counts,
    /// It naps; few lengths of naps are as good as many.
    Naps,
}

impl Delay {
    pub(super) const fn function(self) -> AnyDelay {
        match self {
            Self::Spins => AnyDelay::Published(Published::V5_18),
            Self::Counts => AnyDelay::Published(Published::V5_19_RC1),
            Self::Naps => AnyDelay::Adaptive(AdaptiveDelay {
                nap_us: 1_000,
                wait_jiffies_max: 1,
                ..AdaptiveDelay::at(1_000)
            }),
        }
    }
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The readers, at most three.
    pub readers: Vec<Task>,
    /// Updates that the worker's CPU makes: publish, a grace period, free.
    pub updates: u8,
    /// Whether another CPU makes one more, at any time.
    #[serde(default)]
    pub other_updater: bool,
    /// The delay function.
    #[serde(default)]
    pub delay: Delay,
}
