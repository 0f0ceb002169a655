//! Which designs are equal to the best one, and whether anything is recommended.
//!
//! Every design is compared with the best one slice by slice. The ratio has an interval: by
//! bootstrap over the slices, or Student's if there are few slices and that is wider. A design is
//! - *in* if it is shown to lose no more than the [`ZONE`]: the interval's upper end is within it;
//! - *out* if it seems to lose more: the median is above the zone;
//! - *near* otherwise. More slices are drawn until all intervals are on one side of the zone's end,
//!   or the time is over.
//!
//! Designs that are not out are *equal*, and share a rank. Only a design that is in is recommended:
//! what one run has shown to be equal seldom seems to lose more than the zone in another. The most
//! that a design can lose is the greatest upper end of its ratios to the others, without those
//! whose interval is entirely beyond the zone; that holds for the first one too, which only seems
//! to be the best. If that bound is too wide, or a disturbed run has too many equals, nothing is
//! recommended. A design of which too few slices count is not ranked: its CPU time says how fast it
//! may be at most.
//!
//! The zone is one of indifference. A difference that is shown is not enough: with enough slices
//! all designs differ, and which of two equals is ahead changes from run to run.

use bench::slices::RunVerdict;
use bench::statistics::{OfRound, Ratio, bootstrap_ratio, in_pairs, student_ratio};
use serde::Serialize;

use super::rank::Ranking;
use super::verdict::Advice;

/// How many times as fast the best may be: what most programs do not notice, and more than two runs
/// of the same design differ.
pub(super) const ZONE: f64 = 1.15;

/// One that is so many times slower, at the lower end, is measured no further.
pub(super) const GIVEN_UP: f64 = 2.0;

/// More may not be lost with what is recommended, in per cent.
const BOUND_MAX_PERCENT: f64 = 30.0;

/// A run of whose slices fewer than this count, in per cent, is too disturbed to call more than
/// half of the designs equal.
const COUNTED_MIN_PERCENT: f64 = 50.0;

/// How sure the intervals are. A run looks at a dozen designs several times, and one in twenty of
/// its looks should not be wrong; what is wrong by a little is inside of the zone.
const CONFIDENCE: f64 = 0.99;

/// Below this many slices nothing is known.
const SLICES_MIN: usize = 3;
/// Below this many a bootstrap knows too few values.
const SLICES_OF_BOOTSTRAP: usize = 20;

/// What is known of a design beside the best.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    /// Shown not to lose more than the zone.
    In,
    /// It does not seem to.
    Near,
    /// It seems to.
    Out,
}

impl Standing {
    /// What this interval of the best one's advantage shows.
    pub(super) fn of(best_is_faster: &Ratio) -> Standing {
        if best_is_faster.high <= ZONE {
            Standing::In
        } else if best_is_faster.median <= ZONE {
            Standing::Near
        } else {
            Standing::Out
        }
    }

    /// Whether the design is equal to the best.
    pub(super) fn is_in_set(self) -> bool {
        self != Standing::Out
    }
}

/// Whether the interval is on one side of the zone's end.
pub(super) fn is_decided(best_is_faster: &Ratio) -> bool {
    best_is_faster.high <= ZONE || best_is_faster.low > ZONE
}

/// How many times as fast `best` is, from the slices that both have of the same rounds. Of too few,
/// nothing is known and the interval is everything.
///
/// A bootstrap never looks beyond the slices that there are: of five that all lie on one side by
/// chance, one run in sixteen, it would say so with any confidence. So the interval of few is
/// Student's as well, where that is wider.
pub(super) fn advantage(best: &[OfRound], other: &[OfRound]) -> Ratio {
    let (best, other) = in_pairs(best, other);
    if best.len() < SLICES_MIN {
        return Ratio { low: 0.0, high: f64::INFINITY, median: 1.0 };
    }
    let drawn = bootstrap_ratio(&best, &other, CONFIDENCE);
    if best.len() >= SLICES_OF_BOOTSTRAP {
        return drawn;
    }
    let student = student_ratio(&best, &other, CONFIDENCE);
    Ratio { low: drawn.low.min(student.low), high: drawn.high.max(student.high), ..drawn }
}

/// What is lost where another design is so many times as fast at most, in per cent of the other
/// one's speed; `None` if that cannot be told.
pub(super) fn lost_percent_at_most(high: f64) -> Option<f64> {
    high.is_finite().then(|| (100.0 * (1.0 - 1.0 / high)).max(0.0))
}

/// Why nothing may be recommended, if so.
pub(super) fn too_noisy(
    advice: &[Advice<'_>],
    tables: &[Ranking],
    run: &RunVerdict,
) -> Option<String> {
    // Rounded away from the limits that they are beyond.
    let counted = || {
        let percent = run.counted_percent().floor();
        format!("{} of {} slices count, {percent} %", run.counted, run.drawn)
    };
    if tables.iter().any(|table| table.places.is_empty()) {
        return Some(format!("too few slices; {}", counted()));
    }
    for one in advice {
        match one.lost_percent_at_most {
            Some(percent) if percent <= BOUND_MAX_PERCENT => {}
            Some(percent) => {
                return Some(format!(
                    "the design to take may lose up to {} % of the best speed, more than \
                     {BOUND_MAX_PERCENT} %; {}",
                    percent.ceil(),
                    counted()
                ));
            }
            None => return Some(format!("there are too few slices to tell; {}", counted())),
        }
        let all = one.places.len();
        let is_disturbed = run.counted_percent() < COUNTED_MIN_PERCENT;
        if is_disturbed && one.set.len() * 2 > all {
            return Some(format!(
                "{} of {all} designs seem equal, more than half, and {}, less than \
                 {COUNTED_MIN_PERCENT} %",
                one.set.len(),
                counted()
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rank::rank;
    use crate::advise::verdict::advice;
    use bench::advise::Series;

    fn standing(low: f64, median: f64, high: f64) -> Standing {
        Standing::of(&Ratio { median, low, high })
    }

    #[test]
    fn a_design_is_out_when_it_seems_to_lose_more_than_the_zone() {
        assert_eq!(standing(1.0, 1.05, 1.14), Standing::In);
        assert_eq!(standing(1.05, 1.1, 1.14), Standing::In, "told apart, and not worth it");
        assert_eq!(standing(1.05, 1.1, 1.2), Standing::Near);
        assert_eq!(standing(1.05, 1.16, 1.2), Standing::Out);
        assert_eq!(standing(0.0, 1.0, f64::INFINITY), Standing::Near, "nothing known");
        assert!(!is_decided(&Ratio { low: 1.05, median: 1.16, high: 1.2 }));
        assert!(is_decided(&Ratio { low: 1.16, median: 1.18, high: 1.2 }));
    }

    #[test]
    fn the_loss_is_the_far_end_of_the_interval() {
        assert_eq!(lost_percent_at_most(1.0), Some(0.0));
        assert_eq!(lost_percent_at_most(2.0), Some(50.0));
        assert_eq!(lost_percent_at_most(f64::INFINITY), None);
    }

    #[test]
    fn two_slices_tell_nothing() {
        let ratio = advantage(&[(0, 9.0); 2], &[(0, 1.0); 2]);
        assert_eq!(
            (Standing::of(&ratio), lost_percent_at_most(ratio.high)),
            (Standing::Near, None)
        );
        assert_eq!(Standing::of(&advantage(&[(0, 9.0); 5], &[(0, 1.0); 5])), Standing::Out);
    }

    /// Slices were compared by their numbers, also where one design had fewer of a round: with
    /// those of another round, in which the machine was slower.
    #[test]
    fn designs_are_compared_within_each_round() {
        let (all, few) = (vec![(0, 9.0); 30], vec![(0, 9.0); 5]);
        let (slower, fewer) = (vec![(1, 6.0); 30], vec![(1, 6.0); 30]);
        let [one, other] = [[all, slower].concat(), [few, fewer].concat()];
        let same = Ratio { median: 1.0, low: 1.0, high: 1.0 };
        assert_eq!([advantage(&one, &other), advantage(&other, &one)], [same; 2]);
        let apart = advantage(&one[..30], &other[5..]);
        assert_eq!(apart.high, f64::INFINITY, "no round has both");
    }

    /// A ranking of designs that take so many nanoseconds, by slices with noise of their own.
    fn ranked(ns: &[f64], noise: f64, slices: usize) -> Vec<Ranking> {
        let all = bench::advise::designs(bench::advise::Workload::Table);
        let series = |(number, ns): (usize, &f64)| {
            let mut one = Series::new(&all[number]);
            let wobble =
                |slice: usize| noise * ((slice * (number + 2) * 7 % 11) as f64 / 5.0 - 1.0);
            one.ns = (0..slices).map(|slice| (0, ns * (1.0 + wobble(slice)))).collect();
            one.cpu_ns.clone_from(&one.ns);
            one
        };
        let series: Vec<Series> = ns.iter().enumerate().map(series).collect();
        vec![rank(&series, 2, 2)]
    }

    fn run(counted: u32, drawn: u32) -> RunVerdict {
        let mut run = RunVerdict::default();
        (run.drawn, run.counted, run.rows) = (drawn, counted, 1);
        run
    }

    fn why(tables: &[Ranking], counted: u32) -> Option<String> {
        too_noisy(&advice(tables), tables, &run(counted, 100))
    }

    /// "30 %, more than 30 %", and "50 %, less than 50 %".
    #[test]
    fn what_is_beyond_a_limit_is_not_rounded_to_it() {
        let tables = ranked(&[10.0, 10.1, 10.2, 50.0], 0.01, 40);
        let said = too_noisy(&advice(&tables), &tables, &run(496, 1000)).unwrap();
        assert!(said.contains("slices count, 49 %, less than 50 %"), "{said}");
        let mut advice = advice(&tables);
        advice[0].lost_percent_at_most = Some(30.2);
        let said = too_noisy(&advice, &tables, &run(100, 100)).unwrap();
        assert!(said.contains("up to 31 % of the best speed, more than 30 %"), "{said}");
    }

    #[test]
    fn a_bound_above_30_percent_recommends_nothing() {
        let why = why(&ranked(&[10.0, 10.0, 90.0, 90.0], 0.9, 9), 100).unwrap();
        assert!(why.contains("more than 30 %; 100 of 100 slices count"), "{why}");
    }

    #[test]
    fn a_set_of_more_than_half_of_a_disturbed_run_recommends_nothing() {
        let most = ranked(&[10.0, 10.1, 10.2, 50.0], 0.01, 40);
        assert_eq!(why(&most, 50), None);
        let said = why(&most, 49).unwrap();
        assert!(
            said.contains("3 of 4 designs seem equal, more than half, and 49 of 100"),
            "{said}"
        );
        assert_eq!(why(&ranked(&[10.0, 10.1, 50.0, 50.0], 0.01, 40), 49), None);
        assert!(why(&[Ranking::default()], 0).unwrap().contains("too few slices"));
    }
}
