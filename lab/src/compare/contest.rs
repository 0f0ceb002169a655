//! Who is measured when: both programs in pairs, until all is decided or the time is over.
//!
//! Each side of a pair is a process of its own, started close to the other one in an order that is
//! drawn: what drifts meets both, and each process has its own layout of memory.

use std::collections::BTreeMap;
use std::time::Instant;

use bench::statistics::{Ratio, spread};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::CompareArgs;
use super::baseline::{Baseline, Saved};
use super::decide::{ROUNDS_MIN, Rule, Verdict, next_look};
use super::instructions::Counted;
use super::load::{Key, Load, Program, Quality, Run};
use crate::distinct::distinct;
use crate::exit::{Exit, Failure, Result};
use crate::output::Output;

/// With whom the new program is compared.
#[derive(Debug)]
pub(super) enum Base {
    Program(Program),
    Saved(Baseline),
}

impl Base {
    /// Its figures of a round.
    fn run(&self, load: &Load, round: usize, until: Instant) -> Result<Run> {
        match self {
            Base::Program(program) => load.measure(program, Some(until)),
            Base::Saved(baseline) => baseline.round(load, round),
        }
    }
}

/// One figure of both sides, in the order of the pairs.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    #[serde(flatten)]
    pub(super) key: Key,
    /// Whether the exit code depends on it.
    pub(super) decides: bool,
    pub(super) verdict: Verdict,
    /// Why the last pair that lacks it has no figure.
    pub(super) missing: Option<String>,
    /// Nothing before there are pairs enough.
    pub(super) ratio: Option<Ratio>,
    #[serde(serialize_with = "rounds_out")]
    pub(super) base: Vec<f64>,
    #[serde(rename = "candidate", serialize_with = "rounds_out")]
    pub(super) new: Vec<f64>,
}

/// Rounds in JSON, and what they come to.
fn rounds_out<S: Serializer>(rounds: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    let cost = (!rounds.is_empty()).then(|| spread(rounds));
    json!({ "cost": cost, "rounds": rounds }).serialize(serializer)
}

/// One load, and all that is compared of it.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) load: Load,
    pub(super) pairs: Vec<Pair>,
}

/// A comparison that runs.
#[derive(Debug)]
pub(super) struct Contest {
    pub(super) new: Program,
    pub(super) base: Base,
    pub(super) matches: Vec<Match>,
    /// How many runs were how good, by their own verdict.
    pub(super) runs: BTreeMap<Quality, u32>,
    pub(super) threshold_percent: f64,
    pub(super) seed: u64,
    /// How instructions were counted, where no time was measured.
    pub(super) counted: Option<Counted>,
}

/// So often a pair is measured again of which one run was incomplete.
const DRAWN_AGAIN_MAX: u32 = 3;

/// When it ends, decided or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The time is over then: what runs is stopped, and nothing is begun.
    pub(super) until: Instant,
    pub(super) rounds_max: usize,
}

impl Limits {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl Contest {
    /// Nothing is measured yet.
    pub(super) fn new(new: Program, base: Base, args: &CompareArgs) -> Contest {
        Contest {
            new,
            base,
            matches: Vec::new(),
            runs: Quality::ALL.map(|quality| (quality, 0)).into(),
            threshold_percent: args.threshold,
            seed: args.seed,
            counted: None,
        }
    }

    /// Measures each load once on both sides: fills caches, and shows which figures both have. What
    /// decides is as for [`pairs`].
    pub(super) fn prepare(
        &mut self,
        loads: Vec<Load>,
        metrics: &[String],
        (limits, output): (Limits, &mut Output),
    ) -> Result<()> {
        let begin = Instant::now();
        for load in loads {
            output.progress.announce(&load);
            if output.must_stop() {
                return Err(output.stopped());
            }
            let before = Instant::now();
            let late = |failure: Failure| match failure.exit {
                _ if output.interrupt.requested() => Failure::interrupted(),
                Exit::Interrupted if limits.is_over() => Failure::undecided(format!(
                    "{load}: time ran out before each load was measured once; give --time more, or \
                     fewer loads"
                )),
                _ => failure,
            };
            let base = self.base.run(&load, 0, limits.until).map_err(as_usage).map_err(late)?;
            let new = load.measure(&self.new, Some(limits.until)).map_err(late)?;
            let is_common = |key: &&Key| base.keys().any(|own| own == *key);
            let common: Vec<Key> = new.keys().filter(is_common).cloned().collect();
            if common.is_empty() {
                let message = format!("{load}: the two sides have no figure in common");
                return Err(Failure::undecided(message));
            }
            let pairs = pairs(common, metrics);
            if !pairs.iter().any(|pair| pair.decides) {
                let known = distinct(pairs.iter().map(|pair| &*pair.key.metric)).join(", ");
                let message = format!("{load}: no figure has a metric of --metric; it has {known}");
                return Err(Failure::usage(message));
            }
            self.matches.push(Match { load, pairs });
            output.progress.advance(before.elapsed());
        }
        // With the pair of each load that does not count.
        let enough = begin.elapsed() * (ROUNDS_MIN as u32 + 1);
        if begin + enough > limits.until {
            output.note(format_args!(
                "an interval takes {ROUNDS_MIN} pairs of each load, with the first ones about \
                 {:.0} s here: give --time more, or fewer loads",
                enough.as_secs_f64().ceil()
            ));
        }
        Ok(())
    }

    /// Measures pairs until every figure that decides is decided.
    pub(super) fn run(&mut self, limits: Limits, output: &mut Output) -> Result<()> {
        let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
        let (mut rounds, mut look) = (0, next_look(0));
        'rounds: while rounds < limits.rounds_max && !self.matches.iter().all(Match::is_decided) {
            let before = Instant::now();
            for number in 0..self.matches.len() {
                if self.matches[number].is_decided() {
                    continue;
                }
                output.progress.announce(&self.matches[number].load);
                let new_first = generator.random();
                if limits.is_over()
                    || output.must_stop()
                    || !self.measure(number, rounds, new_first, (limits, output))?
                {
                    break 'rounds;
                }
            }
            rounds += 1;
            output.progress.advance(before.elapsed());
            if rounds == look {
                self.judge();
                look = next_look(rounds);
            }
        }
        self.judge();
        Ok(())
    }

    /// Measures one pair. False after Ctrl-C and when the time is over: half a pair is none.
    fn measure(
        &mut self,
        number: usize,
        round: usize,
        new_first: bool,
        until: (Limits, &Output),
    ) -> Result<bool> {
        let load = &self.matches[number].load;
        let side = |is_new| match is_new {
            true => load.measure(&self.new, Some(until.0.until)),
            false => self.base.run(load, round, until.0.until),
        };
        let both = || {
            let (first, second) = (side(new_first)?, side(!new_first)?);
            Ok(if new_first { [second, first] } else { [first, second] })
        };
        let first = usize::from(matches!(self.base, Base::Saved(_)));
        let count = |sides: &[Run; 2]| {
            sides[first..].iter().for_each(|run| *self.runs.entry(run.quality).or_default() += 1);
        };
        let [base, new] = match whole(until, both, count) {
            Err(failure) if failure.exit == Exit::Interrupted => return Ok(false),
            sides => sides?,
        };
        for pair in &mut self.matches[number].pairs {
            pair.add(&base, &new);
        }
        Ok(true)
    }

    fn judge(&mut self) {
        let figures = self.pairs().filter(|pair| pair.decides).count();
        let rule = Rule { threshold_percent: self.threshold_percent, figures };
        // What is decided is not measured again, and so stays.
        for pair in self.matches.iter_mut().flat_map(|each| &mut each.pairs) {
            (pair.ratio, pair.verdict) = rule.judge(&pair.base, &pair.new);
        }
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.matches.iter().flat_map(|each| &each.pairs)
    }

    /// The verdict on all figures that decide: the worst of them.
    pub(super) fn verdict(&self) -> Verdict {
        let deciding = self.pairs().filter(|pair| pair.decides);
        deciding.map(|pair| pair.verdict).max().unwrap_or(Verdict::Same)
    }

    pub(super) fn exit(&self) -> Exit {
        match self.verdict() {
            Verdict::Worse => Exit::Violation,
            Verdict::TooNoisy => Exit::Undecided,
            Verdict::Better | Verdict::Same => Exit::Ok,
        }
    }
}

impl Match {
    /// Whether every figure that decides is decided.
    fn is_decided(&self) -> bool {
        self.pairs.iter().all(|pair| !pair.decides || pair.verdict != Verdict::TooNoisy)
    }
}

/// Runs that belong together, drawn again some times while one of them is incomplete and there is
/// time; if that ends while they are drawn again, those before. `drawn` sees all that are drawn,
/// but for those that an interrupt or the end of the time spoils.
fn whole<const N: usize>(
    (limits, output): (Limits, &Output),
    mut draw: impl FnMut() -> Result<[Run; N]>,
    mut drawn: impl FnMut(&[Run; N]),
) -> Result<[Run; N]> {
    let (mut again, mut before) = (0, None);
    loop {
        let runs = match (draw(), before) {
            _ if output.interrupt.requested() => return Err(Failure::interrupted()),
            (Err(failure), Some(runs)) if failure.exit == Exit::Interrupted && limits.is_over() => {
                return Ok(runs);
            }
            (runs, _) => runs?,
        };
        drawn(&runs);
        let is_whole = runs.iter().all(|run| run.quality != Quality::Incomplete);
        if again == DRAWN_AGAIN_MAX || limits.is_over() || is_whole {
            return Ok(runs);
        }
        again += 1;
        before = Some(runs);
    }
}

impl Pair {
    /// One that decides, and has no round yet.
    pub(super) fn new(key: Key) -> Pair {
        let (verdict, base, new) = (Verdict::TooNoisy, Vec::new(), Vec::new());
        Pair { key, decides: true, verdict, missing: None, ratio: None, base, new }
    }

    /// A figure that one side lacks this time is left out on both.
    fn add(&mut self, base: &Run, new: &Run) {
        match (base.cost_of(&self.key), new.cost_of(&self.key)) {
            (Ok(base), Ok(new)) => {
                self.base.push(base);
                self.new.push(new);
            }
            (Err(reason), _) | (_, Err(reason)) => self.missing = Some(reason.to_owned()),
        }
    }
}

/// The figures, and which of them decide: of the project's own designs, or of all where none is its
/// own, the first metric of each case, or those that are named.
fn pairs(keys: Vec<Key>, metrics: &[String]) -> Vec<Pair> {
    let any_ours = keys.iter().any(|key| key.ours);
    let decides = |key: &Key| {
        let is_metric =
            if metrics.is_empty() { key.is_first } else { metrics.contains(&key.metric) };
        is_metric && (key.ours || !any_ours)
    };
    keys.into_iter().map(|key| Pair { decides: decides(&key), ..Pair::new(key) }).collect()
}

/// The base is what is known to work: if it does not, then the words are wrong.
fn as_usage(failure: Failure) -> Failure {
    let exit = if failure.exit == Exit::Undecided { Exit::Usage } else { failure.exit };
    Failure { exit, ..failure }
}

/// Measures the rounds of one program, to be kept: after Ctrl-C those that there are, if they can
/// be compared with.
pub(super) fn save(
    program: &Program,
    loads: &[Load],
    limits: Limits,
    output: &mut Output,
) -> Result<Vec<Saved>> {
    let mut saved: Vec<Saved> = Vec::new();
    // The first run of each fills caches, and is no round.
    'rounds: for round in 0..=limits.rounds_max {
        // As few as can be compared with are taken however long it takes.
        let are_enough = round > ROUNDS_MIN;
        if are_enough && limits.is_over() {
            break;
        }
        let before = Instant::now();
        for (number, load) in loads.iter().enumerate() {
            output.progress.announce(load);
            let measure = || Ok([load.measure(program, None)?]);
            let run = match output.must_stop() {
                true => Err(output.stopped()),
                false => whole((limits, &*output), measure, |_| ()),
            };
            match run {
                Ok([run]) if round == 0 => saved.push(Saved::new(load, &run)),
                Ok([run]) => saved[number].add(&run),
                Err(_) if are_enough && output.interrupt.requested() => break 'rounds,
                Err(failure) if round == 0 => return Err(as_usage(failure)),
                Err(failure) => return Err(failure),
            }
        }
        output.progress.advance(before.elapsed());
    }
    for key in saved.iter_mut().flat_map(Saved::forget_few) {
        output.note(format_args!("{key} is not saved: it has a figure in few rounds only"));
    }
    Ok(saved)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(rival: &str, ours: bool, metric: &str, is_first: bool) -> Key {
        let text = str::to_owned;
        let (rival, metric) = (text(rival), text(metric));
        Key { case: text("read/1-thread"), rival, ours, metric, unit: text("ns"), is_first }
    }

    fn deciding(metrics: &[&str], keys: &[Key]) -> Vec<String> {
        let metrics: Vec<String> = metrics.iter().map(|&metric| metric.to_owned()).collect();
        let pairs = pairs(keys.to_vec(), &metrics);
        pairs
            .into_iter()
            .filter(|pair| pair.decides)
            .map(|pair| format!("{} {}", pair.key.rival, pair.key.metric))
            .collect()
    }

    fn contest(pairs: Vec<Pair>) -> Contest {
        let new = Program { path: "rcu".into(), planted_percent: None };
        let base = Base::Program(new.clone());
        let matches = vec![Match { load: "bench read".parse().unwrap(), pairs }];
        let (runs, counted) = (BTreeMap::new(), None);
        Contest { new, base, matches, runs, threshold_percent: 2.0, seed: 1, counted }
    }

    #[test]
    fn the_first_metric_of_our_own_decides_unless_others_are_named() {
        let keys = [
            key("a", true, "read", true),
            key("a", true, "CPU", false),
            key("b", false, "read", true),
        ];
        assert_eq!(deciding(&[], &keys), ["a read"]);
        assert_eq!(deciding(&["CPU"], &keys), ["a CPU"]);
        assert_eq!(deciding(&[], &keys[2..]), ["b read"], "none is ours");
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_figure_that_decides() {
        let pair =
            |verdict, decides| Pair { decides, verdict, ..Pair::new(key("a", true, "read", true)) };
        use Verdict::{Better, Same, TooNoisy, Worse};
        for (verdicts, exit) in [
            (&[(Same, true), (Better, true)][..], Exit::Ok),
            (&[(Same, true), (Worse, false)], Exit::Ok),
            (&[(Same, true), (TooNoisy, true)], Exit::Undecided),
            (&[(TooNoisy, true), (Worse, true)], Exit::Violation),
        ] {
            let pairs = verdicts.iter().map(|&(verdict, decides)| pair(verdict, decides));
            let contest = contest(pairs.collect());
            assert_eq!(contest.exit(), exit, "{verdicts:?}");
        }
    }

    /// `--time 10` took 27 s: the first runs of each load did not count.
    #[test]
    fn the_time_of_a_comparison_counts_from_its_beginning() {
        let mut output = Output::new(&Default::default()).unwrap();
        let limits = Limits { until: Instant::now(), rounds_max: 20 };
        let mut contest = contest(pairs(vec![key("a", true, "read", true)], &[]));
        contest.run(limits, &mut output).unwrap();
        assert!(contest.pairs().all(|pair| pair.base.is_empty()), "nothing was begun");
        let loads = vec!["bench read".parse().unwrap()];
        let failure = contest.prepare(loads, &[], (limits, &mut output)).unwrap_err().to_string();
        assert!(failure.contains("give --time more"), "{failure}");
        output.interrupt.request();
        assert_eq!(output.exit(contest.exit()), Exit::Interrupted);
    }

    /// A pair of which one run was incomplete was lost if the time was over while it was drawn
    /// again.
    #[test]
    fn a_pair_that_was_measured_is_kept_when_the_time_ends_the_next_draw() {
        let output = Output::new(&Default::default()).unwrap();
        let (mut soon, mut draws) = (Duration::from_millis(10), 0);
        while draws < 2 {
            let limits = Limits { until: Instant::now() + soon, rounds_max: 20 };
            draws = 0;
            let draw = || {
                draws += 1;
                if draws == 1 {
                    return Ok([Run { quality: Quality::Incomplete, ..Run::default() }]);
                }
                while !limits.is_over() {
                    std::thread::yield_now();
                }
                Err(Failure::interrupted())
            };
            let mut seen = 0;
            let [kept] = whole((limits, &output), draw, |_| seen += 1).unwrap();
            assert_eq!((kept.quality, seen), (Quality::Incomplete, 1));
            soon *= 2;
        }
    }
}
