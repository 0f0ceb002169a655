//! Which designs are equal to the best one, and which of them may be recommended.
//!
//! Every design is compared with the best one round by round: by the medians of the slices that
//! count, since slices of one round share its memory and its moment. The ratio has an interval,
//! Student's over the logarithms. A design is
//! - *in* if it is shown to lose no more than the [`ZONE`]: the interval's upper end is within it;
//! - *out* if it seems to lose more: the middle is above the zone;
//! - *near* otherwise. More rounds are run until all intervals are on one side of the zone's end,
//!   or the time is over.
//!
//! Designs that are not out are *equal*, and share a rank. Only a design that is in is recommended:
//! what one run has shown to be equal seldom seems to lose more than the zone in another. The most
//! that a design can lose is the greatest upper end of its ratios to the others, without those
//! whose interval is entirely beyond the zone; that holds for the first one too, which only seems
//! to be the best. If that bound is too wide for each design that is in, none is recommended, but
//! those that may be the best are named. A design of which too few slices count is not ranked: its
//! CPU time says how fast it may be at most.
//!
//! The zone is one of indifference. A difference that is shown is not enough: with enough rounds
//! all designs differ, and which of two equals is ahead changes from run to run.

use bench::statistics::{OfRound, Ratio, in_pairs, student_ratio};
use serde::Serialize;

/// How many times as fast the best may be: what most programs do not notice, and more than two runs
/// of the same design differ.
pub(super) const ZONE: f64 = 1.15;

/// One that is so many times slower, at the lower end, is measured no further.
pub(super) const GIVEN_UP: f64 = 2.0;

/// More may not be lost with what is recommended, in per cent.
pub(super) const BOUND_MAX_PERCENT: f64 = 30.0;

/// How sure the intervals are. A run looks at a dozen designs several times, and one in twenty of
/// its looks should not be wrong; what is wrong by a little is inside of the zone.
const CONFIDENCE: f64 = 0.99;

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

/// How many times as fast `best` is, by the rounds that both have. Of one or none, nothing is known
/// and the interval is everything.
pub(super) fn advantage(best: &[OfRound], other: &[OfRound]) -> Ratio {
    let (best, other) = in_pairs(best, other);
    student_ratio(&best, &other, CONFIDENCE)
}

/// What is lost where another design is so many times as fast at most, in per cent of the other
/// one's speed; `None` if that cannot be told.
pub(super) fn lost_percent_at_most(high: f64) -> Option<f64> {
    high.is_finite().then(|| (100.0 * (1.0 - 1.0 / high)).max(0.0))
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

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
    fn slices_of_one_round_have_no_interval() {
        let ratio = advantage(&[(0, 9.0); 30], &[(0, 1.0); 30]);
        assert_eq!((ratio.low, lost_percent_at_most(ratio.high)), (0.0, None));
        assert_eq!(Standing::of(&ratio), Standing::Out, "it seems to lose");
        assert_eq!(Standing::of(&advantage(&[], &[])), Standing::Near);
        let two = advantage(&[(0, 9.0), (1, 9.0)], &[(0, 1.0), (1, 1.0)]);
        assert!(Standing::of(&two) == Standing::Out && is_decided(&two), "{two:?}");
    }

    /// The interval was over the slices, as if those of a round had nothing in common: of 3 rounds
    /// of 32 slices it missed in one run of nine, not of a hundred.
    #[test]
    fn an_interval_holds_the_true_ratio_as_often_as_it_says_though_slices_of_a_round_are_alike() {
        const RUNS: usize = 2_000;
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        for (rounds, slices, of_rounds) in
            [(3, 32, 0.03), (6, 16, 0.03), (6, 16, 0.1), (24, 8, 0.1)]
        {
            let mut side = |speed: f64| -> Vec<OfRound> {
                // About normal: a sum of twelve.
                let mut normal = || (0..12).map(|_| generator.random::<f64>()).sum::<f64>() - 6.0;
                let mut all = Vec::new();
                for round in 0..rounds {
                    let own = of_rounds * normal();
                    // Not all of them count.
                    let count = slices / (1 + round % 3);
                    all.extend((0..count).map(|_| (round, speed * (own + 0.1 * normal()).exp())));
                }
                all
            };
            let mut holds = || {
                let ratio = advantage(&side(1.2), &side(1.0));
                (ratio.low..=ratio.high).contains(&1.2)
            };
            let held = (0..RUNS).filter(|_| holds()).count();
            // 99 %, and four standard deviations to either side.
            assert!((1_962..=1_998).contains(&held), "{rounds} rounds: {held} of {RUNS}");
        }
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
}
