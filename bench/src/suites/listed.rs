//! What `suites.toml` lists: suites with their cases, and the tables of README.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::rounds::Metric;
use super::{Group, cache, compat, readme, scenes, tools};
use crate::Error;

/// All that is listed.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Suites {
    /// A section: to enter it, load the pointer, read its word, leave; also inside another one.
    pub read: Scenes<scenes::What>,
    /// How long a grace period takes.
    pub gp: Scenes<scenes::What>,
    /// The same with more readers than CPUs: what waiting for it costs them.
    pub oversubscribed: Scenes<scenes::What>,
    /// An object of 64 bytes is replaced and the old one retired, and all that comes with it.
    pub update: Scenes<scenes::What>,
    /// Sleepable domains.
    pub srcu: Scenes<scenes::What>,
    /// What is done on the slot of the CPU.
    pub percpu: Scenes<scenes::What>,
    /// An `Arc` in a place where it can be replaced, and hazard pointers.
    pub cells: Scenes<scenes::What>,
    /// The liburcu-compatible libraries beside Debian's.
    pub compat: Scenes<compat::Asked>,
    /// What the place of data in the caches costs.
    pub cache: Scenes<cache::Lesson>,
    /// What each of the transformations of the guide is worth.
    pub tools: Scenes<tools::Tool>,
    /// Of the suites whose cases are computed.
    pub groups: Groups,
    /// What is measured there.
    pub(super) metrics: BTreeMap<&'static str, Vec<Metric>>,
    /// Usually, and quickly.
    pub(super) amounts: [scenes::Amounts; 2],
    /// The tables of README.
    pub readme: Vec<readme::Table>,
}

/// What `--case` takes in the suites of these names.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Groups {
    /// The engines of a domain.
    pub engines: Vec<Group>,
    /// Concurrent maps.
    pub map: Vec<Group>,
}

/// What the file lists.
pub static SUITES: LazyLock<Suites> = LazyLock::new(|| {
    toml::from_str(include_str!("../../suites.toml")).expect("the file is part of the program")
});

/// The tables of a suite, in groups of which `--case` picks. What a table measures is a `W`.
#[derive(Debug, Deserialize)]
pub struct Scenes<W: 'static> {
    /// The name of the suite.
    pub(crate) bench: &'static str,
    /// With whom the others are compared: the first of them that is measured.
    pub(crate) bases: Vec<&'static str>,
    /// What `--case` takes.
    pub groups: Vec<Group>,
    /// By the name of a group, or of those of its tables that have others; or of all.
    metrics: BTreeMap<&'static str, Vec<Metric>>,
    pub(crate) cases: Vec<Scene<W>>,
}

/// One table.
#[derive(Debug, Deserialize)]
pub(crate) struct Scene<W: 'static> {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) what: W,
    /// The name of its metrics, if they are not its group's.
    #[serde(default)]
    metrics: Option<&'static str>,
}

impl<W> Scenes<W> {
    /// The tables of these groups, or all if none is named.
    pub(crate) fn chosen(&self, groups: &[String]) -> Result<Vec<&Scene<W>>, Error> {
        let known: Vec<&str> = self.groups.iter().map(|(name, _)| *name).collect();
        if let Some(wrong) = groups.iter().find(|group| !known.contains(&group.as_str())) {
            let known = known.join(", ");
            return Err(Error::Usage(format!("there is no case {wrong:?}: {known}")));
        }
        let is_wanted = |scene: &&Scene<W>| {
            groups.is_empty() || groups.iter().any(|group| scene.group() == group.as_str())
        };
        Ok(self.cases.iter().filter(is_wanted).collect())
    }

    /// What is measured of each rival in a table.
    pub(crate) fn metrics(&self, scene: &Scene<W>) -> &[Metric] {
        let own = self.metrics.get(scene.metrics.unwrap_or(scene.group()));
        own.unwrap_or_else(|| &self.metrics["all"])
    }
}

impl<W> Scene<W> {
    /// The part of the name that `--case` takes.
    pub(crate) fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every table has a group, metrics and a name of its own, and every group has a table.
    fn is_whole<W>(suite: &Scenes<W>) {
        let ids: BTreeSet<&str> = suite.cases.iter().map(|scene| scene.id).collect();
        assert_eq!(ids.len(), suite.cases.len(), "{}: an id is there twice", suite.bench);
        for scene in &suite.cases {
            assert!(suite.groups.iter().any(|(group, _)| *group == scene.group()), "{}", scene.id);
            assert!(!suite.metrics(scene).is_empty(), "{}", scene.id);
        }
        for (group, _) in &suite.groups {
            assert!(suite.cases.iter().any(|scene| scene.group() == *group), "{group}");
        }
        for name in suite.metrics.keys().filter(|name| **name != "all") {
            let has = |scene: &Scene<W>| scene.metrics.unwrap_or(scene.group()) == *name;
            assert!(suite.cases.iter().any(has), "{}: {name} is of no table", suite.bench);
        }
    }

    #[test]
    fn every_table_has_a_group_and_metrics_and_every_group_has_a_table() {
        for suite in super::super::tests::all_scenes() {
            is_whole(suite);
        }
        is_whole(&SUITES.compat);
        is_whole(&SUITES.cache);
        is_whole(&SUITES.tools);
    }
}
