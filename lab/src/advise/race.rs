//! Runs designs against each other: interleaved rounds in a shuffled order, so that whatever
//! disturbs the machine for a while disturbs all of them, and no design always follows the same
//! neighbour.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bench::advise::{Design, Outcome, Plan, Prepared};
use hdrhistogram::Histogram;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use super::decide::{Standing, advantage};
use super::rank;
use crate::exit::Failure;
use crate::output::{Output, Progress};

/// A design, filled with keys and values and ready to run.
pub(super) struct Contender {
    pub(super) design: &'static Design,
    kind: bench::advise::Workload,
    prepared: Box<dyn Prepared>,
    /// How long it took to fill.
    took: Duration,
}

/// A design is filled anew for each round, in other memory, if that takes less than this share of
/// the round: where its words lie, and what shares their lines, differs from one run of a program
/// to the next, and rounds in one memory do not show it.
const FILLING_SHARE: u32 = 8;

impl Contender {
    fn filled(
        design: &'static Design,
        kind: bench::advise::Workload,
        plan: &Plan,
    ) -> Result<Contender, Failure> {
        let began = Instant::now();
        let prepared = bench::advise::build(kind, design.name, plan)
            .map_err(|unknown| Failure::Usage(unknown.to_string()))?;
        Ok(Contender { design, kind, prepared, took: began.elapsed() })
    }

    /// Fills it anew, if that is quick.
    fn fill(&mut self, plan: &Plan) -> Result<(), Failure> {
        if self.took * FILLING_SHARE < plan.run_for {
            *self = Self::filled(self.design, self.kind, plan)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Contender").field(&self.design.name).finish()
    }
}

/// What the rounds of one design gave.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) design: &'static Design,
    /// Operations a second, one value for each round.
    pub(super) throughput: Vec<f64>,
    /// Process CPU time for an operation, in nanoseconds, one value for each round.
    pub(super) cpu_ns: Vec<f64>,
    /// CPUs that the process kept busy, one value for each round.
    pub(super) cpus_busy: Vec<f64>,
    /// Nanoseconds that updates took, over all rounds.
    pub(super) update_ns: Histogram<u64>,
    /// Objects replaced and not yet freed: the most in any round.
    pub(super) unreclaimed_peak: u64,
    /// Reads that saw a wrong value.
    pub(super) checksum_errors: u64,
}

impl Series {
    pub(super) fn new(design: &'static Design) -> Series {
        Series {
            design,
            throughput: Vec::new(),
            cpu_ns: Vec::new(),
            cpus_busy: Vec::new(),
            update_ns: empty_histogram(),
            unreclaimed_peak: 0,
            checksum_errors: 0,
        }
    }

    fn add(&mut self, outcome: &Outcome) {
        self.checksum_errors += outcome.checksum_errors;
        // A round without an operation counts as well: left out, it would shift the pairing of all
        // rounds after it.
        let operations = (outcome.reads + outcome.updates) as f64;
        let elapsed = outcome.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        self.throughput.push(operations / elapsed);
        self.cpu_ns.push(outcome.cpu.as_nanos() as f64 / operations.max(1.0));
        self.cpus_busy.push(outcome.cpu.as_secs_f64() / elapsed);
        self.unreclaimed_peak = self.unreclaimed_peak.max(outcome.unreclaimed_peak);
        // Both histograms resize themselves, so that the addition cannot fail; if a design ever
        // hands out another kind, its latencies are missing and nothing else is wrong.
        let _ = self.update_ns.add(&outcome.update_latency);
    }
}

fn empty_histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three significant figures are within the limits of the histogram")
}

/// What a race needs besides its contenders.
pub(super) struct Track<'a> {
    pub(super) output: &'a mut Output,
    pub(super) progress: &'a mut Progress,
    /// Shuffles the order within each round.
    pub(super) generator: ChaCha8Rng,
    /// When everything has to be over, if it has to. A busy machine takes longer than planned.
    pub(super) deadline: Option<Instant>,
}

/// A design and what its rounds gave.
type Runner<'a> = (&'a mut Contender, Series);

/// How many rounds a race has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Of all.
    pub(super) first: u32,
    /// The time for more, where a decision is near.
    pub(super) more: Duration,
}

/// Fewer rounds than this compare nothing, however little time there is.
const ROUNDS_BEFORE_DEADLINE: u32 = 3;

impl std::fmt::Debug for Track<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Track").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl Track<'_> {
    /// Whether something that takes this long would end after the deadline.
    pub(super) fn is_too_late_for(&self, duration: Duration) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() + duration > deadline)
    }

    /// Fills these designs; fewer after Ctrl-C.
    pub(super) fn prepare(
        &mut self,
        designs: &'static [Design],
        kind: bench::advise::Workload,
        plan: &Plan,
    ) -> Result<Vec<Contender>, Failure> {
        let mut contenders = Vec::new();
        let fits =
            |design: &&Design| design.value_bytes_max.is_none_or(|most| plan.value_bytes <= most);
        for design in designs.iter().filter(fits) {
            if self.output.interrupt().requested() {
                break;
            }
            self.progress.announce(format!("preparing {}", design.name));
            contenders.push(Contender::filled(design, kind, plan)?);
        }
        Ok(contenders)
    }

    /// Runs rounds of those contenders whose names are `chosen` (all, without), after one
    /// short round each that warms caches and is not kept. Ends early after Ctrl-C; the round that
    /// it cut short is not kept either. After the deadline there are no more rounds than needed.
    ///
    /// After `rounds.first` rounds of all, more are run of the best and of those that are near a
    /// decision, until all are decided or the time for it is spent.
    pub(super) fn race(
        &mut self,
        contenders: &mut [Contender],
        chosen: Option<&BTreeSet<&str>>,
        plan: &Plan,
        rounds: Rounds,
        what: &str,
    ) -> Result<Vec<Series>, Failure> {
        let mut runners: Vec<Runner<'_>> = contenders
            .iter_mut()
            .filter(|contender| chosen.is_none_or(|names| names.contains(contender.design.name)))
            .map(|contender| {
                let series = Series::new(contender.design);
                (contender, series)
            })
            .collect();
        let warm_up = Plan { run_for: warm_up(plan.run_for), ..plan.clone() };
        self.round(&mut runners, &|_| true, &warm_up, false, what)?;
        for round in 1..=rounds.first {
            if round > ROUNDS_BEFORE_DEADLINE && self.is_too_late_for(Duration::ZERO) {
                break;
            }
            self.round(&mut runners, &|_| true, plan, true, what)?;
        }
        let mut left = rounds.more;
        loop {
            let open = undecided(runners.iter().map(|(_, series)| series));
            let cost = plan.run_for * open.len() as u32;
            let is_over = open.is_empty() || cost > left || self.is_too_late_for(cost);
            if is_over || self.output.interrupt().requested() {
                break;
            }
            left -= cost;
            self.progress.expect_more(cost);
            self.round(&mut runners, &|name| open.contains(name), plan, true, what)?;
        }
        Ok(runners.into_iter().map(|(_, series)| series).collect())
    }

    /// Runs one round of the chosen, in a new order.
    fn round(
        &mut self,
        runners: &mut [Runner<'_>],
        is_chosen: &dyn Fn(&str) -> bool,
        plan: &Plan,
        kept: bool,
        what: &str,
    ) -> Result<(), Failure> {
        runners.shuffle(&mut self.generator);
        for (contender, series) in runners {
            if !is_chosen(contender.design.name) {
                continue;
            }
            if self.output.interrupt().requested() {
                break;
            }
            self.output.check_reader()?;
            self.progress.announce(format!("{what}: {}", contender.design.name));
            contender.fill(plan)?;
            let outcome = contender.prepared.round(plan);
            self.progress.advance(plan.run_for);
            if kept && !self.output.interrupt().requested() {
                series.add(&outcome);
            } else {
                series.checksum_errors += outcome.checksum_errors;
            }
        }
        Ok(())
    }
}

/// The best and those that are near a decision beside it; none when all are decided.
///
/// A design that was out once stays out: it has fewer rounds than the others, and what they did
/// since is not known of it.
pub(super) fn undecided<'a>(series: impl Iterator<Item = &'a Series>) -> BTreeSet<&'static str> {
    let series = rank::by_speed(series);
    let Some((best, others)) = series.split_first() else { return BTreeSet::new() };
    let longest = series.iter().map(|one| one.throughput.len()).max().unwrap_or(0);
    let is_near = |one: &&&Series| {
        one.throughput.len() == longest
            && Standing::of(&advantage(&best.throughput, &one.throughput)) == Standing::Near
    };
    let mut open: BTreeSet<&str> =
        others.iter().filter(is_near).map(|one| one.design.name).collect();
    if !open.is_empty() {
        // Also those that are in: another of them may be the best after the next rounds.
        let is_in = |one: &&&Series| {
            one.throughput.len() == longest
                && Standing::of(&advantage(&best.throughput, &one.throughput)).is_in_set()
        };
        open.extend(series.iter().filter(is_in).map(|one| one.design.name));
    }
    open
}

/// How long the warming round is: caches are warm after a tenth of a second, if ever.
fn warm_up(run_for: Duration) -> Duration {
    (run_for / 4).min(Duration::from_millis(100))
}

/// How long a race takes.
pub(super) fn duration(contenders: usize, run_for: Duration, rounds: u32) -> Duration {
    (run_for * rounds + warm_up(run_for)) * contenders as u32
}
