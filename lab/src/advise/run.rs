//! One run of `rcu advise`: what is measured, in which order, and for how long.

use std::time::{Duration, Instant};

use bench::advise::Plan;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::race::{self, Contender, Rounds, Series, Track};
use super::report::{Noise, Report};
use super::sweep::{self, Over, Point, Sweep};
use super::{AdviseArgs, Part, rank};
use crate::exit::Failure;
use crate::keys::Keys;
use crate::machine::Machine;
use crate::output::{Output, Progress};
use crate::workload::{Kind, Workload};
use crate::{costs, draw};

/// With `--quick` the ranking is over after this time, and everything after the other, also on a
/// machine that is so busy that each round takes longer than planned.
const QUICK_RANKING: Duration = Duration::from_millis(9_500);
const QUICK_ALL: Duration = Duration::from_millis(13_500);

/// A run with everything decided.
pub(super) struct Run<'a> {
    pub(super) start: Instant,
    pub(super) args: &'a AdviseArgs,
    pub(super) machine: &'a Machine,
    pub(super) workload: Workload,
    pub(super) keys: Keys,
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("workload", &self.workload).finish_non_exhaustive()
    }
}

impl Run<'_> {
    /// Measures everything; after Ctrl-C, what it could.
    pub(super) fn measure(&self, output: &mut Output) -> Result<Report, Failure> {
        let mut report = Report {
            seed: self.args.seed,
            interrupted: false,
            machine: self.machine.clone(),
            costs: None,
            keys: self.keys.census.clone(),
            workload: self.workload.clone(),
            places: Vec::new(),
            noise: Noise {
                spread_percent: 0.0,
                taken_percent: 0.0,
                limit_percent: self.args.noise_limit.percent(),
            },
            sweeps: Vec::new(),
            cut_short: false,
            checksum_errors_in_sweeps: 0,
        };
        let mut progress = output.progress(self.duration());
        if !self.args.skip.contains(&Part::Costs) {
            let costs =
                costs::measure(self.machine, (self.args.quick, false), output, &mut progress)?;
            progress.suspend(|| costs::table::print(&costs, output))?;
            report.costs = Some(costs);
        }
        progress.suspend(|| report.print_input(output))?;
        self.race(&mut report, output, &mut progress)?;
        report.interrupted = output.interrupt().requested();
        Ok(report)
    }

    /// The ranking and the sweeps.
    fn race(
        &self,
        report: &mut Report,
        output: &mut Output,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let generator = ChaCha8Rng::seed_from_u64(self.args.seed);
        let mut track =
            Track { output, progress, generator, deadline: self.deadline(QUICK_RANKING) };
        let plan = self.plan(self.workload.threads, self.workload.reads_percent, &track);
        let kind = self.workload.measured();
        let mut contenders = track.prepare(bench::advise::designs(kind), kind, &plan)?;
        let rounds = self.rounds(contenders.len());
        let series = track.race(&mut contenders, None, &plan, rounds, "ranking")?;
        report.places = rank::rank(&series);
        let cpus = self.machine.cpus.len() as u32;
        report.noise.spread_percent = rank::noise_percent(&report.places);
        report.noise.taken_percent =
            rank::taken_percent(&report.places, self.workload.threads, cpus);
        if self.args.skip.contains(&Part::Sweep) || report.nothing_told() {
            return Ok(());
        }
        track.deadline = self.deadline(QUICK_ALL);
        let over_reads = self.read_shares();
        self.sweep(Over::ReadsPercent, &over_reads, report, &mut contenders, &mut track)?;
        if !self.args.quick {
            let over_threads = self.thread_counts();
            self.sweep(Over::Threads, &over_threads, report, &mut contenders, &mut track)?;
        }
        Ok(())
    }

    /// Races the leaders at each of `values`; stops after Ctrl-C, with the points that are whole.
    fn sweep(
        &self,
        over: Over,
        values: &[f64],
        report: &mut Report,
        contenders: &mut [Contender],
        track: &mut Track<'_>,
    ) -> Result<(), Failure> {
        let leaders = sweep::leaders(&report.places, self.args.quick);
        let (run_for, rounds) = self.sweep_rounds();
        // Half as long again: there are many points.
        let all = run_for * rounds * leaders.len() as u32;
        let more = if self.args.more_time == Some(0) { Duration::ZERO } else { all / 2 };
        let rounds = Rounds { first: rounds, more };
        let mut points: Vec<Point> = Vec::new();
        let own = match over {
            Over::ReadsPercent => self.workload.reads_percent,
            Over::Threads => f64::from(self.workload.threads),
        };
        for value in sweep::running_order(values, own) {
            let (threads, reads) = match over {
                Over::ReadsPercent => (self.workload.threads, value),
                Over::Threads => (value as u32, self.workload.reads_percent),
            };
            if track.output.interrupt().requested() {
                break;
            }
            if track.is_too_late_for(race::duration(leaders.len(), run_for, rounds.first)) {
                report.cut_short = true;
                break;
            }
            let plan = Plan { run_for, ..self.plan(threads, reads, track) };
            let series =
                track.race(contenders, Some(&leaders), &plan, rounds, &over.setting(value))?;
            report.checksum_errors_in_sweeps +=
                series.iter().map(|series: &Series| series.checksum_errors).sum::<u64>();
            if !track.output.interrupt().requested() {
                points.push(Point { value, places: rank::rank(&series) });
            }
        }
        points.sort_by_key(|point| values.iter().position(|&value| value == point.value));
        report.sweeps.push(Sweep { over, own, points });
        Ok(())
    }

    fn plan(&self, threads: u32, reads_percent: f64, track: &Track<'_>) -> Plan {
        let keys = self.keys.list.len() as u32;
        Plan {
            keys: self.keys.list.clone(),
            value_bytes: self.workload.value_bytes as usize,
            work: self.workload.work,
            operations: draw::operations(keys, threads, self.mix(reads_percent), self.args.seed),
            limit: self.workload.limit.map_or(u64::MAX, u64::from),
            run_for: self.workload.run_for,
            stop: track.output.interrupt().flag(),
        }
    }

    fn mix(&self, reads_percent: f64) -> draw::Mix {
        draw::Mix {
            reads_percent,
            churn_percent: self.workload.churn_percent,
            popularity: self.workload.popularity,
        }
    }

    /// The shares of reads that are tried: a queue has as many takers as it has givers.
    fn read_shares(&self) -> Vec<f64> {
        match self.workload.kind {
            Kind::Queue => Vec::new(),
            _ => sweep::read_shares(self.workload.reads_percent),
        }
    }

    fn thread_counts(&self) -> Vec<f64> {
        let cpus = self.machine.cpus.len() as u32;
        sweep::thread_counts(self.workload.threads, cpus).into_iter().map(f64::from).collect()
    }

    /// Rounds of the ranking of so many designs.
    fn rounds(&self, designs: usize) -> Rounds {
        let first = self.workload.rounds;
        let same = self.workload.run_for * first * designs as u32;
        let more = self.args.more_time.map_or(same, |seconds| Duration::from_secs(seconds.into()));
        Rounds { first, more }
    }

    /// Rounds of a sweep are shorter than those of the ranking: there are many points.
    fn sweep_rounds(&self) -> (Duration, u32) {
        let shorter = if self.args.quick { 2 } else { 4 };
        (self.workload.run_for / shorter, self.workload.rounds.min(11))
    }

    /// When `after` will have passed since the start, when that matters.
    fn deadline(&self, after: Duration) -> Option<Instant> {
        self.args.quick.then(|| self.start + after)
    }

    /// About how long everything takes.
    fn duration(&self) -> Duration {
        let designs = bench::advise::designs(self.workload.measured()).len();
        let mut total = race::duration(designs, self.workload.run_for, self.workload.rounds);
        if !self.args.skip.contains(&Part::Costs) {
            total += bench::costs::duration(self.args.quick);
        }
        if !self.args.skip.contains(&Part::Sweep) {
            let threads = if self.args.quick { 0 } else { self.thread_counts().len() };
            let points = self.read_shares().len() + threads;
            let (run_for, rounds) = self.sweep_rounds();
            let leaders = sweep::leaders_at_most(self.args.quick);
            total += race::duration(leaders, run_for, rounds) * points as u32;
        }
        total
    }
}
