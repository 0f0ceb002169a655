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

/// How often the interval of a [`Ratio`] may miss the true median, when the rounds are enough.
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

/// The values that both sides have of a round, in pairs: each with one of the same round. Both are
/// in the order of their rounds. Where one side has more of a round than the other, its last ones
/// are left out.
pub fn in_pairs(a: &[OfRound], b: &[OfRound]) -> (Vec<f64>, Vec<f64>) {
    let of_round = |one: &[OfRound]| &b[b.partition_point(|other| other.0 < one[0].0)..];
    let rounds = a.chunk_by(|one, next| one.0 == next.0);
    let beside = rounds.flat_map(|one| one.iter().zip(of_round(one)));
    beside.filter(|(one, other)| one.0 == other.0).map(|(one, other)| (one.1, other.1)).unzip()
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
    let mut ratios = ratios(a, b);
    let middle = median(&mut ratios);
    if ratios.len() < ROUNDS_MIN {
        return Ratio { median: middle, low: 0.0, high: f64::INFINITY };
    }
    let rank = outer_rank(ratios.len());
    Ratio { median: middle, low: ratios[rank], high: ratios[ratios.len() - 1 - rank] }
}

/// The median of `a[i] / b[i]` over the rounds, with an interval that holds the true one with this
/// confidence: the percentiles of the bootstrap over the rounds (Efron and Tibshirani, "An
/// introduction to the bootstrap", 1993, chapter 13).
///
/// Nothing is drawn: how the median of rounds that are drawn again is distributed is known (Efron,
/// "Bootstrap methods: another look at the jackknife", 1979). With an even count the lower of the
/// two in the middle gives the low end, and the upper one the high end.
///
/// # Panics
/// On no values, and when the two sides do not have one value for each round.
pub fn bootstrap_ratio(a: &[f64], b: &[f64], confidence: f64) -> Ratio {
    let mut ratios = ratios(a, b);
    let middle = median(&mut ratios);
    let rank = bootstrap_rank(ratios.len(), (1.0 - confidence) / 2.0);
    Ratio { median: middle, low: ratios[rank], high: ratios[ratios.len() - 1 - rank] }
}

/// The mean of `a[i] / b[i]`, by logarithms, with the interval that Student's distribution gives:
/// also beyond the rounds that there are, where a bootstrap never looks. Everything where a ratio
/// is nothing or infinite, and of one round.
///
/// # Panics
/// When the two sides do not have one value for each round.
pub fn student_ratio(a: &[f64], b: &[f64], confidence: f64) -> Ratio {
    let logarithms: Vec<f64> = ratios(a, b).into_iter().map(f64::ln).collect();
    let rounds = logarithms.len() as f64;
    let mean = logarithms.iter().sum::<f64>() / rounds;
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
/// and `n - 1 - k` with a chance of at most [`MISS`]; 0, the whole range, when there is none.
fn outer_rank(n: usize) -> usize {
    let is_outside = |rank: usize| binomial_at_least(n - rank, n, 0.5) > MISS / 2.0;
    first(n / 2, is_outside).saturating_sub(1)
}

/// The first rank (from 0) of `n` values that the middle of `n` draws from them is not above with a
/// chance of `tail` at least: as many draws as make a middle come from that rank or below.
fn bootstrap_rank(n: usize, tail: f64) -> usize {
    let middle = n.div_ceil(2);
    first(middle - 1, |rank| binomial_at_least(middle, n, (rank + 1) as f64 / n as f64) >= tail)
}

/// The first number for which this holds, as it does for all that follow; `end` if it is not below.
fn first(end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = usize::midpoint(low, high);
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The chance of `k` hits at least in `n` trials that each hit with the chance `p`, below 1.
fn binomial_at_least(k: usize, n: usize, p: f64) -> f64 {
    // By logarithms: factors of many trials leave the range of numbers.
    let mut term = n as f64 * (1.0 - p).ln();
    let mut sum = 0.0;
    for hits in 0..=n {
        if hits >= k {
            sum += term.exp();
        }
        term += ((n - hits) as f64 / (hits + 1) as f64).ln() + (p / (1.0 - p)).ln();
    }
    sum
}

/// What Student's t with so many degrees of freedom is within, on both sides, with this chance.
fn student(confidence: f64, freedom: usize) -> f64 {
    if freedom == 0 {
        return f64::INFINITY;
    }
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

    #[test]
    fn a_bootstrap_says_what_drawing_says_and_surer_intervals_are_wider() {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        for rounds in [3, 4, 15, 21, 40] {
            let mut a: Vec<f64> = (0..rounds).map(|_| 1.0 + generator.random::<f64>()).collect();
            a.sort_by(f64::total_cmp);
            let of = |confidence| bootstrap_ratio(&a, &vec![1.0; rounds], confidence);
            let ratio = of(0.9);
            let mut drawn = vec![0.0; rounds];
            let mut draws = 0..4_000;
            let mut is_below = || {
                drawn.fill_with(|| a[generator.random_range(0..rounds)]);
                drawn.sort_by(f64::total_cmp);
                drawn[(rounds - 1) / 2] < ratio.low
            };
            let below = draws.by_ref().filter(|_| is_below()).count();
            // A share of 5 % at most is below the low end; four standard deviations more.
            assert!(below <= 255, "{rounds} rounds: {below} of 4,000");
            let surer = of(0.999);
            assert!(surer.low <= ratio.low && ratio.high <= surer.high, "{ratio:?} {surer:?}");
            assert!(rounds < 15 || surer.low < ratio.low, "{ratio:?} {surer:?}");
        }
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
    fn ranks_of_a_bootstrap_are_the_first_that_have_the_tail() {
        assert!((binomial_at_least(2, 3, 1.0 / 3.0) - 7.0 / 27.0).abs() < 1e-12);
        assert!((binomial_at_least(500, 1_000, 0.5) - 0.512_612).abs() < 1e-6);
        for n in 2..200_usize {
            let chance = |rank: usize| binomial_at_least(n.div_ceil(2), n, rank as f64 / n as f64);
            for tail in [0.0005, 0.025, 0.25] {
                let rank = bootstrap_rank(n, tail);
                assert!(chance(rank + 1) >= tail && chance(rank) < tail, "{n} {tail}: {rank}");
            }
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
        assert!(
            bound(10) > bound(100) && bound(100) > bound(1_000),
            "{} {}",
            bound(10),
            bound(100)
        );
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
            assert_eq!(outer_rank(n), rank, "{n} rounds");
        }
    }

    #[test]
    fn ranks_of_many_rounds_are_those_of_a_normal_distribution() {
        for n in [1_001, 5_000] {
            let normal = n as f64 / 2.0 - 0.98 * (n as f64).sqrt();
            assert!((outer_rank(n) as f64 + 1.0 - normal).abs() <= 1.0, "{n} rounds");
        }
    }

    #[test]
    fn the_interval_holds_the_true_median_about_as_often_as_it_says() {
        // Skewed values with median ln 2, drawn by inverting the exponential distribution.
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let mut draw = || -(1.0 - generator.random::<f64>()).ln();
        let trials = 4000;
        let mut missed = 0;
        for _ in 0..trials {
            let values: Vec<f64> = (0..15).map(|_| draw()).collect();
            let ratio = paired_ratio(&values, &[std::f64::consts::LN_2; 15]);
            missed += usize::from(!is_tie(&ratio));
        }
        // The exact chance for 15 rounds is 3.5 %; four standard deviations to either side.
        assert!((94..=187).contains(&missed), "{missed} of {trials} missed");
    }
}
