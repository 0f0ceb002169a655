//! How a suite is listed: its cases in groups, what is measured of each, and how much.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::rounds::Metric;
use super::{Group, Options};
use crate::Error;

/// Of a loop.
const LOOPED: Amount =
    Amount { times: [20_000_000, 4_000_000], timed: [0; 2], about_ns: 1.0, rounds_max: None };

/// The tables of a suite, in groups of which `--case` picks. What a table measures is a `W`.
#[derive(Debug, Deserialize)]
pub struct Scenes<W: 'static> {
    /// The name of the suite.
    pub(crate) bench: &'static str,
    /// With whom the others are compared: the first of them that is measured.
    pub(crate) bases: Vec<&'static str>,
    /// Who takes part, of those that serve a case; all without.
    #[serde(default)]
    pub(crate) only: Vec<&'static str>,
    /// What `--case` takes.
    pub groups: Vec<Group>,
    /// By the name of a group, or of those of its tables that have others; or of all.
    metrics: BTreeMap<&'static str, Vec<Metric>>,
    /// By the same names, or those of single tables; of a loop without.
    #[serde(default)]
    amounts: BTreeMap<&'static str, Amount>,
    pub(crate) cases: Vec<Scene<W>>,
}

/// How much is measured at a time: the same for all rivals, since peaks depend on it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Amount {
    /// So often, or for so many nanoseconds; and quickly.
    pub(crate) times: [u64; 2],
    /// Besides, one by one.
    #[serde(default)]
    pub(crate) timed: [usize; 2],
    /// About how many nanoseconds each of them takes.
    pub(crate) about_ns: f64,
    /// What takes long is measured in fewer rounds.
    pub(crate) rounds_max: Option<[u32; 2]>,
}

impl Amount {
    /// In how many rounds, and about how long one takes in each.
    pub(super) fn of(&self, options: &Options) -> (u32, Duration) {
        let quick = usize::from(options.quick);
        let ns = self.about_ns * (self.times[quick] + self.timed[quick] as u64) as f64;
        let most = self.rounds_max.map_or(u32::MAX, |most| most[quick]);
        (options.rounds().min(most), Duration::from_nanos(ns as u64))
    }
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
    /// The tables of these groups, or of these ids, or all if none is named.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<&Scene<W>>, Error> {
        let is_of = |scene: &Scene<W>, name: &String| [scene.group(), scene.id].contains(&&**name);
        let is_known = |name: &&String| self.cases.iter().any(|scene| is_of(scene, name));
        if let Some(wrong) = names.iter().find(|name| !is_known(name)) {
            let known: Vec<&str> = self.groups.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            return Err(Error::Usage(format!("there is no case {wrong:?}: {known}")));
        }
        let is_wanted =
            |scene: &&Scene<W>| names.is_empty() || names.iter().any(|name| is_of(scene, name));
        Ok(self.cases.iter().filter(is_wanted).collect())
    }

    /// What is measured of each rival in a table.
    pub(crate) fn metrics(&self, scene: &Scene<W>) -> &[Metric] {
        scene.own(&self.metrics).expect("each table has metrics")
    }

    /// How much is measured of each rival in a table.
    pub(crate) fn amount(&self, scene: &Scene<W>) -> Amount {
        scene.own(&self.amounts).copied().unwrap_or(LOOPED)
    }
}

impl<W> Scene<W> {
    /// The part of the name that `--case` takes.
    pub(crate) fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    /// What a table of the suite has of this: by its own name, that of its metrics, or of all.
    fn own<'t, T>(&self, all: &'t BTreeMap<&str, T>) -> Option<&'t T> {
        let names = [self.id, self.metrics.unwrap_or(self.group()), "all"];
        names.iter().find_map(|name| all.get(name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::suites::SUITES;
    use crate::suites::scenes::What;

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
        for name in suite.amounts.keys().filter(|name| **name != "all") {
            let named = |scene: &Scene<W>| [scene.id, scene.metrics.unwrap_or(scene.group())];
            let has = |scene: &Scene<W>| named(scene).contains(name);
            assert!(suite.cases.iter().any(has), "{}: {name} is of no table", suite.bench);
        }
    }

    #[test]
    fn what_is_no_loop_has_an_amount_of_its_own() {
        for suite in super::super::tests::all_scenes() {
            for scene in &suite.cases {
                let has_own = scene.own(&suite.amounts).is_some();
                let is_looped =
                    matches!(scene.what, What::Loop(..) | What::Beside(_) | What::Store(_));
                assert!(has_own || is_looped, "{}: {}", suite.bench, scene.id);
            }
        }
        for scene in &SUITES.compat.cases {
            assert!(scene.own(&SUITES.compat.amounts).is_some(), "{}", scene.id);
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
        is_whole(&SUITES.engines);
        is_whole(&SUITES.map);
    }
}
