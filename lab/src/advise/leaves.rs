//! What each leaf of a decision tree costs, beside the plainest design that does the same work.
//!
//! A leaf of the ranking has its figure from there. Each other one has a short race with the design
//! beside it: a workload of other options, or a case of `rcu bench`. It is never compared with the
//! first of another race, which does other work.

use std::fmt::{self, Display};

use bench::advise::{Contender, Leaf, Race, designs};
use bench::statistics::Ratio;
use bench::suites::{self, SUITES};
use bench::units;
use clap::Parser;
use serde::Serialize;

use super::decide::{ZONE, advantage};
use super::race::Track;
use super::rank::{By, Place};
use super::report::Report;
use super::run::{Keys, Run};
use super::sweep::{Over, Point};
use crate::workload::{Description, Workload};

/// What was measured of a leaf.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LeafFigure {
    pub(super) leaf: &'static str,
    /// The design that it is compared with.
    pub(super) beside: &'static str,
    /// What measures both; none if the ranking does.
    pub(super) measured_by: Option<String>,
    /// None if too few slices count to tell.
    pub(super) figure: Option<Figure>,
}

/// A leaf beside another design, both at the same work.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figure {
    /// What the leaf takes of a thread.
    ns_per_operation: f64,
    times_as_fast: Ratio,
}

impl Display for LeafFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beside = self.beside;
        let by = self.measured_by.as_deref().unwrap_or("this ranking");
        let Some(Figure { ns_per_operation, times_as_fast }) = self.figure else {
            return write!(f, "undecided on this machine now, beside {beside}; by {by}");
        };
        let ns = units::nanoseconds(ns_per_operation);
        let Ratio { median, low, high } = times_as_fast;
        let [times, low, high] = [median, low, high].map(units::figures);
        write!(f, "{ns}, {times} times as fast as {beside} ({low} to {high}); by {by}")
    }
}

impl Figure {
    /// Nothing if the slices are too few to tell which is faster, or that both are equal.
    fn of(ns_per_operation: f64, times_as_fast: Ratio) -> Option<Figure> {
        let Ratio { low, high, .. } = times_as_fast;
        let is_known = low >= 1.0 || high <= 1.0 || (low >= 1.0 / ZONE && high <= ZONE);
        is_known.then_some(Figure { ns_per_operation, times_as_fast })
    }

    /// That of a leaf and of the design beside it, if both have a place in a race of so many
    /// threads with CPUs.
    fn of_places(places: &[Place], [leaf, beside]: [&str; 2], threads: u32) -> Option<Figure> {
        let place = |name: &str| places.iter().find(|place| place.design.name == name);
        let (leaf, beside) = (place(leaf)?, place(beside)?);
        let ns_per_operation = f64::from(threads) * 1e9 / leaf.throughput.median;
        Figure::of(ns_per_operation, advantage(&leaf.slices, &beside.slices))
    }

    /// The same of a race of its own. By CPU time of threads that were apart nothing is known.
    fn of_point(point: &Point, pair: [&str; 2], threads: u32) -> Option<Figure> {
        let is_timed = point.by == By::Wall;
        is_timed.then(|| Figure::of_places(&point.places, pair, threads)).flatten()
    }
}

/// The options of a race, as typed.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Typed {
    #[command(flatten)]
    workload: Description,
}

/// A workload by these options, with so many threads and such a share of reads; and the command
/// that runs it.
fn workload(options: &str, threads: u32, reads: f64, quick: bool) -> (Workload, String) {
    let typed = format!("{options} --threads {threads} --reads {reads}");
    let of = Typed::try_parse_from(typed.split(' ')).expect("the table has options that there are");
    let workload = Workload::resolve(&of.workload, 1, quick);
    (workload.expect("the table has options that go together"), format!("rcu {typed}"))
}

impl Run<'_> {
    /// Gives each leaf of the workload's tree its figure: that of the ranking or, if it has none
    /// there, of a race of its own.
    pub(super) fn leaves(&self, keys: &Keys, report: &mut Report, track: &mut Track<'_>) {
        let Some(tree) = bench::advise::tree(&self.workload.kind.name()) else { return };
        // With fewer CPUs than threads nothing but CPU time could be compared.
        let threads = self.workload.threads.min(track.cpus.max(1));
        let reads = self.workload.reads_percent;
        for (&leaf, &Leaf { beside, ref race, .. }) in &tree.leaves {
            let pair = [leaf, beside];
            let ranked = Figure::of_places(report.places(), pair, threads);
            let (measured_by, figure) = match (ranked, race) {
                (Some(figure), _) => (None, Some(figure)),
                (None, &Race::Options(options)) => {
                    let (workload, command) = workload(options, threads, reads, self.args.quick);
                    let plan = self.plan(keys, &workload);
                    let all = designs(workload.measured()).iter();
                    let both = all.filter(|design| pair.contains(&design.name));
                    let mut both: Vec<_> = both.map(|one| Contender::filled(one, &plan)).collect();
                    track.output.progress.expect_more(self.sweep_rounds().duration(both.len()));
                    let own = (Over::ReadsPercent, [reads]);
                    let points = self.points(own, (&workload, keys), &mut both, report, track);
                    let raced = points.first();
                    (Some(command), raced.and_then(|one| Figure::of_point(one, pair, threads)))
                }
                (None, &Race::Case(id, name)) => {
                    let group = id.split('/').next().unwrap_or(id);
                    let command = format!("rcu bench percpu --case {group} --only {name},{beside}");
                    (Some(format!("{id} of {command}")), self.case(id, [name, beside], track))
                }
            };
            report.leaves.push(LeafFigure { leaf, beside, measured_by, figure });
        }
    }

    /// A leaf and the design beside it, by a case of `rcu bench percpu`.
    fn case(&self, id: &str, [leaf, beside]: [&str; 2], track: &mut Track<'_>) -> Option<Figure> {
        let options = suites::Options {
            quick: self.args.quick,
            seed: self.args.seed,
            only: [leaf, beside].map(str::to_owned).into(),
            ..suites::Options::default()
        };
        let suite = SUITES.percpu.prepare(&[id.to_owned()], &options);
        let suite = suite.expect("the table has cases that there are");
        if track.is_too_late_for(suite.duration) {
            return None;
        }
        track.output.progress.expect_more(suite.duration);
        let (cases, _) = suite.run(track.output, &options).ok()?;
        let case = cases.first()?;
        Figure::of(case.rival(leaf)?.spread(0)?.median, case.ratio(beside, leaf, 0)?)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::advise::rank::tests::place;
    use crate::workload::Kind;

    /// Whether both of a leaf's pair take part in its race.
    fn is_raced(kind: Kind, pair: [&'static str; 2], race: &Race) -> bool {
        match *race {
            Race::Options(options) => {
                let (workload, _) = workload(options, 2, 99.9, true);
                let bytes = workload.value_bytes as usize;
                let raced = designs(workload.measured()).iter().filter(|one| {
                    let fits = one.value_bytes_max.is_none_or(|most| bytes <= most);
                    fits && pair.contains(&one.name)
                });
                workload.kind == kind && raced.count() == pair.len()
            }
            Race::Case(id, name) => {
                let only = [name, pair[1]].map(str::to_owned).into();
                let options = suites::Options { only, ..suites::Options::default() };
                id.contains('/') && SUITES.percpu.prepare(&[id.to_owned()], &options).is_ok()
            }
        }
    }

    #[test]
    fn every_leaf_of_every_tree_has_a_race_with_the_design_beside_it() {
        let mut count = 0;
        for &kind in Kind::value_variants() {
            let tree = bench::advise::tree(&kind.name());
            for (&leaf, told) in tree.iter().flat_map(|tree| &tree.leaves) {
                assert!(is_raced(kind, [leaf, told.beside], &told.race), "{leaf}: {told:?}");
                count += 1;
            }
        }
        assert_eq!(count, 14);
        let nowhere = Race::Options("--kind counter --limit 9");
        assert!(!is_raced(Kind::Counter, ["quiescence-counter", "atomic-shared"], &nowhere));
    }

    #[test]
    fn a_leaf_has_its_time_and_a_ratio_to_the_design_beside_it_or_is_undecided() {
        let places = [place("std-mutex", 1, 2e7), place("atomic-shared", 2, 5e7)];
        let pair = ["atomic-shared", "std-mutex"];
        let of = |figure| LeafFigure { leaf: pair[0], beside: pair[1], measured_by: None, figure };
        assert_eq!(
            of(Figure::of_places(&places, pair, 2)).to_string(),
            "40.0 ns, 2.50 times as fast as std-mutex (2.50 to 2.50); by this ranking"
        );
        let point = |by| Point { value: 99.0, by, places: places.to_vec() };
        assert!(Figure::of_point(&point(By::Wall), pair, 2).is_some());
        let (mut few, mut uneven) = (places.clone(), places.clone());
        few[0].slices.truncate(2);
        uneven[0].slices = vec![2e7, 9e7, 3e7, 7e7, 4e7];
        for figure in [
            Figure::of_point(&point(By::Cpu), pair, 2),
            Figure::of_places(&few, pair, 2),
            Figure::of_places(&uneven, pair, 2),
            Figure::of_places(&places[..1], pair, 2),
            Figure::of_places(&places[1..], pair, 2),
        ] {
            let text = of(figure).to_string();
            assert_eq!(text, "undecided on this machine now, beside std-mutex; by this ranking");
        }
    }
}
