//! Who is measured when.
//!
//! All rivals of a case are measured once in each round, in an order drawn anew for each round, so
//! that what drifts (frequency, neighbours on the machine) meets all of them, and none always runs
//! in the wake of the same other. A round that a stop cuts short is dropped: only whole rounds can
//! be compared pair by pair.

use std::borrow::Cow;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use scopeguard::defer_on_unwind;
use serde::Deserialize;

use super::Options;
use crate::sample::Sample;
use crate::slices::{self, COUNTED_MIN, Flaws, Missing, Row, RunVerdict, Wanted, Watch};
use crate::statistics::{OfRound, Ratio, Spread, in_pairs, paired_ratio, spread};
use crate::{Error, Host};

/// How often a measurement is tried until it counts; half as often after each one that did not work
/// out, since on a machine that is never calm all of them would take that long.
const TRIES: u32 = 25;
const TRIES_MIN: u32 = 2;

/// What a number counts, and so how it is written.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A time in nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Something done so often in a second.
    #[serde(rename = "per second")]
    PerSecond,
    /// A number of objects.
    Objects,
    /// A share of the whole, in per cent.
    Percent,
    /// An amount of memory.
    Bytes,
}

/// One thing that is measured of every rival.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Metric {
    /// Its name in tables and in JSON.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
}

/// All that was measured under the same conditions.
#[derive(Debug)]
pub struct Case {
    /// Its name in JSON and in the promises: `read/1-thread`.
    pub id: Cow<'static, str>,
    /// The conditions, for people.
    pub title: Cow<'static, str>,
    /// What was measured, the most important first.
    pub metrics: &'static [Metric],
    /// Of how many of these, from the first, tables show the ratios to the base, too.
    pub compared: usize,
    /// Of whom, in the order of the table.
    pub rivals: Vec<Series>,
    /// How good the run was, of what was judged.
    pub run: Option<RunVerdict>,
    /// What is to be known of the figures, for people.
    pub notes: Vec<String>,
    /// Whether a stop may have left it with fewer rounds than were planned.
    pub cut: bool,
}

/// What was measured of one rival.
#[derive(Debug)]
pub struct Series {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Whether it is this project's own.
    pub ours: bool,
    /// For each metric, one value for each round, or for each slice that counts.
    pub values: Vec<Vec<f64>>,
    /// The numbers of these rounds; of slices, which count themselves, none.
    rounds: Vec<u32>,
    /// Why there are none.
    pub missing: Option<Missing>,
}

/// How good the run of these cases was, of what was measured by slices; nothing if nothing was.
pub fn verdict(cases: &[Case]) -> Option<RunVerdict> {
    cases.iter().filter_map(|case| case.run.clone()).reduce(RunVerdict::and)
}

impl Case {
    /// A case of which nothing was measured yet.
    pub fn new(
        id: impl Into<Cow<'static, str>>,
        title: impl Into<Cow<'static, str>>,
        metrics: &'static [Metric],
        rivals: impl IntoIterator<Item = (&'static str, bool)>,
    ) -> Case {
        let rivals = rivals.into_iter();
        let rivals = rivals.map(|(name, ours)| Series::new(name, ours, metrics)).collect();
        let (id, title) = (id.into(), title.into());
        Case { id, title, metrics, compared: 1, rivals, run: None, notes: Vec::new(), cut: false }
    }

    /// The same, where so many metrics matter.
    pub(crate) fn comparing(self, compared: usize) -> Case {
        assert!((1..=self.metrics.len()).contains(&compared), "{compared} metrics to compare");
        Case { compared, ..self }
    }

    /// What was measured of this rival.
    pub fn rival(&self, name: &str) -> Option<&Series> {
        self.rivals.iter().find(|rival| rival.name == name)
    }

    /// The ratio of a rival to a base, round by round, or by slices that were drawn at about the
    /// same time. Nothing if either has no figure.
    pub fn ratio(&self, rival: &str, base: &str, metric: usize) -> Option<Ratio> {
        let [rival, base] = [self.rival(rival)?, self.rival(base)?];
        let values = |one: &Series| -> Vec<OfRound> {
            let rounds = one.rounds.iter().copied().chain(0..);
            let values = rounds.zip(one.values[metric].iter().copied());
            values.filter(|(_, value)| !value.is_nan()).collect()
        };
        let (rival, base) = in_pairs(&values(rival), &values(base));
        (!rival.is_empty()).then(|| paired_ratio(&rival, &base))
    }
}

impl Series {
    /// The values of a metric, without those that are not numbers: they were not measured.
    pub fn measured(&self, metric: usize) -> Vec<f64> {
        self.values[metric].iter().copied().filter(|value| !value.is_nan()).collect()
    }

    /// The median of a metric, and its quartiles; nothing if it has no figure.
    pub fn spread(&self, metric: usize) -> Option<Spread> {
        let values = self.measured(metric);
        (!values.is_empty()).then(|| spread(&values))
    }
}

/// What became of the measurements of one rival.
#[derive(Clone, Debug)]
struct Tally {
    /// How often the next one is tried.
    tries: u32,
    /// Those that count of those that were judged, and why the others do not.
    counted: u32,
    flaws: Flaws,
}

impl Tally {
    /// Of fewer rounds than four the first is tried less often in proportion: who asks for few does
    /// not want to wait.
    fn of(rounds: u32) -> Tally {
        Tally { tries: TRIES * rounds.min(4) / 4, counted: 0, flaws: Flaws::default() }
    }

    fn flawed(&self) -> u32 {
        self.flaws.iter().sum()
    }

    /// Measures until it counts, or there is no more; so often at most.
    fn measure(&mut self, mut once: impl FnMut() -> Option<Sample>) -> Option<Vec<f64>> {
        for _ in 0..self.tries {
            let Sample { values, judged } = once()?;
            let Some(Err(flaw)) = judged else {
                self.counted += u32::from(judged.is_some());
                self.tries = TRIES;
                return Some(values);
            };
            self.flaws[flaw as usize] += 1;
        }
        self.tries = (self.tries / 2).max(TRIES_MIN);
        None
    }
}

/// A run of the benchmark: the way out, the progress, and the order that is drawn.
pub(crate) struct Session<'a> {
    pub(crate) host: &'a mut dyn Host,
    /// In how many rounds the case at hand is measured, and about how long a rival takes in each.
    pub(crate) amount: (u32, Duration),
    /// Why a case could not be measured: the run ends with this.
    pub(crate) failed: Option<Error>,
    pin: bool,
    generator: ChaCha8Rng,
}

impl<'a> Session<'a> {
    pub(crate) fn new(host: &'a mut dyn Host, options: &Options) -> Session<'a> {
        let generator = ChaCha8Rng::seed_from_u64(options.seed);
        let amount = (options.rounds(), Duration::ZERO);
        Session { host, amount, failed: None, pin: options.pin, generator }
    }

    /// Measures a row of each rival by slices, for as long as all rounds take.
    pub(crate) fn slices(&mut self, mut case: Case, rows: &[Row<'_>]) -> Option<Case> {
        let (rounds, budget) = self.amount;
        let wanted = Wanted::in_time(budget * rounds, self.generator.random());
        let (measured, run) = slices::run(rows, &Wanted { pin: self.pin, ..wanted }, self.host);
        for (rival, measured) in case.rivals.iter_mut().zip(measured) {
            rival.values[0] = measured.values;
            rival.missing = measured.missing;
        }
        case.run = Some(run);
        let is_measured = case.rivals.iter().any(|rival| rival.missing.is_none());
        (is_measured || !self.host.must_stop()).then_some(case)
    }

    /// Measures every rival in each round; `measure` gets the number of the rival, and of the
    /// round, and gives one value for each metric. Nothing if not one round was finished.
    pub(crate) fn interleave(
        &mut self,
        mut case: Case,
        measure: &mut dyn FnMut(usize, u32) -> Sample,
    ) -> Option<Case> {
        let (rounds, budget) = self.amount;
        let mut order: Vec<usize> = (0..case.rivals.len()).collect();
        let mut tallies = vec![Tally::of(rounds); case.rivals.len()];
        let watch = Watch::begin();
        let mut finished = 0_usize;
        'rounds: for number_of_round in 0..rounds {
            order.shuffle(&mut self.generator);
            let mut round = vec![None; case.rivals.len()];
            for &number in &order {
                let now = format!("{}: {}", case.title, case.rivals[number].name);
                self.host.announce(&now);
                defer_on_unwind!(eprintln!("while this was measured: {now}"));
                let once = || (!self.host.must_stop()).then(|| measure(number, number_of_round));
                round[number] = tallies[number].measure(once);
                if round[number].is_none() && self.host.must_stop() {
                    break 'rounds;
                }
                self.host.advance(budget);
            }
            for (rival, values) in case.rivals.iter_mut().zip(round) {
                values.iter().for_each(|values| rival.add(number_of_round, values));
            }
            finished += 1;
        }
        let least = COUNTED_MIN.min(finished.div_ceil(2));
        let run = watch.end(false, false);
        (finished > 0 && !order.is_empty()).then(|| case.finished(&tallies, least, run))
    }
}

impl Case {
    /// With a reason in place of the figures of a rival of which fewer rounds count than this.
    fn finished(mut self, tallies: &[Tally], least: usize, mut run: RunVerdict) -> Case {
        for (rival, tally) in self.rivals.iter_mut().zip(tallies) {
            if rival.values[0].len() < least {
                rival.values.iter_mut().for_each(Vec::clear);
                rival.missing = Some(Missing::of(&tally.flaws, tally.counted));
            }
            if tally.counted + tally.flawed() > 0 {
                run.add_row(false, tally.counted, &tally.flaws, rival.missing.is_some());
            }
        }
        run.distance_ns = slices::usual_distance_ns();
        self.run = (run.rows > 0).then_some(run);
        self
    }
}

impl Series {
    /// A rival of which nothing was measured yet.
    fn new(name: &'static str, ours: bool, metrics: &[Metric]) -> Series {
        let values = vec![Vec::new(); metrics.len()];
        Series { name, ours, values, rounds: Vec::new(), missing: None }
    }

    fn add(&mut self, round: u32, values: &[f64]) {
        self.rounds.push(round);
        assert_eq!(values.len(), self.values.len(), "one value for each metric");
        for (all, value) in self.values.iter_mut().zip(values) {
            all.push(*value);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::tests::quick;
    use super::*;
    use crate::host::Quiet;
    use crate::slices::{Flaw, Judged};

    const METRICS: &[Metric] = &[
        Metric { name: "time", unit: Unit::Nanoseconds },
        Metric { name: "peak", unit: Unit::Objects },
    ];

    pub(in crate::suites) fn case() -> Case {
        Case::new("case", "case", METRICS, ["a", "b", "c"].map(|name| (name, false)))
    }

    /// The case after so many rounds, each of whose samples may stop the run.
    fn measured(
        rounds: u32,
        seed: u64,
        mut sample: impl FnMut(usize, u32, &AtomicBool) -> Sample,
    ) -> Option<Case> {
        let mut host = Quiet::default();
        let flag = host.stops.clone();
        let mut sample = |number, round| sample(number, round, &flag);
        let options = Options { seed, ..quick(rounds, &[]) };
        Session::new(&mut host, &options).interleave(case(), &mut sample)
    }

    /// Runs four rounds; the order of all measurements and the case.
    fn run(seed: u64, stop_after: usize) -> (Vec<usize>, Option<Case>) {
        let mut order = Vec::new();
        let case = measured(4, seed, |number, _, stops| {
            order.push(number);
            stops.fetch_or(order.len() == stop_after, Relaxed);
            Sample::new([(number + 1) as f64, order.len() as f64], None)
        });
        (order, case)
    }

    #[test]
    fn every_round_measures_every_rival_once_and_the_seed_decides_the_order() {
        let (order, case) = run(5, usize::MAX);
        for round in order.chunks(3) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        assert_eq!(run(5, usize::MAX).0, order);
        assert!((6..16).any(|seed| run(seed, usize::MAX).0 != order));
        let case = case.unwrap();
        assert_eq!(case.rivals[1].values[0], [2.0; 4]);
        assert_eq!(case.ratio("b", "a", 0).unwrap().median, 2.0);
        assert_eq!(case.ratio("b", "another", 0), None);
    }

    #[test]
    fn slices_are_compared_in_their_order_as_far_as_both_have_them() {
        let mut case = case();
        case.rivals[0].values[0] = vec![1.0, 2.0, 3.0, 4.0, 5.0];
        case.rivals[1].values[0] = vec![2.0, 4.0, 6.0, 8.0, 10.0, 1000.0, 1000.0];
        case.rivals[2].missing = Some(Missing::NoTime);
        assert_eq!(case.ratio("b", "a", 0).unwrap().median, 2.0);
        assert_eq!(case.ratio("a", "b", 0).unwrap().median, 0.5);
        assert_eq!((case.ratio("c", "a", 0), case.ratio("a", "c", 0)), (None, None));
        assert!(case.rivals[2].spread(0).is_none());
    }

    /// The quartiles were not numbers: "> 999 %" in the table, and no place in a plot.
    #[test]
    fn rounds_in_which_nothing_was_measured_spoilt_the_figures_of_the_others() {
        let mut case = case();
        case.rivals[0].values[0] = vec![1.0, f64::NAN, 3.0, 2.0, -f64::NAN];
        case.rivals[1].values[0] = vec![3.0, 1.0, f64::NAN, 6.0, 1.0];
        case.rivals[2].values[0] = vec![f64::NAN; 5];
        let spread = case.rivals[0].spread(0).unwrap();
        assert_eq!(spread, Spread { median: 2.0, low: 1.5, high: 2.5 });
        assert_eq!(case.ratio("b", "a", 0).unwrap().median, 3.0);
        assert_eq!((case.rivals[2].spread(0), case.ratio("c", "a", 0)), (None, None));
    }

    #[test]
    fn a_measurement_that_does_not_count_is_repeated_a_few_times() {
        let measure = |judged: &[Judged]| {
            let (mut judged, mut count) = (judged.iter().copied(), 0.0);
            let mut tally = Tally::of(4);
            let values = tally.measure(|| {
                count += 1.0;
                Some(Sample::new([count], judged.next().expect("no more tries than that")))
            });
            (values, tally.counted, tally.flawed())
        };
        let taken = Some(Err(Flaw::Taken));
        assert_eq!(measure(&[None]), (Some(vec![1.0]), 0, 0));
        assert_eq!(measure(&[Some(Ok(()))]), (Some(vec![1.0]), 1, 0));
        assert_eq!(measure(&[taken, Some(Ok(()))]), (Some(vec![2.0]), 1, 1));
        assert_eq!(measure(&[taken; TRIES as usize]), (None, 0, TRIES));
    }

    #[test]
    fn what_never_counts_is_tried_less_often_until_it_does() {
        let mut tally = Tally::of(4);
        let mut count_at = |judged| {
            let mut count = 0;
            tally.measure(|| {
                count += 1;
                Some(Sample::new([], Some(judged)))
            });
            count
        };
        assert_eq!([Err(Flaw::Apart); 5].map(&mut count_at), [25, 12, 6, 3, TRIES_MIN]);
        let once_calm = [Err(Flaw::Apart), Ok(()), Err(Flaw::Apart)];
        assert_eq!(once_calm.map(&mut count_at), [TRIES_MIN, 1, TRIES]);
    }

    /// `--rounds 1` took as long on a busy machine as 25 rounds on a calm one.
    #[test]
    fn few_rounds_were_tried_as_often_as_many() {
        let tried = |rounds| {
            let case =
                measured(rounds, 1, |_, _, _| Sample::new([1.0, 1.0], Some(Err(Flaw::Taken))));
            case.and_then(|case| case.run).map(|run| run.drawn / run.rows)
        };
        assert_eq!([1, 2, 4].map(tried), [6, 12 + 6, 25 + 12 + 6 + 3].map(Some));
    }

    #[test]
    fn who_never_counts_has_a_reason_and_the_others_their_figures() {
        let case = measured(4, 1, |number, _, _| {
            let judged = if number == 1 { Err(Flaw::Taken) } else { Ok(()) };
            Sample::new([1.0, 1.0], Some(judged))
        });
        let case = case.unwrap();
        assert_eq!(case.rivals[0].values[0], [1.0; 4]);
        assert!(case.rivals[1].values.iter().all(Vec::is_empty));
        let missing = case.rivals[1].missing.as_ref().unwrap().to_string();
        assert!(missing.contains("it lost its CPU"), "{missing}");
        let run = case.run.unwrap();
        assert_eq!((run.rows, run.without_figure, run.counted), (3, 1, 8));
        assert_eq!(run.drawn, 8 + 25 + 12 + 6 + 3);
    }

    #[test]
    fn a_case_that_is_stopped_in_its_first_round_is_none_also_where_a_try_did_not_count() {
        // A round whose last rival was cut short was a whole one.
        for (counted, last) in [(0, 2), (2, 4)] {
            let mut tried = 0;
            let case = measured(4, 1, |_, _, stops| {
                tried += 1;
                stops.store(tried == last, Relaxed);
                let judged = if tried <= counted { Ok(()) } else { Err(Flaw::Taken) };
                Sample::new([1.0, 1.0], Some(judged))
            });
            assert!(case.is_none());
            assert_eq!(tried, last, "a stop is heeded between two tries");
        }
    }

    #[test]
    fn ratios_are_of_rounds_in_which_both_count() {
        let case = measured(6, 1, |number, round, _| {
            // All tries of the first round fail for one of them.
            let judged = if (number, round) == (1, 0) { Err(Flaw::Taken) } else { Ok(()) };
            Sample::new([f64::from(round + 1).powi(2), 1.0], Some(judged))
        });
        let case = case.unwrap();
        assert_eq!((case.rivals[0].values[0].len(), case.rivals[1].values[0].len()), (6, 5));
        let ratio = case.ratio("b", "a", 0).unwrap();
        assert_eq!((ratio.low, ratio.median), (1.0, 1.0), "each round with itself");
    }

    /// "threads pinned", of threads that `--pin` does not reach.
    #[test]
    fn only_slices_are_measured_on_pinned_threads() {
        let (mut host, options) = (Quiet::default(), Options { pin: true, ..quick(1, &[]) });
        let mut session = Session::new(&mut host, &options);
        let sample = &mut |_, _| Sample::new([1.0, 1.0], Some(Ok(())));
        let case = session.interleave(case(), sample).unwrap();
        assert!(!case.run.unwrap().is_pinned);
    }

    #[test]
    fn a_round_that_is_cut_short_is_dropped() {
        let (order, case) = run(1, 5);
        assert_eq!(order.len(), 5);
        assert!(case.unwrap().rivals.iter().all(|rival| rival.values[0].len() == 1));
        assert!(run(1, 2).1.is_none(), "no round was finished");
    }
}
