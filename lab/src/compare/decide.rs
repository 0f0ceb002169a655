//! What rounds say: better, worse, the same, or not yet known.
//!
//! A round is a pair of runs, one of each program, close to each other in time. The ratio of costs
//! is taken within each pair, and the interval of its median is that of the sign test: Student's
//! would be wide wherever one pair in ten is far off. Rounds are looked at again and again until
//! all is decided, which gives chance several tries: the interval is that of 99.8 %, shared out
//! among all figures that decide (Bonferroni), and a difference has to be larger than the threshold
//! besides.

use bench::statistics::{Ratio, surer_ratio};
use serde::Serialize;

/// How often the intervals of one look miss, all together.
const MISS: f64 = 0.002;

/// The range of so many pairs misses once in 16,384 times, which is sure enough for 32 figures.
pub(super) const ROUNDS_MIN: usize = 15;

/// What is said of a figure; of several, the greatest of these.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// Whatever difference there is, is smaller than the threshold.
    Same,
    /// It costs less, by more than the threshold.
    Better,
    /// The interval holds both a difference and none.
    TooNoisy,
    /// It costs more, by more than the threshold.
    Worse,
}

impl Verdict {
    pub(super) fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::TooNoisy => "too noisy",
        }
    }
}

/// How a decision is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) threshold_percent: f64,
    /// Figures that decide together.
    pub(super) figures: usize,
}

impl Rule {
    /// Judges the costs of both sides, pair by pair. Of fewer pairs than [`ROUNDS_MIN`] there is
    /// no interval, and the verdict is open.
    pub(super) fn judge(&self, base: &[f64], new: &[f64]) -> (Option<Ratio>, Verdict) {
        let miss = MISS / self.figures.max(1) as f64;
        let ratio = (base.len() >= ROUNDS_MIN).then(|| surer_ratio(new, base, miss));
        (ratio, ratio.map_or(Verdict::TooNoisy, |ratio| self.verdict(&ratio)))
    }

    /// What a ratio and its interval tell.
    pub(super) fn verdict(&self, ratio: &Ratio) -> Verdict {
        let limit = 1.0 + self.threshold_percent / 100.0;
        if ratio.low > 1.0 / limit && ratio.high < limit {
            Verdict::Same
        } else if ratio.low > 1.0 && ratio.median > limit {
            Verdict::Worse
        } else if ratio.high < 1.0 && ratio.median < 1.0 / limit {
            Verdict::Better
        } else {
            Verdict::TooNoisy
        }
    }
}

/// After how many pairs to look, the next time after `rounds`: looks grow rare, since each of them
/// is a chance to be wrong.
pub(super) fn next_look(rounds: usize) -> usize {
    (rounds + rounds / 2).max(ROUNDS_MIN)
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const RULE: Rule = Rule { threshold_percent: 2.0, figures: 1 };

    /// Looks at synthetic pairs as `rcu compare` does. The machine drifts by a fifth of its speed
    /// over the pairs, each run is slowed down by up to `noise`, and one in ten takes twice as
    /// long.
    fn decide(seed: u64, growth: f64, noise: f64) -> Verdict {
        const ROUNDS_MAX: usize = 120;
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let (mut base, mut new) = (Vec::new(), Vec::new());
        let mut look = next_look(0);
        loop {
            while base.len() < look.min(ROUNDS_MAX) {
                let drift = 1.0 + 0.2 * base.len() as f64 / ROUNDS_MAX as f64;
                for (side, cost) in [(&mut base, 1.0), (&mut new, growth)] {
                    let outlier = if generator.random_bool(0.1) { 2.0 } else { 1.0 };
                    side.push(cost * drift * outlier * (1.0 + noise * generator.random::<f64>()));
                }
            }
            let verdict = RULE.judge(&base, &new).1;
            if verdict != Verdict::TooNoisy || base.len() == ROUNDS_MAX {
                return verdict;
            }
            look = next_look(base.len());
        }
    }

    const TRIES: u64 = 20;

    fn count(verdict: Verdict, growth: f64, noise: f64) -> usize {
        (0..TRIES).filter(|&seed| decide(seed, growth, noise) == verdict).count()
    }

    #[test]
    fn a_regression_of_three_per_cent_is_caught_and_none_is_seen_where_there_is_none() {
        assert!(count(Verdict::Worse, 1.03, 0.04) >= 18);
        assert!(count(Verdict::Better, 1.0 / 1.03, 0.04) >= 18);
        assert_eq!(count(Verdict::Worse, 1.0, 0.04), 0);
        assert_eq!(count(Verdict::Better, 1.0, 0.04), 0);
    }

    #[test]
    fn what_is_quiet_is_the_same_and_what_is_loud_is_not_decided() {
        assert!(count(Verdict::Same, 1.0, 0.02) >= 19);
        assert!(count(Verdict::TooNoisy, 1.0, 1.0) >= 18);
    }

    #[test]
    fn of_one_pair_there_is_no_interval() {
        for rounds in [0, 1, ROUNDS_MIN - 1] {
            let judged = RULE.judge(&vec![1.0; rounds], &vec![2.0; rounds]);
            assert_eq!(judged, (None, Verdict::TooNoisy), "{rounds}");
        }
    }

    #[test]
    fn many_figures_make_each_one_harder_to_condemn() {
        let new: Vec<f64> = (0..21).map(|n| if n % 7 == 0 { 0.99 } else { 1.03 }).collect();
        let base = vec![1.0; 21];
        let of = |figures| Rule { figures, ..RULE }.judge(&base, &new).0.unwrap();
        let (alone, among) = (of(1), of(500));
        assert!(among.low <= alone.low && among.high >= alone.high, "{alone:?} {among:?}");
    }
}
