//! Statistics of interleaved rounds: medians, spread, and ratios taken round by round.
//!
//! Times on a shared machine are skewed and drift, so nothing here assumes a distribution.
//! - The middle is the median and the spread is the pair of quartiles: one disturbed round moves
//!   neither (Georges, Buytaert, Eeckhout, "Statistically rigorous Java performance evaluation",
//!   OOPSLA 2007, on why a single mean or best time misleads).
//! - Two designs are compared by the ratio *within* each round, since what disturbs a round
//!   disturbs both of its sides (Kalibera and Jones, "Rigorous benchmarking in reasonable time",
//!   ISMM 2013, on ratios with intervals).
//! - The interval of the median ratio is the sign test turned round: between two order statistics
//!   lies the true median with a chance that is binomial whatever the distribution is (David and
//!   Nagaraja, "Order Statistics", 3rd edition, section 7.1). No random numbers, so the same
//!   rounds always give the same verdict.

/// A median with an interval around it: that of values is from quartile to quartile.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The middle value.
    pub median: f64,
    /// The lower end: the first quartile, a quarter of the values lies below.
    pub low: f64,
    /// The upper end: the third quartile, a quarter of the values lies above.
    pub high: f64,
}

/// The median of the ratios taken round by round, with the interval that holds the true one: up to
/// infinity when the rounds are too few to say anything.
pub type Ratio = Spread;

impl From<Spread> for [f64; 3] {
    fn from(Spread { median, low, high }: Spread) -> Self {
        [median, low, high]
    }
}

/// How often the interval of a [`paired_ratio`] may miss the true median, when the rounds are
/// enough.
const MISS: f64 = 0.05;

/// Below this many rounds an interval would be pretence: even the whole range of three rounds
/// holds the true median in three cases of four only.
const ROUNDS_MIN: usize = 3;

/// The middle value; sorts `values`. With an even count, the mean of the two in the middle.
///
/// # Panics
/// On no values: the median of nothing is a mistake of the caller.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(values, 0.5)
}

/// The median and the quartiles of `values`.
///
/// # Panics
/// On no values.
pub fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let [low, median, high] = [0.25, 0.5, 0.75].map(|at| quantile(&sorted, at));
    Spread { median, low, high }
}

/// A value, and the number of the round that it is of.
pub type OfRound = (u32, f64);

/// The median of each round. The values are in the order of their rounds.
pub fn of_rounds(values: &[OfRound]) -> Vec<OfRound> {
    let rounds = values.chunk_by(|one, next| one.0 == next.0);
    let values = |round: &[OfRound]| round.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    rounds.map(|round| (round[0].0, median(&mut values(round)))).collect()
}

/// The rounds that both sides have, in pairs: of each side the median of what it has of a round.
/// Both are in the order of their rounds.
pub fn in_pairs(a: &[OfRound], b: &[OfRound]) -> (Vec<f64>, Vec<f64>) {
    let [a, b] = [a, b].map(of_rounds);
    let of_b = |round| b.binary_search_by_key(&round, |other| other.0).ok().map(|at| b[at].1);
    a.into_iter().filter_map(|(round, one)| Some((one, of_b(round)?))).unzip()
}

fn ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len(), "a paired ratio needs both sides of every round");
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

/// The median of `a[i] / b[i]` over the rounds, with the interval of that median.
///
/// The interval misses the true median at most once in twenty times from six rounds on. With
/// three to five rounds it is the whole range, which misses in 25, 12.5 and 6.25 % of the cases;
/// below that nothing is known and the interval is everything.
///
/// # Panics
/// On no values, and when the two sides do not have one value for each round.
pub fn paired_ratio(a: &[f64], b: &[f64]) -> Ratio {
    surer_ratio(a, b, MISS)
}

/// The same with an interval that misses no more often than `miss`, if the whole range of the
/// rounds does not: that misses once in `2^(n - 1)` times.
///
/// # Panics
/// As [`paired_ratio`].
pub fn surer_ratio(a: &[f64], b: &[f64], miss: f64) -> Ratio {
    let mut ratios = ratios(a, b);
    let middle = median(&mut ratios);
    if ratios.len() < ROUNDS_MIN {
        return Ratio { median: middle, low: 0.0, high: f64::INFINITY };
    }
    let rank = outer_rank(ratios.len(), miss);
    Ratio { median: middle, low: ratios[rank], high: ratios[ratios.len() - 1 - rank] }
}

/// The mean of `a[i] / b[i]`, by logarithms, with the interval that Student's distribution gives:
/// also beyond the rounds that there are, where no order statistic is. Everything where a ratio
/// is nothing or infinite, and of one round; of none, everything around 1.
///
/// # Panics
/// When the two sides do not have one value for each round.
pub fn student_ratio(a: &[f64], b: &[f64], confidence: f64) -> Ratio {
    let logarithms: Vec<f64> = ratios(a, b).into_iter().map(f64::ln).collect();
    let rounds = logarithms.len() as f64;
    let mean = logarithms.iter().sum::<f64>() / rounds.max(1.0);
    let squares: f64 = logarithms.iter().map(|one| (one - mean).powi(2)).sum();
    let half = student(confidence, logarithms.len().saturating_sub(1))
        * (squares / (rounds - 1.0) / rounds).sqrt();
    if !half.is_finite() {
        return Ratio { median: mean.exp(), low: 0.0, high: f64::INFINITY };
    }
    Ratio { median: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() }
}

/// Whether the two sides cannot be told apart: the interval of their ratio contains 1. A ratio
/// that is not a number (nothing by nothing) tells nothing either.
pub fn is_tie(ratio: &Ratio) -> bool {
    !(ratio.low > 1.0 || ratio.high < 1.0)
}

/// The most by which the two sides differ where they cannot be told apart, as a share of the
/// second one: 0.02 if the true ratio is from 0.98 to 1.02. As sure as the interval of the ratio.
/// `None` if they can be told apart, or if nothing is known.
///
/// That two sides tie is no finding: with few rounds all do. This says how much the tie is worth.
/// (To show that two treatments are equivalent one asks whether an interval lies within given
/// bounds. The interval here is that of 95 %; the two one-sided tests of Schuirmann, "A comparison
/// of the two one-sided tests procedure and the power approach", 1987, would do with that of 90 %,
/// which is narrower.)
pub fn difference_at_most(ratio: &Ratio) -> Option<f64> {
    let most = (1.0 - ratio.low).max(ratio.high - 1.0);
    (is_tie(ratio) && most.is_finite()).then_some(most)
}

/// The value below which the share `at` of `sorted` lies, between neighbours by straight line
/// (definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996).
fn quantile(sorted: &[f64], at: f64) -> f64 {
    assert!(!sorted.is_empty(), "no values, no quantile");
    let place = at * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = place.ceil() as usize;
    if below == above {
        return sorted[below];
    }
    let share = place - below as f64;
    sorted[below] * (1.0 - share) + sorted[above] * share
}

/// The largest rank `k` (from 0) such that the true median lies outside the order statistics `k`
/// and `n - 1 - k` with a chance of at most `miss`; 0, the whole range, when there is none.
fn outer_rank(n: usize, miss: f64) -> usize {
    // The chance that so many of the values are below the median, by its logarithm: that of many
    // values is no number. And the chance that no more are.
    let (mut below, mut at_most) = (-std::f64::consts::LN_2 * n as f64, 0.0);
    let is_inside = |rank: &usize| {
        at_most += below.exp();
        below += ((n - rank) as f64 / (rank + 1) as f64).ln();
        at_most <= miss / 2.0
    };
    (0..n / 2).take_while(is_inside).count().saturating_sub(1)
}

/// What Student's t with so many degrees of freedom is within, on both sides, with this chance.
fn student(confidence: f64, freedom: usize) -> f64 {
    if freedom == 0 {
        return f64::INFINITY;
    }
    // Of more it is as good as the same, and takes long.
    let freedom = freedom.min(200);
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if student_within(middle, freedom) < confidence { low = middle } else { high = middle }
    }
    high
}

/// The chance of Student's t to be between `-t` and `t` (Abramowitz and Stegun, "Handbook of
/// mathematical functions", 26.7.3 and 26.7.4).
fn student_within(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // Each term is the one before times the square of the cosine, and a fraction.
    let (mut term, first) = if is_odd { (cosine, 3) } else { (1.0, 2) };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    for n in (first..freedom - 1).step_by(2) {
        let n = n as f64;
        term *= cosine * cosine * (n - 1.0) / n;
        sum += term;
    }
    if is_odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_two() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&mut [7.0]), 7.0);
    }

    #[test]
    #[should_panic(expected = "no values")]
    fn the_median_of_nothing_is_refused() {
        median(&mut []);
    }

    #[test]
    fn the_spread_is_the_quartiles_and_one_wild_round_does_not_move_it() {
        let spread_calm = spread(&[5.0, 1.0, 2.0, 4.0, 3.0]);
        assert_eq!(spread_calm, Spread { median: 3.0, low: 2.0, high: 4.0 });
        assert_eq!(spread(&[500.0, 1.0, 2.0, 4.0, 3.0]), spread_calm);
        assert_eq!(spread(&[1.0, 2.0]), Spread { median: 1.5, low: 1.25, high: 1.75 });
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The machine slows down tenfold on the way; the ratio within each round stays 2.
        let slow = [2.0, 4.0, 8.0, 20.0];
        let fast = [1.0, 2.0, 4.0, 10.0];
        let ratio = paired_ratio(&slow, &fast);
        assert_eq!(ratio, Ratio { median: 2.0, low: 2.0, high: 2.0 });
        assert!(!is_tie(&ratio));
    }

    /// The values of any printed table.
    #[test]
    fn student_s_distribution_is_that_of_the_tables() {
        for (freedom, at_95, at_999) in [
            (1, 12.706, 636.62),
            (2, 4.303, 31.599),
            (3, 3.182, 12.924),
            (4, 2.776, 8.610),
            (5, 2.571, 6.869),
            (6, 2.447, 5.959),
            (9, 2.262, 4.781),
            (30, 2.042, 3.646),
        ] {
            assert!((student(0.95, freedom) / at_95 - 1.0).abs() < 1e-3, "{freedom}");
            assert!((student(0.999, freedom) / at_999 - 1.0).abs() < 1e-3, "{freedom}");
        }
    }

    #[test]
    fn a_mean_of_logarithms_has_an_interval_around_it() {
        // The logarithms are -1, 0 and 1 times that of 2; the standard error is ln 2 / sqrt(3).
        let ratio = student_ratio(&[1.0, 2.0, 4.0], &[2.0; 3], 0.95);
        let half = 4.302_65 * 2.0_f64.ln() / 3.0_f64.sqrt();
        assert!((ratio.median - 1.0).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.high.ln() - half).abs() < 1e-4 && (ratio.low.ln() + half).abs() < 1e-4);
        for (a, b) in [(&[1.0][..], &[2.0][..]), (&[0.0, 1.0], &[1.0, 1.0])] {
            let nothing = student_ratio(a, b, 0.95);
            assert_eq!((nothing.low, nothing.high), (0.0, f64::INFINITY));
        }
    }

    #[test]
    fn too_few_rounds_always_tie() {
        for rounds in 1..ROUNDS_MIN {
            let ratio = paired_ratio(&vec![100.0; rounds], &vec![1.0; rounds]);
            assert_eq!(ratio.median, 100.0);
            assert!(is_tie(&ratio), "{rounds} rounds cannot show a difference");
        }
    }

    #[test]
    fn equal_sides_tie_and_zero_by_zero_ties() {
        assert!(is_tie(&paired_ratio(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0])));
        assert!(is_tie(&paired_ratio(&[0.9, 1.0, 1.1], &[1.0, 1.0, 1.0])));
        assert!(is_tie(&paired_ratio(&[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0])));
        assert!(!is_tie(&paired_ratio(&[0.7, 0.8, 0.9], &[1.0, 1.0, 1.0])));
    }

    #[test]
    fn a_tie_is_worth_what_its_interval_says() {
        let ratio = |low, high| Ratio { median: f64::midpoint(low, high), low, high };
        let most = difference_at_most(&ratio(0.75, 1.125)).expect("a tie");
        assert_eq!(most, 0.25, "the farther end counts");
        assert_eq!(difference_at_most(&ratio(0.875, 3.0)), Some(2.0));
        assert_eq!(difference_at_most(&ratio(1.0, 1.0)), Some(0.0), "equal in every round");
        assert_eq!(difference_at_most(&ratio(1.01, 1.02)), None, "a difference");
        assert_eq!(difference_at_most(&ratio(0.97, 0.99)), None, "a difference");
        for unknown in [paired_ratio(&[1.0], &[1.0]), paired_ratio(&[0.0; 9], &[0.0; 9])] {
            assert_eq!(difference_at_most(&unknown), None, "{unknown:?}");
        }
    }

    /// More rounds of the same spread make a smaller bound.
    #[test]
    fn a_tie_of_more_rounds_is_worth_more() {
        let bound = |rounds: usize| {
            let side: Vec<f64> = (0..rounds).map(|n| 0.9 + 0.2 * (n % 10) as f64 / 9.0).collect();
            difference_at_most(&paired_ratio(&side, &vec![1.0; rounds])).expect("a tie")
        };
        let bounds = [10, 100, 1_000].map(bound);
        assert!(bounds.is_sorted_by(|fewer, more| fewer > more), "{bounds:?}");
    }

    #[test]
    #[should_panic(expected = "both sides of every round")]
    fn sides_of_different_length_are_refused() {
        paired_ratio(&[1.0, 2.0], &[1.0]);
    }

    #[test]
    fn ranks_are_those_of_the_published_tables_of_the_sign_test() {
        // Ranks from 0 of the 95 % interval; tables count from 1 and say 1, 1, 2, 4, 6, 10, 40.
        for (n, rank) in [(5, 0), (6, 0), (9, 1), (15, 3), (20, 5), (30, 9), (100, 39)] {
            assert_eq!(outer_rank(n, MISS), rank, "{n} rounds");
        }
    }

    /// How many of so many intervals of 15 rounds miss the true median: of values that are drawn
    /// by inverting their distribution.
    fn missed(trials: u32, median: f64, miss: f64, value: fn(f64) -> f64) -> usize {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let mut draw = || (0..15).map(|_| value(generator.random())).collect::<Vec<_>>();
        let is_miss = |_: &u32| !is_tie(&surer_ratio(&draw(), &[median; 15], miss));
        (0..trials).filter(is_miss).count()
    }

    /// A bootstrap of the median, as `rcu compare` had it, missed seven times in a thousand.
    #[test]
    fn an_interval_that_is_to_miss_in_two_of_a_thousand_misses_no_more() {
        let missed = missed(40_000, 1.0, 0.002, |uniform| 0.5 + uniform);
        // The exact chance for 15 rounds is 0.1 %; four standard deviations more.
        assert!(missed <= 64, "{missed} of 40,000");
    }

    #[test]
    fn ranks_of_many_rounds_are_those_of_a_normal_distribution() {
        for n in [1_001, 5_000] {
            let normal = n as f64 / 2.0 - 0.98 * (n as f64).sqrt();
            assert!((outer_rank(n, MISS) as f64 + 1.0 - normal).abs() <= 1.0, "{n} rounds");
        }
    }

    #[test]
    fn the_interval_holds_the_true_median_about_as_often_as_it_says() {
        // Skewed values, of the exponential distribution.
        let missed = missed(4_000, std::f64::consts::LN_2, MISS, |uniform| -(1.0 - uniform).ln());
        // The exact chance for 15 rounds is 3.5 %; four standard deviations to either side.
        assert!((94..=187).contains(&missed), "{missed} of 4,000 missed");
    }
}
