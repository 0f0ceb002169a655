//! Who is first, and who cannot be told apart from whom.

use bench::advise::{About, Design, Series, designs};
use bench::statistics::{OfRound, Ratio, Spread, of_rounds, spread};
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::TEXTS;
use super::decide::{BOUND_MAX_PERCENT, Standing, ZONE, advantage, lost_percent_at_most};
use super::simplicity::demands;

/// What designs are ranked by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum By {
    /// The time of slices that count.
    #[default]
    Wall,
    /// The CPU time of all slices: of more threads than CPUs none counts.
    Cpu,
}

impl By {
    /// By time, if each thread can have a CPU. CPU time has nothing of what threads that were apart
    /// would have cost each other, or of what a thread waits for.
    pub(super) fn of(threads: u32, cpus: u32) -> By {
        if threads > cpus { By::Cpu } else { By::Wall }
    }

    /// Operations a second of so many threads that have CPUs, one value for each slice.
    pub(super) fn speeds(self, series: &Series, threads: u32) -> Vec<OfRound> {
        let ns = match self {
            By::Wall if !series.has_figure() => &[][..],
            By::Wall => &series.ns,
            By::Cpu => &series.cpu_ns,
        };
        ns.iter().map(|(round, ns)| (*round, f64::from(threads) * 1e9 / ns)).collect()
    }

    /// What the order is by, in words.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            By::Wall => "Ranked by the time of slices that count.",
            By::Cpu => &TEXTS["ranked-by-cpu-time"],
        }
    }
}

/// How many times as fast `one` is at least as another one, of which only the CPU time is known. An
/// operation takes that at least. As no thread has its caches to itself where it loses its CPU, it
/// is compared with the CPU time of `one`, too.
fn bound(one: &Series, other: &Series) -> Ratio {
    let beside = |by: By| advantage(&by.speeds(one, 1), &By::Cpu.speeds(other, 1));
    let [wall, cpu] = [By::Wall, By::Cpu].map(beside);
    let [low, median] = [wall.low.min(cpu.low), wall.median.min(cpu.median)];
    Ratio { median, low, high: f64::INFINITY }
}

/// The values, without their rounds.
fn values(of_rounds: &[OfRound]) -> Vec<f64> {
    of_rounds.iter().map(|(_, value)| *value).collect()
}

/// The order in which a table's designs came in.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Ranking {
    /// How many keys the table has.
    pub(super) keys: u64,
    #[serde(rename = "ranked_by")]
    pub(super) by: By,
    /// By rank, and of one rank by simplicity.
    #[serde(rename = "designs")]
    pub(super) places: Vec<Place>,
    pub(super) unranked: Vec<Unranked>,
    /// Reads that saw a wrong value, also of designs without a figure.
    #[serde(skip)]
    pub(super) checksum_errors: u64,
}

impl Ranking {
    /// Those that are not shown to be slower than the best by more than the zone, the simplest
    /// first; then those without a figure.
    pub(super) fn may_be_best(&self) -> Vec<String> {
        let mut ranked: Vec<&Place> =
            self.places.iter().filter(|place| place.may_be_best()).collect();
        ranked.sort_by_key(|place| place.simplicity());
        let ranked = ranked.into_iter().map(|place| place.design.name.to_owned());
        let unranked = self.unranked.iter().filter(|one| one.may_be_best);
        ranked.chain(unranked.map(|one| format!("{} (no figure)", one.name))).collect()
    }
}

/// A design without a figure, and why it has none.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Unranked {
    pub(super) name: &'static str,
    pub(super) missing: String,
    /// By its CPU time.
    #[serde(skip)]
    pub(super) may_be_best: bool,
}

/// One design's place in a race.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) design: &'static Design,
    /// 1 for the best and its equals.
    pub(super) rank: usize,
    /// Operations a second, over the rounds.
    pub(super) throughput: Spread,
    /// How many times as fast the best one is, compared round by round.
    pub(super) best_is_faster: Ratio,
    /// Whether it is one of those to take.
    pub(super) standing: Standing,
    /// What is lost at most by taking it, in per cent of the speed of whichever is the best.
    pub(super) lost_percent_at_most: Option<f64>,
    /// CPU time for an operation, in nanoseconds.
    pub(super) cpu_ns: Spread,
    /// How long updates took; nothing without updates.
    pub(super) update_ns: Option<Latency>,
    /// Objects replaced and not yet freed: the most at the end of a slice.
    pub(super) unreclaimed_peak: u64,
    /// Reads that saw a wrong value.
    pub(super) checksum_errors: u64,
    /// What all this comes from: operations a second of each slice.
    pub(super) slices: Vec<OfRound>,
}

impl Place {
    /// Whether it may be recommended: it is shown to be equal to the best, and to lose little
    /// beside each that may be the best.
    pub(super) fn is_shown(&self) -> bool {
        let loses_little = |lost| lost <= BOUND_MAX_PERCENT;
        self.standing == Standing::In && self.lost_percent_at_most.is_some_and(loses_little)
    }

    /// Whether it is not shown to be slower than the best by more than the zone.
    pub(super) fn may_be_best(&self) -> bool {
        self.best_is_faster.low <= ZONE
    }

    /// Whether it is shown to be slower than the best, and seems to be by more than the zone.
    pub(super) fn is_behind(&self) -> bool {
        self.standing == Standing::Out && self.best_is_faster.low > 1.0
    }

    /// Where it stands in the order of what is simplest: that of `--help`, and of one step that of
    /// the list of designs.
    pub(super) fn simplicity(&self) -> (usize, usize) {
        let all = bench::advise::Workload::ALL.into_iter().map(designs);
        let place = |list: &[Design]| list.iter().position(|one| one.name == self.design.name);
        (demands(self.design), all.filter_map(place).max().unwrap_or(usize::MAX))
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let design = self.design;
        let About { family, idea, reader_cost, limits } = design.about;
        json!({
            "rank": self.rank,
            "name": design.name,
            "family": family,
            "ours": design.ours,
            "index": design.index,
            "slices": self.slices.len(),
            "operations_per_second_of_slices": values(&self.slices),
            "operations_per_second": self.throughput,
            "best_is_faster": self.best_is_faster,
            "standing": self.standing,
            "lost_percent_at_most": self.lost_percent_at_most,
            "cpu_ns_per_operation": self.cpu_ns,
            "update_latency_ns": self.update_ns,
            "unreclaimed_peak": self.unreclaimed_peak,
            "checksum_errors": self.checksum_errors,
            "idea": idea,
            "reason": format!("{reader_cost}. Not for: {limits}."),
        })
        .serialize(serializer)
    }
}

/// How long updates took, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

/// Which of these is the fastest: the one over which the advantage of any other is least. None,
/// without any value. Those of which much less is known than of others are not asked: few rounds
/// may be lucky ones.
fn fastest(speeds: &[Vec<OfRound>]) -> Option<usize> {
    let speeds: Vec<Vec<OfRound>> = speeds.iter().map(|one| of_rounds(one)).collect();
    let rounds = |index: &usize| speeds[*index].len();
    let all = 0..speeds.len();
    let most = all.clone().map(|index| rounds(&index)).max().filter(|most| *most > 0)?;
    let known: Vec<usize> = all.filter(|index| 2 * rounds(index) >= most).collect();
    let behind = |one: &usize| {
        let times = known.iter().map(|other| advantage(&speeds[*other], &speeds[*one]).median);
        times.fold(0.0, f64::max)
    };
    known.iter().copied().min_by(|a, b| behind(a).total_cmp(&behind(b)))
}

/// The fastest of these, and how many times as fast it is as each; at least so many times, where
/// one has no figure.
pub(super) fn beside_best(all: &[Series], speeds: &[Vec<OfRound>]) -> Option<(usize, Vec<Ratio>)> {
    let best = fastest(speeds)?;
    let beside = |(one, own): (&Series, &Vec<OfRound>)| match own.is_empty() {
        true => bound(&all[best], one),
        false => advantage(&speeds[best], own),
    };
    Some((best, all.iter().zip(speeds).map(beside).collect()))
}

/// Ranks the series, which so many threads made on so many CPUs. A design shares the rank of the
/// fastest one that it is equal to.
///
/// Series differ in length where more was measured near a decision, or did not count. Two are
/// compared by the rounds that both have.
pub(super) fn rank(series: &[Series], threads: u32, cpus: u32) -> Ranking {
    let by = By::of(threads, cpus);
    let speeds: Vec<Vec<OfRound>> =
        series.iter().map(|one| by.speeds(one, threads.min(cpus))).collect();
    let (mut order, unknown): (Vec<usize>, Vec<usize>) =
        (0..series.len()).partition(|index| !speeds[*index].is_empty());
    let best = beside_best(series, &speeds);
    let may_be_best = |index: usize| best.as_ref().is_none_or(|(_, of)| of[index].low <= ZONE);
    let unranked = unknown.iter().map(|&index| Unranked {
        name: series[index].design.name,
        missing: series[index].missing.as_ref().map(ToString::to_string).unwrap_or_default(),
        may_be_best: may_be_best(index),
    });
    let checksum_errors = series.iter().map(|one| one.checksum_errors).sum();
    let unranked = unranked.collect();
    let mut ranking = Ranking { by, unranked, checksum_errors, ..Ranking::default() };
    let Some((best, beside)) = &best else { return ranking };
    order.sort_by(|a, b| beside[*a].median.total_cmp(&beside[*b].median));
    let rivals: Vec<usize> = order.iter().copied().filter(|index| may_be_best(*index)).collect();
    let mut leader = (*best, 1);
    for (number, index) in (1..).zip(order) {
        let (one, own, best_is_faster) = (&series[index], &speeds[index], beside[index]);
        if !Standing::of(&advantage(&speeds[leader.0], own)).is_in_set() {
            leader = (index, number);
        }
        // Beside each that is not shown to be slower than the best by more than the zone: also
        // beside the best, which only seems to be it; and beside each without a figure.
        let rivals = rivals.iter().filter(|other| **other != index);
        let rivals = rivals.map(|other| advantage(&speeds[*other], own).high);
        let unknown = unknown.iter().map(|other| 1.0 / bound(one, &series[*other]).low);
        ranking.places.push(Place {
            design: one.design,
            rank: leader.1,
            throughput: spread(&values(&of_rounds(own))),
            best_is_faster,
            standing: Standing::of(&best_is_faster),
            lost_percent_at_most: lost_percent_at_most(rivals.chain(unknown).fold(1.0, f64::max)),
            cpu_ns: spread(&values(&one.cpu_ns)),
            update_ns: Latency::of(&one.update_ns),
            unreclaimed_peak: one.unreclaimed_peak,
            checksum_errors: one.checksum_errors,
            slices: own.clone(),
        });
    }
    ranking.places.sort_by_key(|place| (place.rank, place.simplicity()));
    ranking
}

/// The fastest of these.
pub(super) fn best<'a>(places: impl IntoIterator<Item = &'a Place>) -> Option<&'a Place> {
    let behind = |place: &Place| place.best_is_faster.median;
    places.into_iter().min_by(|a, b| behind(a).total_cmp(&behind(b)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A place that is equal to the best if it is the first, and else half as fast.
    pub(in crate::advise) fn place(name: &str, rank: usize, throughput: f64) -> Place {
        let mut all = bench::advise::Workload::ALL.into_iter().flat_map(designs);
        let same = |value| Spread { median: value, low: value, high: value };
        let (standing, behind, lost) =
            if rank == 1 { (Standing::In, 1.0, 0.0) } else { (Standing::Out, 2.0, 50.0) };
        Place {
            design: all.find(|design| design.name == name).expect(name),
            rank,
            throughput: same(throughput),
            standing,
            best_is_faster: Ratio { median: behind, low: behind, high: behind },
            lost_percent_at_most: Some(lost),
            cpu_ns: same(1.0),
            update_ns: None,
            unreclaimed_peak: 0,
            checksum_errors: 0,
            slices: (0..5).map(|round| (round, throughput)).collect(),
        }
    }

    /// A design that takes so long, in as many rounds of a slice.
    pub(in crate::advise) fn series(name: &str, ns: f64, noise: f64, count: usize) -> Series {
        let all = designs(bench::advise::Workload::Table);
        let mut one = Series::new(all.iter().find(|one| one.name == name).expect(name));
        let wobble = [0.0, 1.0, -1.0, 0.5, -0.5];
        let value = |slice| (slice as u32, ns * (1.0 + noise * wobble[slice % 5]));
        one.ns = (0..count).map(value).collect();
        one.cpu_ns.clone_from(&one.ns);
        one
    }

    fn ranks(ranking: &Ranking) -> Vec<(usize, &str)> {
        ranking.places.iter().map(|place| (place.rank, place.design.name)).collect()
    }

    #[test]
    fn equals_within_the_zone_share_a_rank_in_the_order_of_the_help() {
        let all = [
            series("quiescence-qsbr", 10.0, 0.02, 40),
            series("quiescence", 11.0, 0.02, 40),
            series("std-mutex", 30.0, 0.02, 40),
            series("sharded-rwlock", 11.2, 0.02, 40),
        ];
        let ranking = rank(&all, 2, 2);
        let expected =
            [(1, "sharded-rwlock"), (1, "quiescence"), (1, "quiescence-qsbr"), (4, "std-mutex")];
        assert_eq!((ranks(&ranking), ranking.by), (expected.to_vec(), By::Wall));
        assert_eq!(best(&ranking.places).unwrap().design.name, "quiescence-qsbr");
        let lost = ranking.places[0].lost_percent_at_most.unwrap();
        assert!((10.0..16.0).contains(&lost), "{lost}");
        assert_eq!(ranking.places[3].throughput.median.round(), 66_666_667.0);
    }

    /// One thread was ranked by CPU time, too, if a design had too few slices: by that, who sleeps
    /// until a grace period has ended is fast.
    #[test]
    fn all_are_ranked_by_cpu_time_where_threads_are_more_than_cpus_and_only_there() {
        let mut few = series("std-mutex", 10.0, 0.0, 40);
        few.ns.truncate(4);
        let mut slow = series("quiescence", 5.0, 0.0, 40);
        slow.cpu_ns.iter_mut().for_each(|(_, ns)| *ns = 30.0);
        let none = Series { cpu_ns: Vec::new(), ..series("papaya", 1.0, 0.0, 0) };
        let ranking = rank(&[few.clone(), slow.clone(), none], 4, 2);
        assert_eq!(ranking.by, By::Cpu);
        assert_eq!(ranks(&ranking), [(1, "std-mutex"), (2, "quiescence")]);
        assert_eq!(ranking.places[0].throughput.median, 2e8, "as many threads as have CPUs");
        assert_eq!(ranking.unranked.len(), 1, "without a figure there is no rank");
        slow.cpu_ns.iter_mut().for_each(|(_, ns)| *ns = 4.0);
        let ranking = rank(&[few, slow], 1, 2);
        assert_eq!((ranks(&ranking), ranking.by), (vec![(1, "quiescence")], By::Wall));
        assert_eq!(ranking.unranked[0].name, "std-mutex");
        let lost = ranking.places[0].lost_percent_at_most;
        assert_eq!(lost, Some(0.0), "the other one's CPU time alone is more");
        assert!(rank(&[], 2, 2).places.is_empty());
    }

    /// All were ranked by CPU time where threads had not met, in which a lock waits for nobody.
    #[test]
    fn by_cpu_time_of_threads_that_can_meet_one_may_be_faster_and_is_not_ranked() {
        let of = |name, cpu_ns| {
            let mut one = series(name, 60.0, 0.01, 40);
            one.cpu_ns.iter_mut().for_each(|(_, ns)| *ns *= cpu_ns / 60.0);
            one
        };
        let lost = |lock_ns, slices| {
            let mut lock = of("std-mutex", lock_ns);
            lock.ns.truncate(4);
            lock.cpu_ns.truncate(slices);
            let ranking = rank(&[lock, of("quiescence", 58.0)], 2, 2);
            assert_eq!((ranks(&ranking), ranking.by), (vec![(1, "quiescence")], By::Wall));
            assert_eq!(ranking.unranked[0].name, "std-mutex");
            ranking.places[0].lost_percent_at_most
        };
        assert!((49.9..50.1).contains(&lost(30.0, 40).unwrap()), "twice as fast at most");
        assert!(lost(55.0, 40).unwrap() < 12.0);
        assert_eq!([lost(80.0, 40), lost(80.0, 1)], [Some(0.0), None], "of one slice");
    }

    /// The best was the one with the greatest median of all slices. A lock that counted in the fast
    /// rounds only was called the best beside one that was twice as fast in each of them, and what
    /// was equal to it was called equal.
    #[test]
    fn the_best_is_no_slower_than_another_one_in_the_rounds_of_both() {
        let rounds = |name, ns: [f64; 2], first| {
            let all = series(name, 1.0, 0.0, 20);
            let of_round = |(round, _): &(u32, f64)| (*round, ns[usize::from(*round < 11)]);
            Series { ns: all.ns.iter().skip(first).map(of_round).collect(), ..all }
        };
        let lock = rounds("parking_lot-mutex", [10.0, 40.0], 9);
        let fast = rounds("mutex-per-value", [5.0, 20.0], 0);
        let ranking = rank(&[lock, fast], 2, 2);
        assert_eq!(ranks(&ranking), [(1, "mutex-per-value"), (2, "parking_lot-mutex")]);
        assert_eq!(ranking.places[1].best_is_faster.median.round(), 2.0);
        let mut lucky = rounds("quiescence", [4.0, 4.0], 18);
        lucky.ns = [[lucky.ns[0]; 3], [lucky.ns[1]; 3]].concat();
        let steady = rounds("mutex-per-value", [5.0, 5.0], 0);
        let ranking = rank(&[lucky, steady], 2, 2);
        let behind = |name| {
            let place = ranking.places.iter().find(|place| place.design.name == name);
            place.expect(name).best_is_faster.median
        };
        assert_eq!(behind("mutex-per-value"), 1.0, "much is known of it");
        assert!(behind("quiescence") < 1.0, "{ranking:?}");
    }

    /// They were counted of ranked designs only: a broken one could pass on a busy machine.
    #[test]
    fn wrong_values_of_a_design_without_a_figure_were_not_counted() {
        let broken = Series { checksum_errors: 3, ..series("papaya", 10.0, 0.0, 2) };
        let ranking = rank(&[series("std-mutex", 10.0, 0.0, 40), broken], 2, 2);
        assert_eq!((ranking.unranked.len(), ranking.checksum_errors), (1, 3));
    }

    /// "At most 0 % lost" was said of the first, where the second may be twice as fast.
    #[test]
    fn the_first_may_lose_too() {
        let all = [series("std-mutex", 10.0, 0.5, 9), series("quiescence", 10.5, 0.1, 9)];
        let ranking = rank(&all, 1, 1);
        assert!(ranking.places[0].lost_percent_at_most.unwrap() > 20.0, "{ranking:?}");
    }
}
