//! Who is first, and who cannot be told apart from whom.

use bench::advise::Design;
use bench::statistics::{Ratio, Spread, is_tie, median, spread};
use hdrhistogram::Histogram;

use super::decide::{Standing, advantage, lost_percent_at_most};
use super::race::Series;

/// One design's place in a race.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) design: &'static Design,
    /// 1 for the first. Designs that cannot be told apart share a rank.
    pub(super) rank: usize,
    /// Operations a second.
    pub(super) throughput: Spread,
    /// How many times as fast the first one is, compared round by round.
    pub(super) first_is_faster: Ratio,
    /// Whether it is one of those to take.
    pub(super) standing: Standing,
    /// What is lost at most by taking it, in per cent of the speed of whichever is the best.
    pub(super) lost_percent_at_most: Option<f64>,
    /// Process CPU time for an operation, in nanoseconds.
    pub(super) cpu_ns: Spread,
    /// CPUs that the process kept busy, at the median.
    pub(super) cpus_busy: f64,
    /// How long updates took; nothing without updates.
    pub(super) update_ns: Option<Latency>,
    /// Objects replaced and not yet freed: the most at any time.
    pub(super) unreclaimed_peak: u64,
    /// Reads that saw a wrong value.
    pub(super) checksum_errors: u64,
    /// The rounds that all this comes from: operations a second of each.
    pub(super) rounds: Vec<f64>,
}

/// How long updates took, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(super) struct Latency {
    /// Updates measured.
    pub(super) count: u64,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) p99_9: u64,
    pub(super) max: u64,
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Option<Latency> {
        (!histogram.is_empty()).then(|| Latency {
            count: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p99_9: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        })
    }
}

/// The series with the fastest first, compared round by round with one that has most rounds, so
/// that a drift of the machine moves no design up or down. Series without a round are left out.
pub(super) fn by_speed<'a>(series: impl Iterator<Item = &'a Series>) -> Vec<&'a Series> {
    let mut series: Vec<&Series> = series.filter(|one| !one.throughput.is_empty()).collect();
    // The name decides between equals, so that nothing depends on the shuffling.
    series.sort_by_key(|one| one.design.name);
    let middle = |one: &Series| spread(&one.throughput).median;
    let reference = series.iter().copied().max_by(|a, b| {
        let rounds = a.throughput.len().cmp(&b.throughput.len());
        rounds.then(middle(a).total_cmp(&middle(b)))
    });
    let Some(reference) = reference else { return series };
    let speed = |one: &Series| {
        let pairs = one.throughput.iter().zip(&reference.throughput);
        // A round in which the reference did nothing compares nothing.
        let mut ratios: Vec<f64> =
            pairs.filter(|(_, to)| **to > 0.0).map(|(own, to)| own / to).collect();
        if ratios.is_empty() { 0.0 } else { median(&mut ratios) }
    };
    series.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    series
}

/// Ranks the series, fastest first. A design shares the rank of the one before it when it cannot be
/// told apart from the fastest of that rank.
///
/// Series differ in length where more rounds were run near a decision, and after Ctrl-C. Two are
/// compared by the rounds that both have.
pub(super) fn rank(series: &[Series]) -> Vec<Place> {
    let series = by_speed(series.iter());
    let mut places: Vec<Place> = Vec::new();
    let mut leader = 0;
    for (index, one) in series.iter().enumerate() {
        let ahead = |of: usize| advantage(&series[of].throughput, &one.throughput);
        if !is_tie(&ahead(leader)) {
            leader = index;
        }
        let best_is_faster = ahead(0);
        places.push(Place {
            design: one.design,
            rank: leader + 1,
            throughput: spread(&one.throughput),
            first_is_faster: best_is_faster,
            standing: if index == 0 { Standing::In } else { Standing::of(&best_is_faster) },
            lost_percent_at_most: None,
            cpu_ns: spread(&one.cpu_ns),
            cpus_busy: spread(&one.cpus_busy).median,
            update_ns: Latency::of(&one.update_ns),
            unreclaimed_peak: one.unreclaimed_peak,
            checksum_errors: one.checksum_errors,
            rounds: one.throughput.clone(),
        });
    }
    for index in 0..places.len() {
        places[index].lost_percent_at_most = lost(&places, index);
    }
    places
}

/// What is lost at most with one of these designs beside each of the set: also with the first,
/// which only seems to be the best.
fn lost(places: &[Place], index: usize) -> Option<f64> {
    let others =
        places.iter().enumerate().filter(|(i, place)| *i != index && place.standing.is_in_set());
    let most = others
        .map(|(_, other)| advantage(&other.rounds, &places[index].rounds).high)
        .fold(1.0, f64::max);
    lost_percent_at_most(most)
}

/// How noisy the machine was: the median over the designs of the distance between the quartiles
/// of the throughput, in per cent of its median.
pub(super) fn noise_percent(places: &[Place]) -> f64 {
    let mut each: Vec<f64> = places.iter().map(|place| spread_percent(&place.throughput)).collect();
    if each.is_empty() { 0.0 } else { median(&mut each) }
}

/// CPU time that `threads` threads could have used on `cpus` CPUs and that others had, in per
/// cent. Taken from the busiest design, since a thread that sleeps on a lock wants no CPU.
pub(super) fn taken_percent(places: &[Place], threads: u32, cpus: u32) -> f64 {
    let wanted = f64::from(threads.min(cpus).max(1));
    let busiest = places.iter().map(|place| place.cpus_busy).fold(0.0, f64::max);
    if places.is_empty() { 0.0 } else { (100.0 * (1.0 - busiest / wanted)).max(0.0) }
}

/// The distance between the quartiles in per cent of the median; without end if that is nothing.
pub(super) fn spread_percent(spread: &Spread) -> f64 {
    if spread.median <= 0.0 {
        return f64::INFINITY;
    }
    100.0 * (spread.high - spread.low) / spread.median
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(index: usize, throughput: &[f64]) -> Series {
        Series {
            design: &bench::advise::designs(bench::advise::Workload::Table)[index],
            throughput: throughput.to_vec(),
            cpu_ns: vec![1.0; throughput.len()],
            cpus_busy: vec![2.0; throughput.len()],
            update_ns: Histogram::new(3).unwrap(),
            unreclaimed_peak: 0,
            checksum_errors: 0,
        }
    }

    fn ranks(series: &[Series]) -> Vec<usize> {
        rank(series).iter().map(|place| place.rank).collect()
    }

    #[test]
    fn the_faster_is_first_and_ties_share_a_rank() {
        let slow = series(0, &[1.0, 1.1, 0.9, 1.0]);
        let fast = series(1, &[9.0, 9.1, 9.0, 9.2]);
        let also_fast = series(2, &[9.1, 8.9, 8.9, 8.9]);
        let places = rank(&[slow, fast, also_fast]);
        assert_eq!(places.iter().map(|place| place.rank).collect::<Vec<_>>(), [1, 1, 3]);
        assert_eq!(
            places[0].design.name,
            bench::advise::designs(bench::advise::Workload::Table)[1].name
        );
        assert!((places[2].first_is_faster.median - 9.1).abs() < 0.2);
    }

    #[test]
    fn a_slow_design_does_not_tie_with_the_first_through_a_chain_of_ties() {
        // 10 ties with 9.5, and 9.5 with 9, but 10 does not tie with 9.
        let thrice = |rounds: [f64; 4]| rounds.repeat(3);
        let a = series(0, &thrice([10.0, 10.0, 10.0, 10.0]));
        let b = series(1, &thrice([9.5, 9.5, 10.1, 9.5]));
        let c = series(2, &thrice([9.0, 9.6, 9.0, 9.0]));
        assert_eq!(ranks(&[c, b, a]), [1, 1, 3]);
    }

    /// "At most 0 % lost" was said of the first, where the second may be twice as fast.
    #[test]
    fn the_first_may_lose_too() {
        let places = rank(&[series(0, &[10.0, 1.0, 10.0, 10.0]), series(1, &[9.0, 9.0, 2.0, 9.0])]);
        assert_eq!(places[0].standing, Standing::In);
        assert!(places[0].lost_percent_at_most.unwrap() > 50.0, "{places:?}");
        let alone = rank(&[series(0, &[10.0, 10.0, 10.0]), series(1, &[1.0, 1.0, 1.0])]);
        assert_eq!(alone[0].lost_percent_at_most, Some(0.0), "the other one is out");
        assert_eq!(alone[1].lost_percent_at_most, Some(90.0));
    }

    #[test]
    fn an_unfinished_round_is_left_out_and_so_is_a_design_without_one() {
        let places =
            rank(&[series(0, &[1.0, 1.0, 1.0, 50.0]), series(1, &[2.0, 2.0, 2.0]), series(2, &[])]);
        // The round that only some have is not compared, whether it would help or harm.
        assert_eq!(places.len(), 2);
        assert_eq!((places[0].rounds.len(), places[0].throughput.median), (3, 2.0));
        assert_eq!(places[1].first_is_faster.high, 2.0, "the fourth round has no pair");
        assert!(rank(&[]).is_empty());
    }

    #[test]
    fn noise_is_the_middle_design_s_spread() {
        let calm = series(0, &[10.0, 10.0, 10.0]);
        let wild = series(1, &[5.0, 10.0, 15.0]);
        assert_eq!(noise_percent(&rank(std::slice::from_ref(&calm))), 0.0);
        assert_eq!(noise_percent(&rank(std::slice::from_ref(&wild))), 50.0);
        assert_eq!(noise_percent(&[]), 0.0);
        let starved = series(0, &[0.0, 0.0, 1.0]);
        assert_eq!(noise_percent(&rank(&[starved])), f64::INFINITY);
    }

    #[test]
    fn what_others_took_is_what_the_busiest_design_did_not_get() {
        let places = rank(&[series(0, &[1.0, 1.0, 1.0])]);
        assert_eq!(taken_percent(&places, 8, 4), 50.0);
        assert_eq!(taken_percent(&places, 2, 4), 0.0);
        assert_eq!(taken_percent(&places, 1, 4), 0.0);
        assert_eq!(taken_percent(&[], 2, 2), 0.0);
    }
}
