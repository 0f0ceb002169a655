//! The simulation of SRCU: repeatable, conserving time, and with the mechanisms that it is there to
//! show.

use grace::srcu::{AdaptiveDelay, AnyDelay, Published};
use simulate::srcu::{Blocked, Options, Placement, Readers, Report, VARIANTS, run, variant};

const MS: u64 = 1_000_000;

fn options(name: &str) -> Options {
    let delay = variant(name, 250).expect("it is one of the variants");
    Options { calls: 500, ..Options::reports_of_2022(delay) }
}

fn report(options: &Options) -> Report {
    run(options).expect("these options are possible")
}

#[test]
fn the_same_options_give_the_same_report_and_another_seed_another() {
    for name in VARIANTS {
        let options = options(name);
        let first = report(&options);
        assert_eq!(first, report(&options));
        assert_ne!(first, report(&Options { seed: 2, ..options }));
    }
}

#[test]
fn every_call_comes_back_and_time_is_conserved() {
    for name in VARIANTS {
        let machines = [
            (Placement::WithCaller, 128, true),
            (Placement::WithCaller, 128, false),
            (Placement::WithCaller, 3, true),
            (Placement::WithCaller, 2, true),
            (Placement::Apart, 128, true),
            (Placement::Apart, 2, true),
            (Placement::WithCaller, 1, true),
        ];
        for machine in machines {
            let (placement, cpus, balances) = machine;
            for preempt in [false, true] {
                let options = Options { placement, cpus, balances, preempt, ..options(name) };
                let report = report(&options);
                assert!(report.is_complete(), "{name} {machine:?}");
                assert!(report.grace_periods >= u64::from(report.calls), "{name} {machine:?}");
                assert!(report.worker_ns <= report.elapsed_ns);
                assert!(report.latency_sum_ns <= report.elapsed_ns);
                let percentiles = [
                    report.latency_p50_ns,
                    report.latency_p90_ns,
                    report.latency_p99_ns,
                    report.latency_max_ns,
                ];
                assert!(percentiles.is_sorted(), "{percentiles:?}");
                // The caller's work and its waits are all there is.
                let work = report.elapsed_ns - report.latency_sum_ns;
                let mean = work / u64::from(report.calls);
                assert!((mean as i64 - 345_000).abs() < 25_000, "{name} {machine:?}: {mean}");
            }
        }
    }
}

#[test]
fn the_regression_takes_preemption_and_one_cpu_for_both() {
    let rc1 = options("5.19-rc1");
    assert!(report(&rc1).latency_p50_ns > 15 * MS);
    assert!(report(&Options { cpus: 1, ..rc1.clone() }).sleeps > 400);
    assert_eq!(report(&Options { preempt: false, ..rc1.clone() }).sleeps, 0);
    assert_eq!(report(&Options { placement: Placement::Apart, ..rc1.clone() }).sleeps, 0);
    // And the caller being behind: no wake-up preempts if the granularity is beyond half a latency.
    let mut patient = rc1;
    patient.scheduler.wakeup_granularity_ns = patient.scheduler.latency_ns;
    assert_eq!(report(&patient).sleeps, 0);
}

#[test]
fn an_idle_cpu_pulls_whom_the_worker_spins_past_a_tick() {
    let spins = options("5.18");
    let (alone, pulled) = (Options { balances: false, ..spins.clone() }, report(&spins));
    assert!(pulled.pulls > 0 && report(&alone).pulls == 0);
    // Two ticks and what the worker takes then: no caller waits longer, where a slice is 12 ms.
    assert!(pulled.latency_max_ns < 2 * 4 * MS + MS, "{}", pulled.latency_max_ns);
    assert!(report(&alone).latency_max_ns > 12 * MS);
    // The fewer spin past a tick, the fewer are pulled; and there must be an idle CPU.
    assert_eq!(report(&options("5.19-rc1")).pulls, 0, "it sleeps before the tick");
    assert_eq!(report(&Options { cpus: 1, ..spins.clone() }).pulls, 0);
    assert!(report(&Options { cpus: 2, ..spins.clone() }).pulls > 0, "the boot CPU");
    assert_eq!(report(&Options { placement: Placement::Apart, ..spins.clone() }).pulls, 0);
    // A caller that is never cold is never pulled.
    let mut warm = spins;
    warm.scheduler.migration_cost_ns = 100_000 * MS;
    assert_eq!(report(&warm).pulls, 0);
}

#[test]
fn a_worker_that_may_spin_on_to_the_tick_is_faster_than_one_that_sleeps_before_it() {
    let released = Published::final_at(250);
    let elapsed_ns = |limit| {
        let delay = Published { runs_per_jiffy_max: Some(limit), ..released };
        let delay = AnyDelay::Published(delay);
        report(&Options { calls: 4_000, delay, ..options("final") }).elapsed_ns
    };
    // The throttle of 100 runs in a jiffy strikes before the tick.
    assert!(elapsed_ns(100) > elapsed_ns(1_000) + elapsed_ns(1_000) / 10);
}

#[test]
fn the_wheel_makes_two_ticks_of_one_jiffy() {
    for (hz, jiffy_ns) in [(100, 10 * MS), (250, 4 * MS), (1_000, MS)] {
        let delay = variant("5.19-rc1", hz).expect("it is one of the variants");
        let options = Options { hz, calls: 500, ..Options::reports_of_2022(delay) };
        let report = report(&options);
        // Two waits a call; what the caller works before the first is the rest of its first tick.
        let per_call = report.elapsed_ns / 500;
        assert!(per_call.abs_diff(4 * jiffy_ns) < jiffy_ns / 10, "{hz}: {per_call}");
    }
}

#[test]
fn a_reader_that_blocks_keeps_the_worker_awake_under_5_18_and_not_under_adaptive() {
    let blocked = Some(Blocked { from_ns: 50 * MS, for_ns: 1_000 * MS });
    let report_of = |name| report(&Options { blocked, ..options(name) });
    let old = report_of("5.18");
    assert!(old.worker_awake_max_ns > 900 * MS, "{}", old.worker_awake_max_ns);
    assert!(old.worker_share_ppm() > 600_000);
    let ours = report_of("adaptive");
    assert!(ours.worker_awake_max_ns < MS, "{}", ours.worker_awake_max_ns);
    assert!(ours.worker_share_ppm() < 60_000, "{}", ours.worker_share_ppm());
    // It is noticed at most half as late again as it was long, and ten jiffies at most.
    assert!(ours.latency_max_ns < 1_000 * MS + 12 * 4 * MS, "{}", ours.latency_max_ns);
}

#[test]
fn adaptive_is_as_fast_as_5_18_for_short_readers_and_cheaper_for_long_ones() {
    for inside_ns in [0, 2_000, 20_000, 200_000, 2_000_000] {
        let readers = Readers { count: 16, inside_ns, outside_ns: 20 * inside_ns + 1 };
        for placement in [Placement::WithCaller, Placement::Apart] {
            let report_of = |name| report(&Options { readers, placement, ..options(name) });
            let (old, ours) = (report_of("5.18"), report_of("adaptive"));
            let what = format!("{inside_ns} {placement:?}");
            let (old_p50, p50) = (old.latency_p50_ns, ours.latency_p50_ns);
            assert!(p50 <= old_p50 + old_p50 / 2 + 60_000, "{what}: {p50} against {old_p50}");
            assert!(ours.worker_awake_max_ns < MS, "{what}: {}", ours.worker_awake_max_ns);
            assert!(ours.worker_share_ppm() < 500_000, "{what}: {}", ours.worker_share_ppm());
        }
    }
}

#[test]
fn without_its_first_moment_adaptive_still_lets_the_caller_go_on() {
    let delay = AdaptiveDelay { first_nap_us: 0, ..AdaptiveDelay::at(250) };
    let options = Options { delay: AnyDelay::Adaptive(delay), ..options("adaptive") };
    let report = report(&options);
    assert!(report.checks_failed > 0, "it meets the caller in its section");
    assert!(report.latency_max_ns < 200_000, "{}", report.latency_max_ns);
}

#[test]
fn a_run_ends_at_its_limit() {
    let blocked = Some(Blocked { from_ns: 0, for_ns: u64::MAX });
    let report = report(&Options { blocked, limit_ns: 100 * MS, ..options("5.19-rc1") });
    assert!(!report.is_complete());
    assert_eq!(report.elapsed_ns, 100 * MS);
}

#[test]
fn impossible_options_are_named() {
    let good = options("5.18");
    let refused = |options: &Options| {
        let refused = run(options).expect_err("it is impossible").to_string();
        refused.split_once(": ").expect("an option and a reason").0.to_owned()
    };
    assert_eq!(refused(&Options { calls: 0, ..good.clone() }), "calls");
    assert_eq!(refused(&Options { check_ns: 0, ..good.clone() }), "check_ns");
    assert_eq!(refused(&Options { limit_ns: 0, ..good.clone() }), "limit_ns");
    assert_eq!(refused(&Options { run_ns: u64::MAX, ..good.clone() }), "run_ns");
    assert_eq!(refused(&Options { calls: u32::MAX, ..good.clone() }), "calls");
    assert_eq!(refused(&Options { cpus: 0, ..good.clone() }), "cpus");
    assert_eq!(refused(&Options { cpus: 4_097, ..good.clone() }), "cpus");
    let apart = Options { cpus: 1, placement: Placement::Apart, ..good.clone() };
    assert_eq!(refused(&apart), "placement");
    let many = Readers { count: u32::MAX, inside_ns: 1, outside_ns: 1 };
    assert_eq!(refused(&Options { readers: many, ..good.clone() }), "readers");
    let long = Readers { count: 1, inside_ns: u64::MAX, outside_ns: 1 };
    assert_eq!(refused(&Options { readers: long, ..good.clone() }), "readers.inside_ns");
    let nowhere = Readers { count: 1, inside_ns: 0, outside_ns: 0 };
    assert_eq!(refused(&Options { readers: nowhere, ..good }), "readers");
}
