//! The suite: the aims of the library's default engine.
//!
//! Each of the [workloads] runs with the library's `adaptive`, `poll`, `tick` and `token` and with
//! liburcu's algorithm, on the same machine with the same draws. `adaptive` with its default
//! numbers is compared with the others:
//!
//! - Updates, and readers' sections: at least 0.97 times those of the fixed engine with the most.
//! - Waits (median, mean, 99th percentile), and the mean of expedited waits: at most 1.5 times
//!   those of `poll`.
//! - CPU time of grace periods, if no thread waits: at most 1.1 times `tick`'s.
//!
//! Updates whose callbacks have not run do not count: an engine that lets callbacks pile up has not
//! paid for them yet. liburcu's figures are shown for comparison; no aim refers to them.
//!
//! The best fixed engine differs between workloads. With a default that is close to the best on all
//! of them, users need not choose.

use super::options::{Algorithm, Group, Options, Role};
use super::report::Report;
use super::workloads::{self, Workload};

/// The engine that is judged.
pub const JUDGED: &str = "adaptive";
/// Whose waits it is held against.
const QUICK_ENGINE: &str = "poll";
/// Whose CPU time it is held against.
const CHEAP_ENGINE: &str = "tick";
/// Whose throughput it is held against, if it is the best.
const FIXED: [&str; 3] = [QUICK_ENGINE, CHEAP_ENGINE, "token"];

/// Fewer updates, sections or waits than this say nothing.
pub const COUNT_MIN: u64 = 100;

/// One workload on its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The workload, and its own machine.
    pub workload: Workload,
    /// What is simulated, under the judged engine; on a larger machine perhaps
    /// ([`on_cpus`](Self::on_cpus)).
    pub options: Options,
}

/// What is asked of the judged engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Updates that are finished with.
    Updates,
    /// Sections of readers.
    Reads,
    /// Median wait.
    WaitP50,
    /// Mean wait.
    WaitMean,
    /// Wait of 99 in 100.
    WaitP99,
    /// Mean wait of those in a hurry.
    ExpeditedMean,
    /// CPU time of grace periods.
    Cpu,
}

/// An aim, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Target {
    /// What is asked.
    pub aim: Aim,
    /// Which engine it is held against.
    pub against: &'static str,
    /// The judged engine's figure over the other's, in thousandths.
    pub ratio_permille: u64,
    /// The limit of that: from below for throughput, from above for all else.
    pub limit_permille: u64,
    /// Whether it is within the limit.
    pub reached: bool,
}

impl Aim {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Updates,
        Self::Reads,
        Self::WaitP50,
        Self::WaitMean,
        Self::WaitP99,
        Self::ExpeditedMean,
        Self::Cpu,
    ];

    /// The limit, in thousandths.
    pub const fn limit_permille(self) -> u64 {
        match self {
            Self::Updates | Self::Reads => 970,
            Self::WaitP50 | Self::WaitMean | Self::WaitP99 | Self::ExpeditedMean => 1_500,
            Self::Cpu => 1_100,
        }
    }

    /// Whether more is better.
    pub const fn is_throughput(self) -> bool {
        matches!(self, Self::Updates | Self::Reads)
    }

    const fn is_reached(self, ratio_permille: u64) -> bool {
        if self.is_throughput() {
            ratio_permille >= self.limit_permille()
        } else {
            ratio_permille <= self.limit_permille()
        }
    }

    /// The figure, if it says something.
    fn figure(self, report: &Report) -> Option<u64> {
        let (waits, expedited) = (&report.waits_ns, &report.waits_expedited_ns);
        let enough = |count: u64, figure: u64| (count >= COUNT_MIN).then_some(figure);
        match self {
            Self::Updates => enough(report.finished_updates(), report.finished_updates()),
            Self::Reads => enough(report.reads, report.reads),
            Self::WaitP50 => enough(waits.count, waits.p50),
            Self::WaitMean => enough(waits.count, waits.mean),
            Self::WaitP99 => enough(waits.count, waits.p99),
            Self::ExpeditedMean => enough(expedited.count, expedited.mean),
            Self::Cpu => Some(report.time.overhead_ns()),
        }
    }
}

/// The cases; `quick` has runs of a quarter.
pub fn cases(quick: bool) -> Vec<Case> {
    let case = |workload: Workload| {
        let algorithm = Algorithm::named(JUDGED).unwrap_or(Algorithm::Liburcu);
        let mut options = Options::new(algorithm, workload.threads.clone());
        options.cpus = workload.cpus;
        options.duration = workload.duration / if quick { 4 } else { 1 };
        Case { workload, options }
    };
    workloads::all().into_iter().map(case).collect()
}

impl Case {
    /// The same on a machine of so many CPUs. Of each kind of thread of which there were several
    /// there are as many to a CPU as before; one of its kind stays alone.
    #[must_use]
    pub fn on_cpus(mut self, cpus: usize) -> Self {
        let (from, to) = (self.workload.cpus.max(1) as u128, cpus as u128);
        for group in self.options.threads.iter_mut().filter(|group| group.count > 1) {
            let count = (u128::from(group.count) * to).div_ceil(from);
            group.count = u32::try_from(count).unwrap_or(u32::MAX);
        }
        self.options.cpus = cpus;
        self
    }

    /// The options of one of its runs.
    pub fn under(&self, algorithm: Algorithm) -> Options {
        Options { algorithm, ..self.options.clone() }
    }
}

/// What came of the aims that apply to the case. `reports` are those of [`Algorithm::NAMES`], in
/// their order.
pub fn judge(case: &Case, reports: &[Report]) -> Vec<Target> {
    let of = |wanted: &str| {
        let at = Algorithm::NAMES.iter().position(|name| *name == wanted);
        at.and_then(|at| reports.get(at))
    };
    let Some(own) = of(JUDGED) else { return Vec::new() };
    let waits = |group: &Group| matches!(group.role, Role::Waits { .. });
    let some_wait = case.workload.threads.iter().any(waits);
    let held = |aim: Aim| {
        let against = match aim {
            Aim::Updates | Aim::Reads => {
                let figure =
                    |name: &&&str| of(name).map_or(0, |report| aim.figure(report).unwrap_or(0));
                FIXED.iter().rev().max_by_key(figure)?
            }
            Aim::Cpu if some_wait => return None,
            Aim::Cpu => CHEAP_ENGINE,
            _ => QUICK_ENGINE,
        };
        let other = aim.figure(of(against)?)?;
        // Too few waits that have ended are no short ones.
        let worst = if aim.is_throughput() { 0 } else { u64::MAX };
        let ratio_permille = permille(aim.figure(own).unwrap_or(worst), other)?;
        Some(Target {
            aim,
            against,
            ratio_permille,
            limit_permille: aim.limit_permille(),
            reached: aim.is_reached(ratio_permille),
        })
    };
    Aim::ALL.into_iter().filter_map(held).collect()
}

/// A ratio in thousandths, rounded; `None` of nothing to nothing.
fn permille(figure: u64, other: u64) -> Option<u64> {
    let is_any = figure != 0 || other != 0;
    let (figure, other) = (u128::from(figure), u128::from(other));
    let ratio = (figure * 1_000 + other / 2).checked_div(other).unwrap_or(u128::MAX);
    is_any.then(|| u64::try_from(ratio).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Summary;
    use crate::ours::run;

    fn reports(case: &Case) -> Vec<Report> {
        let under = |name: &str| run(&case.under(Algorithm::named(name).unwrap())).unwrap();
        Algorithm::NAMES.into_iter().map(under).collect()
    }

    fn case(name: &str) -> Case {
        let mut case = cases(true).into_iter().find(|case| case.workload.name == name).unwrap();
        case.options.duration /= 2;
        case
    }

    fn reached(targets: &[Target], aim: Aim) -> Option<bool> {
        targets.iter().find(|target| target.aim == aim).map(|target| target.reached)
    }

    #[test]
    fn there_are_fifteen_workloads_each_with_its_own_name() {
        for quick in [false, true] {
            let cases = cases(quick);
            assert!(cases.iter().all(|case| case.options.check().is_ok()));
            let names = cases.iter().map(|case| case.workload.name);
            let names: std::collections::BTreeSet<_> = names.collect();
            assert!(names.len() >= 15 && names.len() == cases.len());
        }
    }

    #[test]
    fn a_default_that_is_slow_dear_or_late_does_not_reach_its_aims() {
        let waiter = case("busy-readers");
        let mut reports_of_waiter = reports(&waiter);
        assert_eq!(reached(&judge(&waiter, &reports_of_waiter), Aim::WaitMean), Some(true));
        assert_eq!(reached(&judge(&waiter, &reports_of_waiter), Aim::Cpu), None, "a thread waits");
        reports_of_waiter[0].waits_ns.mean *= 2;
        reports_of_waiter[0].reads /= 2;
        let targets = judge(&waiter, &reports_of_waiter);
        assert_eq!(reached(&targets, Aim::WaitMean), Some(false));
        assert_eq!(reached(&targets, Aim::Reads), Some(false));
        let retirer = case("busy-readers-retire");
        let mut reports = reports(&retirer);
        assert_eq!(reached(&judge(&retirer, &reports), Aim::Updates), Some(true));
        reports[0].time.worker_ns = reports[0].time.own_ns;
        // Nothing is paid for that has not run.
        reports[0].callbacks.run /= 2;
        let targets = judge(&retirer, &reports);
        assert_eq!(reached(&targets, Aim::Cpu), Some(false));
        assert_eq!(reached(&targets, Aim::Updates), Some(false));
    }

    /// Its figure was 0, which is below any limit.
    #[test]
    fn a_default_whose_waits_do_not_end_was_as_quick_as_can_be() {
        let waiter = case("busy-readers");
        let mut reports = reports(&waiter);
        reports[0].waits_ns = Summary::default();
        let targets = judge(&waiter, &reports);
        for aim in [Aim::WaitP50, Aim::WaitMean, Aim::WaitP99] {
            assert_eq!(reached(&targets, aim), Some(false), "{aim:?}");
        }
    }

    /// There was nothing to divide by, so it was not judged.
    #[test]
    fn cpu_time_where_tick_uses_none_was_no_miss() {
        let idle = case("idle");
        let mut reports = reports(&idle);
        assert_eq!(reached(&judge(&idle, &reports), Aim::Cpu), None, "none uses any");
        reports[0].time.worker_ns = 1;
        assert_eq!(reached(&judge(&idle, &reports), Aim::Cpu), Some(false));
    }

    #[test]
    fn a_larger_machine_has_threads_in_proportion() {
        let larger = case("busy-readers").on_cpus(64);
        let counts: Vec<u32> = larger.options.threads.iter().map(|group| group.count).collect();
        assert_eq!((larger.options.cpus, counts), (64, vec![48, 1]));
        let too_large = case("idle-10000").on_cpus(4_096);
        assert!(too_large.options.check().is_err(), "five million threads");
    }

    #[test]
    fn without_the_judged_engine_there_is_nothing_to_tell() {
        assert!(judge(&case("idle"), &[]).is_empty());
    }
}
