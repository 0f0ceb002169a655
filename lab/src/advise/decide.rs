//! The rule by which designs are in the set that a run names, or out of it.
//!
//! Every design is compared with the best one round by round, and the ratio has an interval: by
//! bootstrap over the rounds, or Student's where that is wider. It is
//! - *out* when it is shown to lose: the lower end is above [`ZONE`];
//! - *in* when it is shown not to: the upper end is not above it;
//! - *near* otherwise. More rounds are run for these and the best only, until none is near or the
//!   time is over. A design that is still near is in the set, and is recommended only if it seems
//!   to be in, by the median.
//!
//! What a design of the set loses at most is the most that any other of them may be faster, at the
//! upper end: also for the first, which only seems to be the best.
//!
//! The zone is one of indifference: to be told apart is not enough, since with rounds enough all
//! designs are, and which of two equals is ahead changes from run to run.
//!
//! Two runs *agree* when the design that each recommends is in the set of the other, so that none
//! of them calls the other's advice wrong. Whether they recommend the same design, and whether the
//! sets are equal, are stricter questions; `cargo xtask advice-agreement` shows all three.

use bench::statistics::{Ratio, bootstrap_ratio, student_ratio};
use serde::Serialize;

/// How many times as fast the best may be before a design is out: a tenth, which is less than what
/// most programs notice, and more than two runs of the same design differ on a quiet machine.
pub(super) const ZONE: f64 = 1.1;

/// How sure the intervals are. A run looks at a dozen designs several times, and one in twenty of
/// its looks should not be wrong but one in twenty of its runs (Bonferroni's correction).
const CONFIDENCE: f64 = 0.999;

/// Below this many rounds a bootstrap knows too few values.
pub(super) const ROUNDS_MIN: usize = 3;

/// What is known of a design beside the best.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    /// Shown not to lose more than the zone.
    In,
    /// Not shown either way.
    Near,
    /// Shown to lose more than the zone.
    Out,
}

impl Standing {
    /// What this interval of the best one's advantage shows.
    pub(super) fn of(best_is_faster: &Ratio) -> Standing {
        if best_is_faster.low > ZONE {
            Standing::Out
        } else if best_is_faster.high <= ZONE {
            Standing::In
        } else {
            Standing::Near
        }
    }

    /// Whether the design is one of those to take.
    pub(super) fn is_in_set(self) -> bool {
        self != Standing::Out
    }
}

/// How many times as fast `best` is, from the rounds that both have. Of too few rounds, or of
/// rounds in which neither did anything, nothing is known and the interval is everything.
///
/// A bootstrap never looks beyond the rounds that there are: of five that all lie on one side by
/// chance, one run in sixteen, it would say so with any confidence. So the interval is Student's as
/// well, where that is wider.
pub(super) fn advantage(best: &[f64], other: &[f64]) -> Ratio {
    let rounds = best.len().min(other.len());
    let (best, other) = (&best[..rounds], &other[..rounds]);
    let drawn = bootstrap_ratio(best, other, CONFIDENCE);
    let student = student_ratio(best, other, CONFIDENCE);
    let ratio = Ratio {
        low: drawn.low.min(student.low),
        high: drawn.high.max(student.high),
        median: drawn.median,
    };
    let known = rounds >= ROUNDS_MIN && !(ratio.low.is_nan() || ratio.high.is_nan());
    if known { ratio } else { Ratio { low: 0.0, high: f64::INFINITY, ..ratio } }
}

/// What is lost where another design is so many times as fast at most, in per cent of the other
/// one's speed; `None` if that cannot be told.
pub(super) fn lost_percent_at_most(high: f64) -> Option<f64> {
    high.is_finite().then(|| (100.0 * (1.0 - 1.0 / high)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(low: f64, high: f64) -> Standing {
        Standing::of(&Ratio { median: f64::midpoint(low, high), low, high })
    }

    #[test]
    fn a_design_is_out_only_when_the_whole_interval_is_beyond_the_zone() {
        assert_eq!(standing(1.0, 1.09), Standing::In);
        assert_eq!(standing(1.05, 1.09), Standing::In, "told apart, and not worth it");
        assert_eq!(standing(1.05, 1.2), Standing::Near);
        assert_eq!(standing(1.11, 1.2), Standing::Out);
        assert_eq!(standing(0.0, f64::INFINITY), Standing::Near, "nothing known");
    }

    /// Once in sixteen times five rounds lie on one side of the true ratio: a design that one run
    /// called out, by five of them, another recommended.
    #[test]
    fn five_rounds_on_one_side_of_the_zone_are_no_proof() {
        let other = [0.62, 0.9, 0.55, 0.88, 0.7];
        assert_eq!(Standing::of(&advantage(&[1.0; 5], &other)), Standing::Near);
        // Forty of them are, and so are five that lie close together.
        let forty = other.repeat(8);
        assert_eq!(Standing::of(&advantage(&[1.0; 40], &forty)), Standing::Out);
        assert_eq!(
            Standing::of(&advantage(&[1.0; 5], &[0.5, 0.51, 0.5, 0.49, 0.5])),
            Standing::Out
        );
    }

    #[test]
    fn the_loss_is_the_far_end_of_the_interval() {
        assert_eq!(lost_percent_at_most(1.0), Some(0.0));
        assert_eq!(lost_percent_at_most(2.0), Some(50.0));
        assert_eq!(lost_percent_at_most(f64::INFINITY), None);
    }

    #[test]
    fn two_rounds_and_rounds_of_nothing_tell_nothing() {
        for ratio in [advantage(&[9.0; 2], &[1.0; 2]), advantage(&[0.0; 9], &[0.0; 9])] {
            assert_eq!(Standing::of(&ratio), Standing::Near);
            assert_eq!(lost_percent_at_most(ratio.high), None);
        }
        assert_eq!(Standing::of(&advantage(&[9.0; 5], &[1.0; 3])), Standing::Out);
    }
}
