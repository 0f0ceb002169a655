//! One run of `rcu advise`: what is measured, in which order, and for how long.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench::advise::{Contender, Plan};
use bench::slices::RunVerdict;

use super::race::{Rounds, Track};
use super::report::Report;
use super::sweep::{self, Over, Point, Sweep};
use super::{AdviseArgs, Part};
use crate::machine::Machine;
use crate::output::Output;
use crate::workload::{Kind, Workload};
use crate::{costs, draw, keys};

/// With `--quick` the ranking is over after this time, and everything after the other, also on a
/// machine that is so busy that each round takes longer than planned. Without, twice as late. Time
/// in which slices did not count is added ([`Track::lost`]).
const QUICK_RANKING: Duration = Duration::from_millis(9_000);
const QUICK_ALL: Duration = Duration::from_millis(13_500);

/// Rounds of each design at least: the interval of few is wide.
const ROUNDS_MIN: u32 = 6;
/// The same in sweeps, and at most.
const ROUNDS_OF_SWEEP: [u32; 2] = [3, 6];

/// Where the large table does not fit the caches, this many keys with their values do.
const KEYS_SMALL: usize = 1_000;

/// The keys of a table.
pub(super) type Keys = Arc<[Box<[u8]>]>;

/// A run with everything decided.
pub(super) struct Run<'a> {
    pub(super) start: Instant,
    pub(super) args: &'a AdviseArgs,
    pub(super) machine: &'a Machine,
    /// As many threads can run at once.
    pub(super) cpus: u32,
    pub(super) workload: Workload,
    pub(super) keys: keys::Keys,
}

impl Run<'_> {
    /// Measures everything; after Ctrl-C, what it could.
    pub(super) fn measure(&self, output: &mut Output) -> Report<'_> {
        let report = Report {
            asked: self,
            interrupted: false,
            costs: None,
            tables: Vec::new(),
            run: RunVerdict::default(),
            leaves: Vec::new(),
            sweeps: Vec::new(),
            curves: Vec::new(),
            cut_short: false,
            checksum_errors: 0,
        };
        let mut track = Track { output, report, deadline: None, lost: Duration::ZERO };
        track.output.progress.begin(self.duration());
        if !self.args.skip.contains(&Part::Costs) {
            let costs = costs::measure(self.machine, (self.args.quick, false), track.output);
            costs::print(&costs, track.output);
            track.report.costs = Some(costs);
        }
        track.report.print_input(track.output);
        self.race(&mut track);
        track.output.progress.end();
        track.report.interrupted = track.output.was_interrupted();
        track.report
    }

    /// The rankings, the leaves of the decision tree and the sweeps.
    fn race(&self, track: &mut Track<'_, '_>) {
        let mut first = None;
        let tables = self.tables();
        for (number, keys) in (1..).zip(&tables) {
            // The first one leaves time for the second.
            track.deadline = self.deadline(QUICK_RANKING * number / tables.len() as u32);
            let plan = self.plan(keys, &self.workload);
            let mut contenders = track.prepare(self.workload.measured(), &[], &plan);
            let rounds = Rounds {
                run_for: self.workload.run_for(),
                least: self.workload.rounds.min(ROUNDS_MIN),
                most: self.workload.rounds,
                until: self.args.minutes.map(|minutes| {
                    let all = Duration::from_secs(60 * u64::from(minutes));
                    self.start + all * number / tables.len() as u32
                }),
            };
            let (mut ranking, run) = track.race(&mut contenders, &plan, rounds);
            ranking.keys = keys.len() as u64;
            track.report.tables.push(ranking);
            track.report.run = mem::take(&mut track.report.run).and(run);
            first.get_or_insert(contenders);
        }
        let Some(mut contenders) = first else { return };
        track.deadline = self.deadline(QUICK_ALL);
        self.leaves(&tables[0], track);
        let is_open = track.report.open().iter().any(|table| table.keys == tables[0].len() as u64);
        if self.args.skip.contains(&Part::Sweep) || is_open {
            return;
        }
        if self.workload.threads_from().is_some() {
            drop(contenders);
            return self.curves(track);
        }
        let choice = track.report.advice().first().map(|one| one.choice.design.name);
        let leaders = sweep::leaders(&track.report.tables[0].places, choice, self.args.quick);
        contenders.retain(|one| leaders.contains(one.design.name));
        for (over, own, values) in self.sweeps() {
            let order = (over, sweep::running_order(&values, own));
            let load = (&self.workload, &tables[0]);
            let mut points = self.points(order, load, &mut contenders, track);
            points.sort_by_key(|point| values.iter().position(|&value| value == point.value));
            track.report.sweeps.push(Sweep { over, own, points });
        }
    }

    /// The keys of each table: where nothing is said of keys, one fits the caches.
    pub(super) fn tables(&self) -> Vec<Keys> {
        let all = &self.keys.list;
        let mut tables = vec![Arc::clone(all)];
        if self.workload.has_small_table() && all.len() > 4 * KEYS_SMALL {
            // From all over the directories.
            let few = all.iter().step_by(all.len() / KEYS_SMALL).take(KEYS_SMALL);
            tables.insert(0, few.cloned().collect());
        }
        tables
    }

    /// Races these contenders at each of `values`; stops after Ctrl-C, and when time is up, with
    /// the points that are whole.
    pub(super) fn points(
        &self,
        (over, values): (Over, impl IntoIterator<Item = f64>),
        (workload, keys): (&Workload, &Keys),
        contenders: &mut [Contender],
        track: &mut Track<'_, '_>,
    ) -> Vec<Point> {
        let rounds = self.sweep_rounds();
        let mut points = Vec::new();
        for value in values {
            if track.is_too_late_for(rounds.duration(contenders.len())) {
                track.report.cut_short = true;
                break;
            }
            let plan = self.plan(keys, &over.at(value, workload));
            let (ranking, _) = track.race(contenders, &plan, rounds);
            if track.output.interrupt.requested() {
                break;
            }
            points.push(Point { value, places: ranking.places });
        }
        points
    }

    pub(super) fn plan(&self, keys: &Keys, workload: &Workload) -> Plan {
        Plan {
            keys: Arc::clone(keys),
            value_bytes: workload.value_bytes as usize,
            work: workload.work,
            operations: draw::operations(keys.len() as u32, workload, self.args.seed),
            limit: workload.limit.map_or(u64::MAX, u64::from),
        }
    }

    /// What the sweeps change, what the workload itself has of it, and the values that are tried.
    fn sweeps(&self) -> Vec<(Over, f64, Vec<f64>)> {
        let Workload { reads_percent, threads, kind, .. } = self.workload;
        // A queue has as many takers as it has givers.
        let shares = match kind {
            Kind::Queue => Vec::new(),
            _ => sweep::read_shares(reads_percent),
        };
        let counts = sweep::thread_counts(threads, self.cpus);
        let of_threads = (!self.args.quick).then_some((Over::Threads, threads.into(), counts));
        [(Over::ReadsPercent, reads_percent, shares)].into_iter().chain(of_threads).collect()
    }

    /// A sweep has fewer and shorter rounds than the ranking: there are many points.
    pub(super) fn sweep_rounds(&self) -> Rounds {
        let [least, most] = ROUNDS_OF_SWEEP.map(|rounds| rounds.min(self.workload.rounds));
        Rounds { run_for: self.workload.run_for() * 2 / least, least, most, until: None }
    }

    /// When `after` will have passed since the start: never, where a time is given.
    fn deadline(&self, after: Duration) -> Option<Instant> {
        let times = if self.args.quick { 1 } else { 2 };
        self.args.minutes.is_none().then(|| self.start + after * times)
    }

    /// About how long everything takes.
    fn duration(&self) -> Duration {
        let designs = bench::advise::designs(self.workload.measured()).len();
        let least = self.workload.rounds.min(ROUNDS_MIN);
        let rounds = Rounds { run_for: self.workload.run_for(), least, ..self.sweep_rounds() };
        let mut total = rounds.duration(designs) * self.tables().len() as u32;
        if let Some(minutes) = self.args.minutes {
            total = Duration::from_secs(60 * u64::from(minutes));
        }
        if !self.args.skip.contains(&Part::Costs) {
            total += bench::costs::duration(self.args.quick);
        }
        if self.args.skip.contains(&Part::Sweep) {
            return total;
        }
        let points = self.curve_points();
        total += self.sweep_rounds().duration(designs) * points;
        if points == 0 {
            let points: usize = self.sweeps().iter().map(|(.., values)| values.len()).sum();
            let leaders = sweep::leaders_at_most(self.args.quick);
            total += self.sweep_rounds().duration(leaders) * points as u32;
        }
        total
    }
}
