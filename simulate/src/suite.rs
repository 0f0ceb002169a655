//! The suite: what the engine on demand is held against.
//!
//! Workloads from idle to flood, on few CPUs and on thousands. On each of them every engine runs,
//! on the same machine with the same draws, and `on-demand` with its default numbers is compared:
//!
//! | aim | against | limit |
//! |---|---|---|
//! | operations | the best of the fixed engines | at least 0.97 of it |
//! | latency of a task that waits: median, mean, 99 of 100 | `poll` | at most 1.5 times |
//! | CPU time, where no task waits | `tick` | at most 1.1 times |
//! | CPU time while no task waits, unless memory is near its limit | the budget | all of it |
//!
//! Two figures need care. Operations: an engine that lets callbacks pile up has not paid for them
//! yet, so the operations that it would do less if it had are taken off ([`OPERATIONS_MIN`] is the
//! fewest that say anything). The budget fills as time passes, and what was saved before may be
//! spent in the run.
//!
//! A task that waits pays for the grace period: in the library the thread that waits does the work.
//! So the budget is for engine time while no task waits.
//!
//! The best fixed engine is another one on each workload; one that is near all of them is what a
//! user need not choose. The judged engine is a kernel's ([`OnDemand`]): what comes of it is not a
//! figure of the library's. Nothing here runs anything: callers can do so in any order.
//!
//! [`OnDemand`]: crate::kernel::on_demand::OnDemand

use grace::limit;

use crate::cost::PICOS;
use crate::engines::EngineKind;
use crate::parameter::get;
use crate::report::{Callbacks, Report};
use crate::setup::{MILLISECOND, SECOND, Setup};
use crate::workload::Workload;
use crate::world::BUDGET_SPAN;

/// The engine that is judged.
pub const JUDGED: &str = "on-demand";
/// Whose latency it is held against.
const QUICK_ENGINE: &str = "poll";
/// Whose CPU time it is held against.
const CHEAP_ENGINE: &str = "tick";

/// Engines whose work grows with the square of the CPUs run on so many at most: each of 4,096
/// CPUs that forces 4,096 takes hours to simulate, and is of no use.
const SQUARE_CPUS_MAX: usize = 256;
const SQUARE_ENGINE: &str = "poll-per-cpu";

/// Fewer operations than this differ by more than 1 % from one seed to the next.
pub const OPERATIONS_MIN: u64 = 5_000;

/// Which tasks wait for grace periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waits {
    /// Callbacks only.
    Nobody,
    /// Somebody, without hurry.
    Normal,
    /// Somebody in a hurry.
    Expedited,
}

/// One workload on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name, unique in the suite: `dbench/8`.
    pub name: String,
    /// What runs.
    pub workload: Workload,
    /// On which machine, for how long.
    pub setup: Setup,
    /// Which tasks wait.
    pub waits: Waits,
}

/// What is asked of the judged engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Operations of the workload.
    Throughput,
    /// Median latency of a task that waits.
    LatencyP50,
    /// Its mean.
    LatencyMean,
    /// 99 of 100.
    LatencyP99,
    /// The engine's CPU time.
    Cpu,
    /// The same, against its budget.
    Budget,
}

/// An aim, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Target {
    /// What is asked.
    pub aim: Aim,
    /// Which engine it is held against; none for the budget.
    pub against: Option<String>,
    /// The judged engine's figure over the other's (or over the budget), in thousandths.
    pub ratio_permille: u64,
    /// The limit of that: from below for the throughput, from above for all else.
    pub limit_permille: u64,
    /// Whether it is within the limit.
    pub reached: bool,
}

impl Aim {
    /// The limit, in thousandths.
    pub const fn limit_permille(self) -> u64 {
        match self {
            Self::Throughput => 970,
            Self::LatencyP50 | Self::LatencyMean | Self::LatencyP99 => 1_500,
            Self::Cpu => 1_100,
            Self::Budget => 1_000,
        }
    }

    const fn is_reached(self, ratio_permille: u64) -> bool {
        match self {
            Self::Throughput => ratio_permille >= self.limit_permille(),
            _ => ratio_permille <= self.limit_permille(),
        }
    }
}

/// The cases; `quick` has smaller machines and shorter runs.
pub fn cases(quick: bool) -> Vec<Case> {
    use Waits::{Expedited, Nobody, Normal};
    // Workload, CPUs, milliseconds, which tasks wait. Large machines need less time for as many
    // events.
    let table: [(&str, usize, u64, Waits); 19] = [
        ("idle", 4, 2_000, Nobody),
        ("idle", 4_096, 500, Nobody),
        ("dbench", 8, 1_000, Nobody),
        ("dbench", 512, 300, Nobody),
        ("dcachebench", 4, 2_000, Nobody),
        ("open-close", 32, 300, Nobody),
        ("exit-files", 16, 1_000, Nobody),
        ("long-readers", 16, 1_000, Nobody),
        ("read-mostly", 16, 1_000, Nobody),
        ("read-mostly", 4_096, 100, Nobody),
        ("update-flood", 4, 400, Nobody),
        ("update-flood", 64, 150, Nobody),
        ("waiter", 8, 1_000, Normal),
        ("waiter", 8, 1_000, Expedited),
        ("waiter", 1_024, 200, Normal),
        ("waiter-idle", 8, 3_000, Normal),
        ("waiter-idle", 4_096, 500, Normal),
        ("mixed", 16, 1_000, Normal),
        ("mixed", 4_096, 100, Normal),
    ];
    let case = |(name, cpus, length_ms, waits): (&str, usize, u64, Waits)| {
        let (cpus, length_ms) =
            if quick { (cpus.min(64), length_ms / 2) } else { (cpus, length_ms) };
        case(name, cpus, length_ms, waits)
    };
    let mut cases: Vec<Case> = Vec::new();
    for case in table.into_iter().map(case) {
        cases.extend(case.filter(|case| !cases.iter().any(|known| known.name == case.name)));
    }
    cases
}

/// A case of these numbers; `None` if there is no such workload.
fn case(name: &str, cpus: usize, length_ms: u64, waits: Waits) -> Option<Case> {
    let mut workload = Workload::named(name).ok()?;
    let hurry = match waits {
        Waits::Expedited => {
            workload.set("expedited", 1).ok()?;
            " in a hurry"
        }
        Waits::Normal | Waits::Nobody => "",
    };
    // What is going on as the counting begins has begun before: as long as a few slow grace
    // periods.
    let warm_up = (length_ms * MILLISECOND).min(SECOND / 5);
    let duration = length_ms * MILLISECOND;
    let setup = Setup { cpus, warm_up, duration, timeline: 0, ..Setup::default() };
    Some(Case { name: format!("{name}/{cpus}{hurry}"), workload, setup, waits })
}

/// The engines that run on this case.
pub fn engines(case: &Case) -> Vec<EngineKind> {
    let fits =
        |engine: &EngineKind| engine.name() != SQUARE_ENGINE || case.setup.cpus <= SQUARE_CPUS_MAX;
    EngineKind::all().into_iter().filter(fits).collect()
}

/// What came of the aims that apply to the case. `reports` are those of its engines; without the
/// judged engine's there is nothing to tell.
pub fn judge(case: &Case, reports: &[Report]) -> Vec<Target> {
    let of = |name: &str| reports.iter().find(|report| report.engine.name == name);
    let Some(own) = of(JUDGED) else {
        return Vec::new();
    };
    let fixed = reports.iter().filter(|report| report.engine.name != JUDGED);
    let best = fixed
        .max_by_key(|report| operations(case, report))
        .filter(|best| best.operations >= OPERATIONS_MIN);
    let quick = of(QUICK_ENGINE).filter(|_| case.waits != Waits::Nobody);
    let cheap = of(CHEAP_ENGINE).filter(|_| case.waits == Waits::Nobody);
    let mut targets = Vec::new();
    let mut held = |aim: Aim, other: Option<&Report>, figure: &dyn Fn(&Report) -> u64| {
        let Some(other) = other else { return };
        // Nothing is a multiple of nothing.
        let Some(ratio_permille) = permille(figure(own), figure(other)) else { return };
        targets.push(Target {
            aim,
            against: Some(other.engine.name.clone()),
            ratio_permille,
            limit_permille: aim.limit_permille(),
            reached: aim.is_reached(ratio_permille),
        });
    };
    held(Aim::Throughput, best, &|report| operations(case, report));
    held(Aim::LatencyP50, quick, &|report| report.waiter_latency_ns.p50);
    held(Aim::LatencyMean, quick, &|report| report.waiter_latency_ns.mean);
    held(Aim::LatencyP99, quick, &|report| report.waiter_latency_ns.p99);
    held(Aim::Cpu, cheap, &|report| report.time.engine_ns);
    targets.extend(budget(case, own));
    targets
}

/// Operations, without those in whose time the callbacks that were queued and not run would have
/// been run; with more, if more were run than queued. (With so many operations, each of so long,
/// and so many callbacks to each: what is owed is paid for by giving up operations with their
/// callbacks.)
fn operations(case: &Case, report: &Report) -> u64 {
    let Callbacks { queued, invoked, .. } = report.callbacks;
    let (queued, done) = (i128::from(queued), i128::from(report.operations));
    let owed = queued - i128::from(invoked);
    let callback_ps = i128::from(case.setup.costs.callback);
    let busy_ns = i128::from(report.time.user_ns + report.time.kernel_ns);
    let of_workload = case.workload.parameters().iter().find(|each| each.name == "operation_ns");
    let operations_ns = of_workload.map_or(busy_ns, |each| i128::from(each.value) * done);
    let all_ps = operations_ns * i128::from(PICOS) + queued * callback_ps;
    let given_up = (owed * callback_ps * done).checked_div(all_ps).unwrap_or(0);
    u64::try_from(done - given_up).unwrap_or(0)
}

fn budget(case: &Case, own: &Report) -> Option<Target> {
    if is_near_limit(own) {
        return None;
    }
    let Setup { cpus, duration, budget_ppm, .. } = case.setup;
    let span_ns = u128::from(duration + BUDGET_SPAN) * cpus as u128;
    let budget_ns = u64::try_from(span_ns * u128::from(budget_ppm) / 1_000_000).ok()?;
    let ratio_permille = permille(own.time.background_ns, budget_ns)?;
    let aim = Aim::Budget;
    Some(Target {
        aim,
        against: None,
        ratio_permille,
        limit_permille: aim.limit_permille(),
        reached: aim.is_reached(ratio_permille),
    })
}

/// Whether so much memory waited that the engine had to hurry: from three quarters of its limit on.
fn is_near_limit(own: &Report) -> bool {
    let Ok(kind) = EngineKind::named(JUDGED) else {
        return false;
    };
    let presses = |waiting, name| limit::presses(waiting, get(kind.parameters(), name));
    presses(own.callbacks.waiting_peak, "backlog_objects")
        || presses(own.callbacks.waiting_bytes_peak, "backlog_bytes")
}

/// A ratio in thousandths, rounded; `None` if there is nothing to divide by.
fn permille(figure: u64, other: u64) -> Option<u64> {
    let (figure, other) = (u128::from(figure), u128::from(other));
    let ratio = (figure * 1_000 + other / 2).checked_div(other)?;
    Some(u64::try_from(ratio).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    /// A report of the engine of this name, from a run that is as short as can be.
    fn report(engine: &str, case: &Case) -> Report {
        run(&case.setup, &EngineKind::named(engine).unwrap(), &case.workload).unwrap()
    }

    fn reached(targets: &[Target], aim: Aim) -> Option<bool> {
        targets.iter().find(|target| target.aim == aim).map(|target| target.reached)
    }

    #[test]
    fn there_are_ten_workloads_from_idle_to_flood_and_every_case_has_its_own_name() {
        for quick in [false, true] {
            let cases = cases(quick);
            let mut workloads: Vec<_> = cases.iter().map(|case| case.workload.name()).collect();
            workloads.sort_unstable();
            workloads.dedup();
            assert!(workloads.len() >= 10, "{workloads:?}");
            let mut names: Vec<_> = cases.iter().map(|case| &case.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), cases.len());
            assert!(cases.iter().all(|case| case.setup.check().is_ok()));
        }
        assert!(cases(false).iter().any(|case| case.setup.cpus == 4_096));
        assert!(cases(false).iter().any(|case| case.setup.cpus == 4));
    }

    #[test]
    fn every_engine_runs_but_where_its_work_is_a_square() {
        let cases = cases(false);
        let all = EngineKind::all().len();
        let small = cases.iter().find(|case| case.setup.cpus == 4).unwrap();
        let large = cases.iter().find(|case| case.setup.cpus == 4_096).unwrap();
        assert_eq!((engines(small).len(), engines(large).len()), (all, all - 1));
    }

    #[test]
    fn a_default_that_is_slow_dear_or_late_does_not_reach_its_aims() {
        let case = case("open-close", 2, 20, Waits::Nobody).unwrap();
        let names = [JUDGED, QUICK_ENGINE, CHEAP_ENGINE];
        let good: Vec<Report> = names.iter().map(|name| report(name, &case)).collect();
        let with = |change: fn(&mut Report)| {
            let mut reports = good.clone();
            change(&mut reports[0]);
            judge(&case, &reports)
        };
        let slow = with(|report| report.operations = report.operations * 9 / 10);
        assert_eq!(reached(&slow, Aim::Throughput), Some(false));
        let dear = with(|report| {
            report.time.engine_ns = report.time.user_ns;
            report.time.background_ns = report.time.user_ns;
        });
        assert_eq!(reached(&dear, Aim::Cpu), Some(false));
        assert_eq!(reached(&dear, Aim::Budget), Some(false));
        assert_eq!(reached(&dear, Aim::LatencyP50), None, "nobody waits");
        let hurried = with(|report| {
            report.time.background_ns = report.time.user_ns;
            report.callbacks.waiting_peak = u64::MAX;
        });
        assert_eq!(reached(&hurried, Aim::Budget), None, "memory was near its limit");
    }

    #[test]
    fn callbacks_that_were_not_run_are_owed() {
        let case = case("update-flood", 2, 20, Waits::Nobody).unwrap();
        let mut one = report(CHEAP_ENGINE, &case);
        let owed = one.callbacks.queued.abs_diff(one.callbacks.invoked);
        assert!(owed > 0, "the flood is faster than a tick");
        one.callbacks.invoked = 0;
        // Operations of 1,000 ns, each with a callback of 100 ns, in the time of those without.
        let (lagging, expected) = (operations(&case, &one), one.operations * 10 / 11);
        assert!(lagging.abs_diff(expected) <= expected / 100, "{lagging}, not {expected}");
        one.callbacks.invoked = one.callbacks.queued;
        assert_eq!(operations(&case, &one), one.operations);
    }

    #[test]
    fn whoever_waits_is_held_against_poll() {
        let case = case("waiter", 2, 20, Waits::Normal).unwrap();
        let mut reports: Vec<Report> =
            [JUDGED, QUICK_ENGINE, CHEAP_ENGINE].iter().map(|name| report(name, &case)).collect();
        let poll = reports[1].waiter_latency_ns;
        reports[0].waiter_latency_ns = poll;
        assert_eq!(reached(&judge(&case, &reports), Aim::LatencyP99), Some(true));
        reports[0].waiter_latency_ns.p99 = 2 * poll.p99;
        let targets = judge(&case, &reports);
        assert_eq!(reached(&targets, Aim::LatencyP99), Some(false));
        assert_eq!(reached(&targets, Aim::LatencyP50), Some(true));
        assert_eq!(reached(&targets, Aim::Cpu), None, "somebody waits");
    }

    #[test]
    fn ratios_are_rounded_and_nothing_divides_nothing() {
        assert_eq!(permille(2, 3), Some(667));
        assert_eq!(permille(u64::MAX, 1), Some(u64::MAX));
        assert_eq!(permille(0, 7), Some(0));
        assert_eq!(permille(7, 0), None);
    }
}
