//! What the project has promised, as ratios between rivals of one case or as figures, and whether
//! it holds here.
//!
//! A promise is met or missed when the whole interval says so; else it is too close to call, and
//! more rounds may tell. Each stands on a figure that was measured and is kept beside it: no aim is
//! stricter than that. What was never measured has no aim.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::rounds::{Case, Metric, Series};
use crate::data::read_toml;
use crate::statistics::{Ratio, paired_ratio};

/// On which side of a number a ratio or a figure has to be.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub enum Bound {
    /// It is not more than this.
    #[serde(rename = "max")]
    AtMost(f64),
    /// It is not less than this.
    #[serde(rename = "min")]
    AtLeast(f64),
}

/// With what a rival's figure is compared.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// With the figure of the one whose median is best, of all others in the table that are not
    /// this project's own.
    Best,
    /// With nothing: the bound is in the metric's own unit.
    Nothing,
    /// With the figure of this one.
    #[serde(untagged)]
    Rival(&'static str),
}

/// One promise.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Promise {
    /// In which case.
    pub case: &'static str,
    /// Of which of its metrics.
    pub metric: &'static str,
    /// Of whose figure.
    pub rival: &'static str,
    /// With what it is compared.
    pub against: Against,
    /// What is promised of the ratio, or of the figure.
    pub bound: Bound,
    /// The ratio, or the figure, that was measured.
    pub measured: f64,
    /// It is kept, too, if the rival's own figure is at most this.
    #[serde(default)]
    pub or_at_most: Option<f64>,
}

/// How a promise was kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Held {
    /// The whole interval keeps it.
    Met,
    /// The whole interval breaks it.
    Missed,
    /// Neither.
    TooClose,
    /// Its rival has no figure.
    NoFigure,
}

/// A promise and what was measured of it.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// What was promised.
    pub promise: Promise,
    /// Of what.
    pub metric: Metric,
    /// The rival that was compared with. With none, the ratio is the figure itself.
    pub base: Option<&'static str>,
    /// Of how many it is the best, if it is compared as the best.
    pub best_of: Option<usize>,
    /// What was measured.
    pub ratio: Ratio,
    /// Whether the promise was kept.
    pub held: Held,
}

/// What is measured beside the others to show the price of protection, and is no rival.
const UNPROTECTED: &str = "plain-load";

use Bound::{AtLeast, AtMost};

/// Judges the promises about what was measured; of the others it says nothing.
pub fn judge(cases: &[Case]) -> Vec<Verdict> {
    let verdict = |promise: &Promise| {
        let case = cases.iter().find(|case| case.id == promise.case)?;
        let number = case.metrics.iter().position(|metric| metric.name == promise.metric)?;
        let rival = case.rival(promise.rival)?;
        let (own, metric) = (rival.measured(number), case.metrics[number]);
        let is_of_best = matches!(promise.against, Against::Best);
        let best_of = is_of_best.then(|| others(case).count());
        let (is_of_itself, is_compared) = match promise.against {
            Against::Nothing => (true, false),
            Against::Rival(name) => (false, case.rival(name).is_some()),
            Against::Best => (false, others(case).next().is_some()),
        };
        if !is_of_itself && !is_compared && promise.or_at_most.is_none() {
            return None;
        }
        let figure = (!own.is_empty()).then(|| paired_ratio(&own, &vec![1.0; own.len()]));
        let alone = figure.zip(promise.or_at_most).map(|(own, most)| AtMost(most).held(&own));
        let compared = || {
            let base = promise.base(case, number)?;
            Some((base, case.ratio(promise.rival, base, number)?))
        };
        let (base, ratio) = compared().unzip();
        let judged = || {
            let figure = figure?;
            match ratio.or(is_of_itself.then_some(figure)) {
                Some(ratio) => Some((ratio, promise.bound.held(&ratio))),
                // No figure to compare with: the other half of the promise has to do.
                None => {
                    let held = alone.filter(|alone| !is_compared || *alone == Held::Met)?;
                    Some((figure, held))
                }
            }
        };
        let Some((ratio, held)) = judged() else {
            let ratio = Ratio { median: f64::NAN, low: 0.0, high: f64::INFINITY };
            let held = Held::NoFigure;
            return Some(Verdict { promise: *promise, metric, base: None, best_of, ratio, held });
        };
        let held = match alone {
            Some(Held::Met) => Held::Met,
            Some(Held::TooClose) if held == Held::Missed => Held::TooClose,
            // Who has no figure may be better than the best that is known.
            _ if held == Held::Met && promise.is_best_unknown(case) => Held::NoFigure,
            _ => held,
        };
        Some(Verdict { promise: *promise, metric, base, best_of, ratio, held })
    };
    all().filter_map(verdict).collect()
}

/// All promises: those of `promises.toml`.
pub fn all() -> impl Iterator<Item = &'static Promise> {
    static LISTED: LazyLock<BTreeMap<&str, Vec<Promise>>> =
        LazyLock::new(|| read_toml(include_str!("../../promises.toml")));
    LISTED.values().flatten()
}

impl Promise {
    /// The rival to compare with, if it was measured.
    fn base(&self, case: &Case, metric: usize) -> Option<&'static str> {
        let middle = |name: &str| Some(case.rival(name)?.spread(metric)?.median);
        match self.against {
            Against::Nothing => None,
            Against::Rival(name) => middle(name).map(|_| name),
            Against::Best => {
                let known =
                    others(case).filter_map(|other| Some((middle(other.name)?, other.name)));
                let best = match self.bound {
                    AtMost(_) => known.min_by(|a, b| a.0.total_cmp(&b.0)),
                    AtLeast(_) => known.max_by(|a, b| a.0.total_cmp(&b.0)),
                };
                best.map(|(_, name)| name)
            }
        }
    }

    /// Whether it is of the best of all others, and one of them has no figure.
    fn is_best_unknown(&self, case: &Case) -> bool {
        matches!(self.against, Against::Best) && others(case).any(|other| other.missing.is_some())
    }
}

/// Those of which one is the best.
fn others(case: &Case) -> impl Iterator<Item = &Series> {
    case.rivals.iter().filter(|rival| !rival.ours && rival.name != UNPROTECTED)
}

impl Bound {
    fn held(self, ratio: &Ratio) -> Held {
        let (met, missed) = match self {
            Bound::AtMost(bound) => (ratio.high <= bound, ratio.low > bound),
            Bound::AtLeast(bound) => (ratio.low >= bound, ratio.high < bound),
        };
        match (met, missed) {
            (true, _) => Held::Met,
            (_, true) => Held::Missed,
            _ => Held::TooClose,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounds::{Session, Unit};
    use super::super::tests::{all_scenes, has, quick};
    use super::super::{Options, compat, map, tools};
    use super::*;
    use crate::cases::replace::{LIMIT_BYTES, OBJECT_BYTES};
    use crate::host::Quiet;
    use crate::sample::Sample;
    use crate::slices::{Flaw, Missing};

    /// A case in which each rival has the same figure in all of six rounds; none if it is infinite.
    fn case(id: &'static str, metric: &'static Metric, of: &[(&'static str, f64)]) -> Case {
        let names = of.iter().map(|(name, _)| (*name, name.starts_with("quiescence")));
        let mut case = Case::new(id, id, std::slice::from_ref(metric), names);
        for (rival, (_, figure)) in case.rivals.iter_mut().zip(of) {
            rival.values = vec![vec![*figure; if figure.is_infinite() { 0 } else { 6 }]];
            rival.missing = figure.is_infinite().then_some(Missing::NoTime);
        }
        case
    }

    /// What becomes of each promise of such a case.
    fn held(id: &'static str, metric: &'static Metric, of: &[(&'static str, f64)]) -> Vec<Held> {
        judge(&[case(id, metric, of)]).iter().map(|verdict| verdict.held).collect()
    }

    const READ: Metric = Metric { name: "read", unit: Unit::Nanoseconds };
    const CALL: Metric = Metric { name: "call", unit: Unit::Nanoseconds };
    const OPERATIONS: Metric = Metric { name: "operations", unit: Unit::PerSecond };
    const MEMORY: Metric = Metric { name: "memory", unit: Unit::Bytes };

    #[test]
    fn the_whole_interval_has_to_say_so() {
        let ratio = |low, high| Ratio { median: (low + high) / 2.0, low, high };
        assert_eq!(Bound::AtMost(1.0).held(&ratio(0.8, 1.0)), Held::Met);
        assert_eq!(Bound::AtMost(1.0).held(&ratio(0.8, 1.1)), Held::TooClose);
        assert_eq!(Bound::AtMost(1.0).held(&ratio(1.01, 1.1)), Held::Missed);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(3.0, 4.0)), Held::Met);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(2.9, 4.0)), Held::TooClose);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(2.0, 2.9)), Held::Missed);
    }

    #[test]
    fn only_what_was_measured_is_judged() {
        let rivals = [("quiescence", 1.0), ("seize", 2.0)];
        let verdicts = judge(&[case("read/1-thread", &READ, &rivals)]);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0].promise.rival, "seize");
        assert!(verdicts[0].held == Held::Missed, "1.5 times is not twice");
    }

    #[test]
    fn the_best_of_those_that_were_measured_is_the_one_to_beat() {
        let judged = |ours| {
            let rivals = [("quiescence-hashmap", ours), ("std-rwlock", 3.0), ("a-new-one", 5.0)];
            let verdicts = judge(&[case("get/1000/1-thread", &OPERATIONS, &rivals)]);
            assert_eq!((verdicts.len(), verdicts[0].base), (1, Some("a-new-one")));
            assert_eq!(verdicts[0].best_of, Some(2), "how short the list is");
            verdicts[0].held
        };
        assert_eq!(judged(4.9), Held::Missed, "1.6 of the next best is not enough");
        assert_eq!(judged(9.0), Held::Met);
    }

    #[test]
    fn what_has_no_figure_neither_keeps_a_promise_nor_breaks_it() {
        let held = held("read/1-thread", &READ, &[("quiescence", f64::INFINITY), ("seize", 2.0)]);
        assert_eq!(held, [Held::NoFigure], "of liburcu, which was not measured, nothing is said");
    }

    /// It was "too close to call", of a ratio that is no number.
    #[test]
    fn what_was_measured_in_no_round_had_a_verdict() {
        for (own, other) in [(f64::NAN, 2.0), (1.0, f64::NAN)] {
            let rivals = [("quiescence", own), ("seize", other)];
            assert_eq!(held("read/1-thread", &READ, &rivals), [Held::NoFigure]);
        }
        let mut memory = case("memory/waiting", &MEMORY, &[("quiescence", 16.0)]);
        memory.rivals[0].values[0][0] = f64::NAN;
        assert_eq!(judge(&[memory])[0].held, Held::Met, "by the other rounds");
        let never = held("memory/waiting", &MEMORY, &[("quiescence", f64::NAN)]);
        assert_eq!(never, [Held::NoFigure]);
    }

    #[test]
    fn the_best_is_not_known_while_one_of_the_others_has_no_figure() {
        let judged = |ours| {
            let rivals = [("quiescence", ours), ("seqlock", 2.0), ("std-mutex", f64::INFINITY)];
            held("snapshot/1-thread", &READ, &rivals)[0]
        };
        assert_eq!(judged(2.0), Held::NoFigure, "not the best of the others that are known");
        assert_eq!(judged(3.0), Held::Missed, "whatever the other one is");
    }

    /// Such a promise was left out, and a gate let it pass.
    #[test]
    fn a_promise_without_a_figure_to_compare_with_was_kept_quiet() {
        let others = [("quiescence", 2.0), ("seqlock", f64::INFINITY)];
        assert_eq!(held("snapshot/1-thread", &READ, &others), [Held::NoFigure], "none is the best");
        assert!(held("snapshot/1-thread", &READ, &others[..1]).is_empty(), "there is none");
    }

    /// Two rivals, each with the same figure in every other round, in which the other has none.
    fn in_turns(id: &'static str, metric: &'static Metric, of: [(&'static str, f64); 2]) -> Case {
        let (mut host, options) = (Quiet::default(), quick(8, &[]));
        let case =
            Case::new(id, "", std::slice::from_ref(metric), of.map(|(name, _)| (name, false)));
        let sample = &mut |number: usize, round: u32| {
            let counts = if round as usize % 2 == number { Err(Flaw::Taken) } else { Ok(()) };
            Sample::new([of[number].1], Some(counts))
        };
        let case = Session::new(&mut host, &options).interleave(case, sample).unwrap();
        assert!(case.rivals.iter().all(|rival| rival.spread(0).is_some()));
        case
    }

    #[test]
    fn figures_of_different_rounds_are_not_compared() {
        let case = in_turns("read/1-thread", &READ, [("quiescence", 1.0), ("seize", 1.0)]);
        assert_eq!(judge(&[case])[0].held, Held::NoFigure);
        let judged = |ours| {
            let of = [("quiescence", ours), ("liburcu-call", 400.0)];
            let verdict = judge(&[in_turns("call/enqueue", &CALL, of)])[0];
            (verdict.held, verdict.base)
        };
        assert_eq!(judged(20.0), (Held::Met, None), "25 ns");
        assert_eq!(judged(40.0), (Held::NoFigure, None), "a fifth, of other rounds");
    }

    #[test]
    fn a_figure_is_judged_by_itself() {
        let judged = |bytes| judge(&[case("memory/waiting", &MEMORY, &[("quiescence", bytes)])]);
        assert_eq!((judged(16.0)[0].held, judged(16.0)[0].base), (Held::Met, None));
        assert_eq!(judged(16.5)[0].held, Held::Missed);
    }

    #[test]
    fn either_half_of_a_promise_will_do() {
        let judged = |ours, liburcu| {
            let rivals = [("quiescence", ours), ("liburcu-call", liburcu)];
            held("call/enqueue", &CALL, &rivals)[0]
        };
        assert_eq!(judged(20.0, 40.0), Held::Met, "25 ns");
        assert_eq!(judged(40.0, 400.0), Held::Met, "a fifth");
        assert_eq!(judged(40.0, 80.0), Held::Missed);
        let alone = |ours| held("call/enqueue", &CALL, &[("quiescence", ours)])[0];
        assert_eq!((alone(25.0), alone(26.0)), (Held::Met, Held::Missed));
        // It had no figure, though its own is enough.
        assert_eq!((judged(25.0, f64::NAN), judged(26.0, f64::NAN)), (Held::Met, Held::NoFigure));
    }

    #[test]
    fn no_aim_is_stricter_than_the_figure_that_it_stands_on() {
        for Promise { case, metric, bound, measured, .. } in all() {
            let is_reached = match *bound {
                AtMost(most) => *measured <= most,
                AtLeast(least) => *measured >= least,
            };
            assert!(is_reached, "{case}, {metric}: {measured} is not {bound:?}");
        }
    }

    /// One object a thread more than the limit.
    #[test]
    fn what_may_wait_in_a_stall_follows_from_the_limit() {
        let waits = |promise: &&Promise| {
            (promise.case, promise.metric) == ("stall/1-reader", "unreclaimed peak")
        };
        let bound = all().find(waits).map(|promise| promise.bound);
        let objects = LIMIT_BYTES / OBJECT_BYTES as u64 + 1;
        assert_eq!(bound, Some(AtMost(objects as f64)));
    }

    #[test]
    fn promises_name_metrics_and_rivals_that_can_be_measured() {
        let (options, two) = (Options::default(), vec![2]);
        let suites = all_scenes().map(|scenes| scenes.prepare(&[], &options));
        let map = map::prepare(&[], &map::Load { threads: two, ..map::Load::default() }, &options);
        let suites = suites.into_iter().chain([map, tools::prepare(&[], Some(2), &options)]);
        let planned = suites.flat_map(|suite| suite.expect("it is well-formed").planned);
        let cases: Vec<Case> = planned.map(|planned| planned.case).chain(compat::all()).collect();
        for Promise { case: id, metric, rival, against, .. } in all() {
            let case = cases.iter().find(|case| case.id == *id);
            let case = case.unwrap_or_else(|| panic!("no suite measures {id}"));
            let other = if let Against::Rival(base) = against { Some(*base) } else { None };
            has(case, metric, other.into_iter().chain([*rival]));
        }
    }
}
