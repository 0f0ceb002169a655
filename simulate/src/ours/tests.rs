use std::cell::RefCell;

use grace::limit::Amount;

use super::workloads::{self, Workload};
use super::*;
use crate::cost::{Measured, MeasuredKernel};
use crate::setup::{MICROSECOND, MILLISECOND, SECOND};

fn options(name: &str, algorithm: &str) -> Options {
    let workload = workloads::all().into_iter().find(|workload| workload.name == name);
    let Workload { cpus, threads, .. } = workload.unwrap();
    let algorithm = Algorithm::named(algorithm).unwrap();
    let mut options = Options::new(algorithm, threads);
    options.cpus = cpus;
    options.warm_up = 10 * MILLISECOND;
    options.duration = 40 * MILLISECOND;
    options
}

fn report(name: &str, algorithm: &str, change: impl FnOnce(&mut Options)) -> Report {
    let mut options = options(name, algorithm);
    change(&mut options);
    run(&options).unwrap()
}

#[test]
fn the_same_options_give_the_same_report_and_another_seed_another() {
    for algorithm in Algorithm::NAMES {
        let [one, other] = [1, 1].map(|seed| report("mixed-urgency", algorithm, |o| o.seed = seed));
        assert_eq!(one, other);
        assert_ne!(one, report("mixed-urgency", algorithm, |o| o.seed = 2));
    }
}

/// The oracle: whatever the workload, no grace period ends under a reader that was inside when it
/// began.
#[test]
fn no_grace_period_ends_under_a_reader_that_had_begun_before() {
    for workload in workloads::all() {
        for algorithm in Algorithm::NAMES {
            let report = report(workload.name, algorithm, |options| {
                options.check = true;
                options.duration = 15 * MILLISECOND;
            });
            assert_eq!(report.violations, 0, "{} under {algorithm}", workload.name);
        }
    }
}

/// The oracle can fail.
#[test]
fn a_reader_that_is_not_scanned_is_found_by_the_oracle() {
    for algorithm in ["adaptive", "poll", "token"] {
        let mut options = options("busy-readers", algorithm);
        options.check = true;
        // Few sections are as long as a grace period.
        options.duration = 400 * MILLISECOND;
        // The last one in the list is a reader, not the updater.
        options.threads.reverse();
        let mut world = world::World::new(&options);
        // A scan goes by the list, and the oracle by the readers.
        world.domain.registered.pop().expect("it is a reader");
        let world = RefCell::new(world);
        let _ = world::run(&world, &mut |_| ControlFlow::Continue(()));
        assert!(world.borrow().report().violations > 0, "{algorithm}");
    }
}

#[test]
fn an_idle_process_is_idle() {
    for algorithm in Algorithm::NAMES {
        let report = report("idle", algorithm, |_| ());
        assert_eq!((report.grace_periods, report.worker_turns, report.switches), (0, 0, 0));
        assert_eq!(report.time.overhead_ns(), 0);
    }
}

#[test]
fn an_updater_without_readers_executes_no_membarrier_but_with_liburcu() {
    let ours = report("lone-updater", "adaptive", |_| ());
    assert!(ours.grace_periods > 1_000 && ours.membarriers == 0, "{ours:?}");
    let theirs = report("lone-updater", "liburcu", |_| ());
    assert_eq!(theirs.membarriers, 2 * theirs.grace_periods);
}

#[test]
fn latency_is_the_engines() {
    let p50 =
        |algorithm| report("busy-readers", algorithm, |o| o.duration = SECOND / 2).waits_ns.p50;
    let (adaptive, poll, tick) = (p50("adaptive"), p50("poll"), p50("tick"));
    assert!(adaptive < 10 * MICROSECOND && adaptive <= poll * 3 / 2, "{adaptive}, {poll}");
    assert!((10 * MILLISECOND..35 * MILLISECOND).contains(&tick), "{tick}");
}

/// A driver sleeps while a reader blocks inside, and the wait lasts as long.
#[test]
fn a_reader_that_blocks_is_slept_for() {
    let stalled = report("stalled-reader", "adaptive", |o| o.duration = SECOND);
    assert!(stalled.driver_sleeps > 0, "{stalled:?}");
    assert!(stalled.waits_ns.max > 20 * MILLISECOND, "{stalled:?}");
    assert!(stalled.time.grace_periods_ns < SECOND / 10, "it spins: {stalled:?}");
}

#[test]
fn what_waits_stays_within_the_limit_but_with_liburcu() {
    let limit = Amount { objects: 4_000, bytes: 1 << 20 };
    for algorithm in ["adaptive", "poll", "tick", "token"] {
        let report = report("flood", algorithm, |options| options.limit = limit);
        let callbacks = report.callbacks;
        assert!(callbacks.waiting_peak <= limit.objects, "{algorithm}: {callbacks:?}");
        assert!(callbacks.waiting_bytes_peak <= limit.bytes, "{algorithm}: {callbacks:?}");
        assert!(callbacks.run > 10_000, "{algorithm}: {callbacks:?}");
        // Grace periods on the tick are too few for so small a limit.
        assert!(algorithm != "tick" || report.waits_at_limit_ns.count > 0, "{report:?}");
    }
    let theirs = report("flood", "liburcu", |options| options.limit = limit);
    assert!(theirs.callbacks.waiting_peak > 10 * limit.objects);
}

#[test]
fn closures_are_run_by_the_worker_and_all_of_them() {
    for algorithm in Algorithm::NAMES {
        let report = report("flood-calls", algorithm, |options| {
            let role =
                Role::Calls { work_ns: 1_000, bytes: 64, burst: 100, sleep_ns: 300 * MILLISECOND };
            options.threads = vec![Group { count: 1, role }];
            options.warm_up = 0;
            options.duration = 20 * SECOND;
        });
        let callbacks = report.callbacks;
        assert!(callbacks.queued - callbacks.run <= 100, "{algorithm}: {callbacks:?}");
        assert!(callbacks.run > 3_000, "{algorithm}: {callbacks:?}");
        if algorithm != "liburcu" {
            // They wait for company, a tick or two, and the timers' slack.
            assert!(callbacks.age_ns.max < 140 * MILLISECOND, "{algorithm}: {callbacks:?}");
            assert!(callbacks.age_ns.p50 > 90 * MILLISECOND, "{algorithm}: {callbacks:?}");
        }
    }
}

/// No CPU time is lost or made up.
#[test]
fn cpu_time_adds_up() {
    for algorithm in Algorithm::NAMES {
        let report = report("oversubscribed", algorithm, |o| o.duration = SECOND);
        let time = report.time;
        let spent = time.own_ns + time.overhead_ns() + time.callbacks_ns + time.switches_ns;
        let all = report.duration_ns * report.cpus as u64;
        assert!(spent.abs_diff(all) < all / 1_000, "{algorithm}: {spent} of {all}, {report:?}");
    }
}

#[test]
fn threads_that_come_and_go_are_waited_for() {
    let report = report("churn", "adaptive", |o| o.check = true);
    assert!(report.threads_started > 100 && report.grace_periods > 100, "{report:?}");
    assert_eq!(report.violations, 0);
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let change: [fn(&mut Options); 6] = [
        |o| o.cpus = 0,
        |o| o.cpus = 4_097,
        |o| o.hz = 10,
        |o| o.duration = 0,
        |o| o.threads.clear(),
        |o| o.threads[0].role = Role::Blocks { section_ns: 0, apart_ns: 1 },
    ];
    for change in change {
        let mut options = options("idle", "adaptive");
        change(&mut options);
        assert!(run(&options).is_err());
    }
}

/// The promise of the module: no second copy of a decision.
mod no_second_copy {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    fn source(folder: &str) -> BTreeMap<String, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let texts = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
        texts
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read_to_string(path).unwrap())
            })
            .collect()
    }

    /// Code without comments.
    fn code(text: &str) -> String {
        text.lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The value of a constant as it is written: `8_192` of `pub const BATCH: u64 = 8_192;`.
    fn constants(text: &str) -> impl Iterator<Item = &str> {
        text.lines().filter_map(|line| {
            let (left, right) = line.trim().split_once(" = ")?;
            let value = right.strip_suffix(';')?;
            let number = value.chars().all(|c| c.is_ascii_digit() || c == '_');
            (left.contains("const ") && number && value.len() > 2).then_some(value)
        })
    }

    #[test]
    fn each_file_imports_the_decisions_that_it_carries_out() {
        let ours = source("src/ours");
        let table: [(&str, &[&str]); 6] = [
            ("driving.rs", &["grace::driver::{Needed, Passing, TICK_NS, fence_needed}", "Machine"]),
            ("callbacks.rs", &["Segments", "batch::is_full", "batch::in_one_go", "Wants::of"]),
            ("limit.rs", &["limit::admit", "limit::chunk", "limit_action"]),
            ("worker.rs", &["advances, closes, first_turn, next_turn, stays", "budget.rest_ns"]),
            ("readers.rs", &["word::entered", "word::QUIESCENT"]),
            ("handover.rs", &["patience.left_ns", "patience.slept", "passers.has_run_out"]),
        ];
        for (file, needles) in table {
            for needle in needles {
                assert!(code(&ours[file]).contains(needle), "{file} without {needle}");
            }
        }
    }

    /// And nothing of the other kind: no engine over CPUs, no policy of its own.
    #[test]
    fn no_file_imports_another_engine_or_makes_a_policy() {
        for (file, text) in source("src/ours") {
            let code = code(&text);
            if file == "tests.rs" {
                continue;
            }
            for needle in ["grace::engine", "impl Policy", "looks_max", "fn look_again", "kernel::"]
            {
                assert!(!code.contains(needle), "{file} has {needle}");
            }
        }
    }

    #[test]
    fn no_number_of_the_librarys_decisions_is_repeated() {
        let grace = ["batch.rs", "driver.rs", "handover.rs", "limit.rs", "worker.rs"];
        let sources = source("../grace/src");
        let values: Vec<&str> = grace.iter().flat_map(|file| constants(&sources[*file])).collect();
        assert!(values.contains(&"8_192") && values.contains(&"10_000_000"), "{values:?}");
        for (file, text) in source("src/ours") {
            // What is liburcu's is not the library's; workloads and costs decide nothing.
            if ["tests.rs", "liburcu.rs", "workloads.rs", "costs.rs"].contains(&file.as_str()) {
                continue;
            }
            let code = code(&text);
            for value in &values {
                let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
                assert!(code.split(word).all(|one| one != *value), "{file} repeats {value}");
            }
        }
    }
}

/// A driver that is preempted is replaced by one who waits.
#[test]
fn one_who_waits_takes_the_place_of_a_driver_without_a_cpu() {
    for algorithm in ["adaptive", "poll"] {
        let report = report("oversubscribed", algorithm, |options| {
            options.duration = SECOND;
            options.check = true;
        });
        assert!(report.hand_overs > 0, "{algorithm}");
        assert_eq!(report.violations, 0, "{algorithm}");
    }
    let report = report("busy-readers", "adaptive", |_| ());
    assert_eq!(report.hand_overs, 0, "a driver that runs keeps its place");
}

/// What was measured of a thread that sleeps is how late one is in the model.
#[test]
fn a_lone_sleeper_is_as_late_as_was_measured() {
    let turn_ns = |kernel: MeasuredKernel| {
        let role =
            Role::Waits { work_ns: MILLISECOND, expedited_ppm: 0, sleeps: true, reads: false };
        let algorithm = Algorithm::named("adaptive").unwrap();
        let mut options = Options::new(algorithm, vec![Group { count: 1, role }]);
        let measured = Measured { kernel: Some(kernel), ..Measured::EXAMPLE };
        options.costs = Costs::measured(&measured).unwrap();
        options.duration = 20 * SECOND;
        options.duration / run(&options).unwrap().updates
    };
    let measured = Measured::EXAMPLE.kernel.unwrap();
    let never_late = MeasuredKernel {
        system_call: 0,
        switch: 0,
        wake_up_latency: 0,
        sleep_overrun: 0,
        ..measured
    };
    let late_ns = turn_ns(measured) - turn_ns(never_late);
    // The sleeps are drawn: one more or less of them moves the mean.
    assert!(late_ns.abs_diff(measured.sleep_overrun / 1_000) < 3_000, "{late_ns} ns");
}

/// One reader, and so many threads to a CPU that compute: a callback waits for the reader and for
/// the worker, some rounds of the scheduler each, under whatever engine; not for seconds.
#[test]
fn callbacks_on_an_overloaded_machine_wait_for_some_rounds_of_the_scheduler() {
    const SLICE: Time = 4 * MILLISECOND; // a tick of the scheduler
    const AN_HOUR: Time = 3_600 * SECOND;
    let computes = Role::Waits { work_ns: AN_HOUR, expedited_ppm: 0, sleeps: false, reads: false };
    let calls = Role::Calls { work_ns: 1_000, bytes: 64, burst: 1, sleep_ns: 2 * MILLISECOND };
    let reads = Role::Qsbr { turn_ns: 20_000, run_ns: 0, sleep_ns: 0 };
    for (engine, threads) in ["token", "tick", "adaptive"].into_iter().zip([20, 44, 44]) {
        let algorithm = Algorithm::named(engine).unwrap();
        let groups = [(1, reads), (1, calls), (threads, computes)];
        let groups = groups.map(|(count, role)| Group { count, role });
        let mut options = Options::new(algorithm, groups.to_vec());
        (options.cpus, options.lazy_ns, options.duration) = (2, 0, 2 * SECOND);
        let round = (Time::from(threads) / 2 + 2) * SLICE;
        for seed in 1..=5 {
            options.seed = seed;
            let age = run(&options).unwrap().callbacks.age_ns;
            assert!(age.count >= 100 && age.max <= 4 * round, "{engine}, {threads}: {age:?}");
        }
    }
}
