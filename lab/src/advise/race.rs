//! Runs designs against each other: rounds of slices, interleaved and in random order
//! ([`bench::advise::race`]), until it is clear which of them are equal to the best.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bench::advise::{Contender, Design, Plan, Series, Workload, race, race_duration};
use bench::slices::{COUNTED_MIN, RunVerdict};
use bench::statistics::{OfRound, Ratio};

use super::decide::{GIVEN_UP, Standing, is_decided};
use super::rank::{self, By, Ranking};
use super::report::Report;
use crate::output::Output;

/// Where designs race: what was found so far, and how much time is left.
pub(super) struct Track<'o, 'a> {
    pub(super) output: &'o mut Output,
    pub(super) report: Report<'a>,
    /// When everything has to be over, if it has to. A busy machine takes longer than planned.
    pub(super) deadline: Option<Instant>,
    /// Time of slices that did not count, up to [`LOST_MAX`]: the deadline is so much later.
    pub(super) lost: Duration,
}

/// A disturbed machine has so much more time.
const LOST_MAX: Duration = Duration::from_secs(9);

/// How much a race measures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// What is measured of a design in a round.
    pub(super) run_for: Duration,
    /// Rounds of all but those that are far behind.
    pub(super) least: u32,
    /// Rounds of those that are undecided.
    pub(super) most: u32,
    /// Rounds go on until then instead.
    pub(super) until: Option<Instant>,
}

impl Rounds {
    /// Slices of a design in a round: as many as a figure needs, at least.
    fn slices(self) -> u32 {
        let slices = self.run_for.as_nanos() / race_duration(1, 1).as_nanos();
        (slices as u32).max(COUNTED_MIN as u32)
    }

    /// How long the rounds of so many designs take, before those of the undecided.
    pub(super) fn duration(self, contenders: usize) -> Duration {
        race_duration(contenders, self.slices()) * self.least
    }
}

impl Track<'_, '_> {
    /// Whether something that takes this long would end after the deadline.
    pub(super) fn is_too_late_for(&self, duration: Duration) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() + duration > deadline + self.lost)
    }

    /// Fills the designs of these names, or all if none is named; fewer after Ctrl-C.
    pub(super) fn prepare(&mut self, kind: Workload, only: &[&str], plan: &Plan) -> Vec<Contender> {
        let mut contenders = Vec::new();
        let fits = |design: &&Design| {
            design.value_bytes_max.is_none_or(|most| plan.value_bytes <= most)
                && (only.is_empty() || only.contains(&design.name))
        };
        for design in bench::advise::designs(kind).iter().filter(fits) {
            if self.output.must_stop() {
                break;
            }
            self.output.progress.announce(format!("preparing {}", design.name));
            contenders.push(Contender::filled(design, plan));
        }
        contenders
    }

    /// Races these contenders: rounds of all, then of the
    /// best and of those beside it that are undecided, until none is or there were as many as may
    /// be. Each round has its designs filled anew where that is quick. Ends early after Ctrl-C, and
    /// after the deadline.
    pub(super) fn race(
        &mut self,
        contenders: &mut [Contender],
        plan: &Plan,
        rounds: Rounds,
    ) -> (Ranking, RunVerdict) {
        let mut all: Vec<Series> = contenders.iter().map(|one| Series::new(one.design)).collect();
        let mut run = RunVerdict::default();
        let threads = plan.operations.len() as u32;
        let (seed, cpus) = (self.report.asked.args.seed, self.report.asked.cpus);
        let by = By::of(threads, cpus);
        for round in 0.. {
            let open = open(&all, round < rounds.least, by);
            let is_hopeless = by == By::Wall && run.counted == 0;
            let is_last = rounds
                .until
                .map_or(is_hopeless || round >= rounds.most, |until| Instant::now() >= until);
            let cost = race_duration(open.len(), rounds.slices());
            let is_over = open.is_empty()
                || round >= rounds.least && is_last
                || round > 0 && self.is_too_late_for(cost);
            if is_over || self.output.interrupt.requested() {
                break;
            }
            if round >= rounds.least {
                self.output.progress.expect_more(cost);
            }
            let mut racing: Vec<(&Contender, &mut Series)> = Vec::new();
            for (contender, series) in contenders.iter_mut().zip(&mut all) {
                if open.contains(contender.design.name) {
                    if round > 0 {
                        contender.refill(plan, rounds.run_for);
                    }
                    racing.push((&*contender, series));
                }
            }
            let of_round = race(&mut racing, plan, rounds.slices(), (seed, round), self.output);
            self.lost = (self.lost + lost(&of_round)).min(LOST_MAX);
            run = run.and(of_round);
        }
        let ranking = rank::rank(&all, threads, cpus);
        self.report.checksum_errors += ranking.checksum_errors;
        run.rows = all.len() as u32;
        run.without_figure = all.iter().filter(|one| !one.has_figure()).count() as u32;
        (ranking, run)
    }
}

/// The time of the slices that did not count.
fn lost(run: &RunVerdict) -> Duration {
    Duration::from_secs_f64(run.seconds * (1.0 - run.counted_percent() / 100.0))
}

/// The names of those of which more has to be known: at first all but those far behind the best,
/// later the best and those beside it, if one of them is undecided.
fn open(all: &[Series], at_first: bool, by: By) -> BTreeSet<&'static str> {
    let speeds: Vec<Vec<OfRound>> = all.iter().map(|one| by.speeds(one, 1)).collect();
    let Some((best, beside)) = rank::beside_best(all, &speeds) else {
        return all.iter().map(|one| one.design.name).collect();
    };
    // The best one is equal to itself.
    let are_decided = beside.iter().enumerate().all(|(i, of)| i == best || is_decided(of));
    let is_open = |beside: &Ratio| match at_first {
        true => beside.low <= GIVEN_UP,
        false => !are_decided && (Standing::of(beside).is_in_set() || !is_decided(beside)),
    };
    let open = all.iter().zip(&beside).filter(|(_, beside)| is_open(beside));
    open.map(|(one, _)| one.design.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(index: usize, ns: f64, slices: usize) -> Series {
        let mut one = Series::new(&bench::advise::designs(Workload::Table)[index]);
        let wobble = |slice| [1.0, 1.01, 0.99][(slice + index) % 3];
        one.ns = (0..slices).map(|slice| (slice as u32, ns * wobble(slice))).collect();
        one.cpu_ns.clone_from(&one.ns);
        one
    }

    /// A machine of whose CPUs a hypervisor took half had half the slices, and was too noisy.
    #[test]
    fn time_of_slices_that_do_not_count_is_given_again() {
        let run = |counted| {
            let mut run = RunVerdict::default();
            (run.drawn, run.counted, run.seconds) = (40, counted, 2.0);
            run
        };
        assert_eq!([40, 10, 0].map(|counted| lost(&run(counted)).as_millis()), [0, 1_500, 2_000]);
    }

    #[test]
    fn rounds_go_on_of_what_is_undecided_and_not_of_what_is_far_behind() {
        let mut all = vec![series(0, 10.0, 30), series(1, 11.0, 30), series(2, 35.0, 30)];
        assert_eq!(open(&all, true, By::Wall).len(), 2);
        assert!(open(&all, false, By::Wall).is_empty(), "all are decided");
        all.push(series(4, 11.5, 30));
        let names = open(&all, false, By::Wall);
        assert!(names.len() == 3 && !names.contains(all[2].design.name), "{names:?}");
        assert_eq!(open(&[series(0, 1.0, 0), series(1, 1.0, 0)], true, By::Wall).len(), 2);
    }

    /// What had no figure counted as decided.
    #[test]
    fn rounds_go_on_of_what_may_be_the_best_and_has_no_figure() {
        let of = |ns| {
            let mut all = vec![series(0, 10.0, 30), series(1, 50.0, 30), series(2, ns, 30)];
            all[2].ns.truncate(2);
            open(&all, false, By::Wall).len()
        };
        assert_eq!([9.0, 20.0].map(of), [2, 0]);
    }
}
