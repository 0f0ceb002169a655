//! What each leaf of a decision tree costs, compared with the plainest design that does the same
//! work.
//!
//! A leaf has its figure from the ranking, if that has both. Otherwise the two have a short race of
//! their own: a workload of other options, or a case of `rcu bench`. A leaf is never compared with
//! the first of another race, which does other work.

use std::fmt::{self, Display};

use bench::advise::{Leaf, Race};
use bench::statistics::Ratio;
use bench::suites::{self, SUITES};
use bench::units;
use serde::Serialize;

use super::AdviseArgs;
use super::decide::{ZONE, advantage};
use super::race::Track;
use super::rank::{By, Ranking};
use super::run::{Keys, Run};
use crate::arguments::options as options_of;
use crate::workload::Workload;

/// Why a leaf is undecided.
const SLICES: &str = "too few slices count to tell which is faster";
const TIME: &str = "the time was up";

/// What was measured of a leaf.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LeafFigure {
    pub(super) leaf: &'static str,
    /// The design that it is compared with.
    pub(super) beside: &'static str,
    /// What measures both; none if the ranking does.
    pub(super) measured_by: Option<String>,
    /// None if it is undecided.
    pub(super) figure: Option<Figure>,
    /// Why it is.
    pub(super) undecided: Option<String>,
}

/// A leaf compared with another design, both at the same work.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figure {
    /// What the leaf takes of a thread.
    ns_per_operation: f64,
    times_as_fast: Ratio,
}

/// That of a leaf, or why there is none.
type Known = Result<Figure, String>;

impl Display for LeafFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beside = self.beside;
        let by = self.measured_by.as_deref().unwrap_or("this ranking");
        let Some(Figure { ns_per_operation, times_as_fast }) = self.figure else {
            let why = self.undecided.as_deref().unwrap_or(SLICES);
            return write!(f, "undecided: {why}; compared with {beside} by {by}");
        };
        let ns = units::nanoseconds(ns_per_operation);
        let Ratio { median, low, high } = times_as_fast;
        let (how, ratio) = match median {
            ..1.0 => ("slow", [1.0 / median, 1.0 / high, 1.0 / low]),
            _ => ("fast", [median, low, high]),
        };
        let [times, low, high] = ratio.map(units::figures);
        write!(f, "{ns}, {times} times as {how} as {beside} ({low} to {high}); by {by}")
    }
}

impl Figure {
    /// Undecided if the slices are too few to tell which is faster, or that both are equal.
    fn of(ns_per_operation: f64, times_as_fast: Ratio) -> Known {
        let Ratio { low, high, .. } = times_as_fast;
        let is_known = low >= 1.0 || high <= 1.0 || (low >= 1.0 / ZONE && high <= ZONE);
        let figure = Figure { ns_per_operation, times_as_fast };
        is_known.then_some(figure).ok_or_else(|| SLICES.to_owned())
    }

    /// What a ranking of so many threads with CPUs tells of a leaf and of the design beside it, if
    /// both have a place in it. By CPU time of threads that were apart nothing is known.
    fn of_ranking(table: &Ranking, [leaf, beside]: [&str; 2], threads: u32) -> Option<Known> {
        let place = |name: &str| table.places.iter().find(|place| place.design.name == name);
        let (leaf, beside) = (place(leaf)?, place(beside)?);
        let ns_per_operation = f64::from(threads) * 1e9 / leaf.throughput.median;
        Some(match table.by {
            By::Wall => Figure::of(ns_per_operation, advantage(&leaf.slices, &beside.slices)),
            By::Cpu => Err("only CPU time is known, not how long an operation takes".to_owned()),
        })
    }
}

/// A workload by these options, with so many threads and such a share of reads; and the command
/// that runs it.
pub(super) fn workload(options: &str, threads: u32, reads: f64, quick: bool) -> (Workload, String) {
    let typed = format!("{options} --threads {threads} --reads {reads}");
    let words = typed.split(' ').chain(quick.then_some("--quick"));
    let args: AdviseArgs = options_of(words).expect("the table's options exist");
    let workload = args.workload.resolve(1, quick);
    (workload.expect("the table's options go together"), format!("rcu {typed}"))
}

impl Run<'_> {
    /// Gives each leaf of the workload's tree its figure: that of the ranking or, if it has none
    /// there, of a race of its own. After Ctrl-C, those that are whole.
    pub(super) fn leaves(&self, keys: &Keys, track: &mut Track<'_, '_>) {
        let Some(tree) = bench::advise::tree(&self.workload.kind.name()) else { return };
        // With fewer CPUs than threads nothing but CPU time could be compared.
        let threads = self.workload.threads.min(self.cpus);
        let reads = self.workload.reads_percent;
        for (&leaf, &Leaf { beside, ref race, .. }) in &tree.leaves {
            let pair = [leaf, beside];
            let table = track.report.tables.last();
            let ranked = table.and_then(|table| Figure::of_ranking(table, pair, threads));
            let (measured_by, known) = match (ranked, race) {
                (Some(known), _) => (None, known),
                (None, &Race::Options(options)) => {
                    let (workload, command) = workload(options, threads, reads, self.args.quick);
                    (Some(command), self.raced((&workload, keys), pair, track))
                }
                (None, &Race::Case(id, name)) => {
                    let group = id.split('/').next().unwrap_or(id);
                    let command = format!("rcu bench percpu --case {group} --only {name},{beside}");
                    let known = self.case(id, [name, beside], track);
                    (Some(format!("case {id} of {command}")), known)
                }
            };
            if track.output.must_stop() {
                break;
            }
            let (figure, undecided) = (known.as_ref().ok().copied(), known.err());
            track.report.cut_short |= undecided.as_deref() == Some(TIME);
            track.report.leaves.push(LeafFigure { leaf, beside, measured_by, figure, undecided });
        }
    }

    /// A leaf and the design beside it, by a race of the two.
    fn raced(
        &self,
        (workload, keys): (&Workload, &Keys),
        pair: [&str; 2],
        track: &mut Track<'_, '_>,
    ) -> Known {
        let rounds = self.sweep_rounds();
        let duration = rounds.duration(pair.len());
        if track.is_too_late_for(duration) {
            return Err(TIME.to_owned());
        }
        track.output.progress.expect_more(duration);
        let plan = self.plan(keys, workload);
        let mut both = track.prepare(workload.measured(), &pair, &plan);
        let (ranking, _) = track.race(&mut both, &plan, rounds);
        Figure::of_ranking(&ranking, pair, workload.threads).ok_or(SLICES)?
    }

    /// A leaf and the design beside it, by a case of `rcu bench percpu`.
    fn case(&self, id: &str, [leaf, beside]: [&str; 2], track: &mut Track<'_, '_>) -> Known {
        let options = suites::Options {
            quick: self.args.quick,
            seed: self.args.seed,
            only: [leaf, beside].map(str::to_owned).into(),
            ..suites::Options::default()
        };
        let suite = SUITES.percpu.prepare(&[id.to_owned()], &options);
        let suite = suite.expect("the table's cases exist");
        if self.cpus < 2 {
            return Err("it needs two CPUs".to_owned());
        }
        if track.is_too_late_for(suite.duration) {
            return Err(TIME.to_owned());
        }
        track.output.progress.expect_more(suite.duration);
        let (cases, _) = suite.run(track.output, &options).map_err(|error| error.to_string())?;
        let case = cases.first().ok_or(SLICES)?;
        let ns = case.rival(leaf).and_then(|rival| rival.spread(0)).ok_or(SLICES)?;
        Figure::of(ns.median, case.ratio(beside, leaf, 0).ok_or(SLICES)?)
    }
}

#[cfg(test)]
mod tests {
    use bench::advise::designs;
    use clap::ValueEnum;

    use super::*;
    use crate::advise::rank::{Place, tests::place};
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

    fn told(known: Known) -> String {
        let (leaf, beside, measured_by) = ("atomic-shared", "std-mutex", None);
        let (figure, undecided) = (known.as_ref().ok().copied(), known.err());
        LeafFigure { leaf, beside, measured_by, figure, undecided }.to_string()
    }

    const PAIR: [&str; 2] = ["atomic-shared", "std-mutex"];

    fn ranking(by: By, slices: [&[f64]; 2]) -> Ranking {
        let places = PAIR.iter().zip(slices).map(|(name, slices)| {
            let speed = slices.first().copied().unwrap_or(1.0);
            let slices = (0..).zip(slices.iter().copied()).collect();
            Place { slices, ..place(name, 1, speed) }
        });
        Ranking { by, places: places.collect(), ..Ranking::default() }
    }

    #[test]
    fn a_leaf_has_its_time_and_a_ratio_to_the_design_beside_it() {
        let known = |slices| Figure::of_ranking(&ranking(By::Wall, slices), PAIR, 2).unwrap();
        assert_eq!(
            told(known([&[5e7; 9], &[2e7; 9]])),
            "40.0 ns, 2.50 times as fast as std-mutex (2.50 to 2.50); by this ranking"
        );
        assert_eq!(
            told(known([&[2e7; 9], &[5e7; 9]])),
            "100 ns, 2.50 times as slow as std-mutex (2.50 to 2.50); by this ranking"
        );
    }

    /// What is ranked and undecided was raced again, at other work.
    #[test]
    fn a_ranked_pair_that_is_undecided_has_no_race_of_its_own() {
        let uneven = [2e7, 9e7, 3e7, 7e7, 4e7];
        for slices in [[&[5e7; 9][..], &[2e7]], [&[5e7; 9], &uneven]] {
            let known = Figure::of_ranking(&ranking(By::Wall, slices), PAIR, 2);
            assert_eq!(
                told(known.expect("both have a place")),
                "undecided: too few slices count to tell which is faster; compared with \
                 std-mutex by this ranking"
            );
        }
        for absent in 0..2 {
            let mut one = ranking(By::Wall, [&[5e7; 9], &[2e7; 9]]);
            one.places.remove(absent);
            assert!(Figure::of_ranking(&one, PAIR, 2).is_none(), "nothing is known of one alone");
        }
    }

    /// The CPU time of slices that did not count was printed as the time of an operation.
    #[test]
    fn cpu_time_is_no_figure_of_a_leaf() {
        let by_cpu = ranking(By::Cpu, [&[5e7; 9], &[2e7; 9]]);
        let text = told(Figure::of_ranking(&by_cpu, PAIR, 2).expect("both have a place"));
        assert!(text.starts_with("undecided: only CPU time is known"), "{text}");
    }

    /// A limit that was near was met by the stocks of 32 CPUs.
    #[test]
    fn the_limit_of_a_race_is_far() {
        let tree = bench::advise::tree("counter").unwrap();
        let Race::Options(options) = tree.leaves["quiescence-limit"].race else { panic!() };
        let (workload, _) = workload(options, 2, 1.0, true);
        assert!(workload.limit.is_some_and(|limit| limit >= 1_000_000), "{workload:?}");
    }
}
