//! A simulation, run by this machine: what [`simulate::ours::run`] models, done with the library by
//! the threads of [`bench::threads`], whose loops are optimised as this command's are not.

use std::io;
use std::time::Duration;

use bench::threads::{self, Life, Seen};
use quiescence::{
    Domain,
    report::Statistics,
    tuning::{Engine, Tuning},
};
use simulate::histogram::Summary;
use simulate::ours::report::{Callbacks, Report};
use simulate::ours::{Group, Options, Role};

/// Runs the threads in a domain of their own with this engine. Its report has only what the
/// figures of `rcu simulate --validate` are made of.
///
/// # Errors
/// If a thread cannot be started.
///
/// # Panics
/// If some queue closures ([`Role::Calls`]).
pub(super) fn run(engine: Engine, options: &Options) -> io::Result<Report> {
    let mut tuning = Tuning::default();
    tuning.objects_max = options.limit.objects;
    tuning.bytes_max = options.limit.bytes;
    tuning.lazy = Duration::from_nanos(options.lazy_ns);
    tuning.run_min = u32::try_from(options.run_min).unwrap_or(u32::MAX);
    tuning.run_time = Duration::from_nanos(options.run_ns);
    // A reader that stalls is part of a workload.
    (tuning.stall_after, tuning.stall_after_expedited) = (None, None);
    let domain = Domain::builder().engine(engine).tuning(tuning).build();
    let of_group = |&Group { count, role }: &Group| (0..count).map(move |_| life(role));
    let lives: Vec<Life> = options.threads.iter().flat_map(of_group).collect();
    let spans = [options.warm_up, options.duration].map(Duration::from_nanos);
    let Seen { duration, reads, updates, waits_ns, statistics: [before, after] } =
        threads::run(&domain, options.seed, spans, &lives)?;
    // What waits is no burden of the next run.
    domain.barrier();
    let since = |count: fn(&Statistics) -> u64| count(&after) - count(&before);
    let [p50, p99] = [0.5, 0.99].map(|at| waits_ns.value_at_quantile(at));
    Ok(Report {
        duration_ns: duration.as_nanos() as u64,
        updates,
        reads,
        waits_ns: Summary { count: waits_ns.len(), p50, p99, ..Summary::default() },
        grace_periods: since(|of| of.grace_periods),
        membarriers: since(|of| of.heavy_fences),
        callbacks: Callbacks {
            queued: since(|of| of.callbacks_queued),
            run: since(|of| of.callbacks_run),
            ..Callbacks::default()
        },
        ..Report::default()
    })
}

/// What a thread of this role does.
fn life(role: Role) -> Life {
    match role {
        Role::Idle => Box::new(|thread| thread.idle()),
        Role::Reads { section_ns, gap_ns, run_ns, sleep_ns } => {
            Box::new(move |thread| thread.read([section_ns, gap_ns], run_ns, sleep_ns))
        }
        Role::Qsbr { turn_ns, run_ns, sleep_ns } => {
            Box::new(move |thread| thread.turn(turn_ns, run_ns, sleep_ns))
        }
        Role::Blocks { section_ns, apart_ns } => {
            Box::new(move |thread| thread.block(section_ns, apart_ns))
        }
        Role::Comes { section_ns, gap_ns, life_ns, apart_ns } => {
            Box::new(move |thread| thread.come_and_go([section_ns, gap_ns], life_ns, apart_ns))
        }
        Role::Waits { work_ns, expedited_ppm, sleeps, reads } => {
            Box::new(move |thread| thread.wait(work_ns, expedited_ppm, sleeps, reads))
        }
        Role::Retires { work_ns, bytes, burst, sleep_ns } => {
            Box::new(move |thread| thread.retire(work_ns, bytes, burst, sleep_ns))
        }
        Role::Calls { .. } => {
            panic!("closures are not run for real: their size is a matter of the program's text")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::ours::{Algorithm, workloads};

    /// Each role, until it was seen to do what it is there for, however busy the machine is.
    #[test]
    fn threads_of_all_roles_do_what_they_are_there_for() {
        let [section_ns, gap_ns, run_ns, sleep_ns] = [300, 700, 10_000, 1_000];
        let reads = Role::Reads { section_ns, gap_ns, run_ns, sleep_ns };
        let retires = Role::Retires { work_ns: 500, bytes: 64, burst: 1, sleep_ns };
        let comes = Role::Comes { section_ns, gap_ns, life_ns: run_ns, apart_ns: sleep_ns };
        let waits = |expedited_ppm, sleeps| Role::Waits {
            work_ns: 900,
            expedited_ppm,
            sleeps,
            reads: !sleeps,
        };
        // Reads, updates, waits without hurry, retired.
        let roles = [
            (Role::Idle, [false; 4]),
            (Role::Blocks { section_ns, apart_ns: gap_ns }, [false; 4]),
            (reads, [true, false, false, false]),
            (Role::Qsbr { turn_ns: 2_000, run_ns, sleep_ns }, [true, false, false, false]),
            (comes, [true, false, false, false]),
            (waits(0, true), [false, true, true, false]),
            (waits(1_000_000, false), [false, true, false, false]),
            (retires, [false, true, false, true]),
        ];
        for (role, expected) in roles {
            let domain = Domain::new();
            let spans = [Duration::ZERO, Duration::from_millis(1)];
            let seen = || {
                let seen = threads::run(&domain, 1, spans, &[life(role)]).expect("it starts");
                domain.barrier();
                let retired = domain.statistics().callbacks_run;
                [seen.reads, seen.updates, seen.waits_ns.len(), retired].map(|count| count > 0)
            };
            assert!((0..10_000).any(|_| seen() == expected), "{role:?}");
        }
    }

    #[test]
    fn what_was_seen_is_counted_as_the_model_counts() {
        let waits = Role::Waits { work_ns: 900, expedited_ppm: 0, sleeps: true, reads: false };
        let retires = Role::Retires { work_ns: 500, bytes: 64, burst: 1, sleep_ns: 1_000 };
        let threads = [waits, retires].map(|role| Group { count: 1, role }).to_vec();
        let algorithm = Algorithm::named("adaptive").expect("it is the default");
        let (warm_up, duration) = (0, 1_000_000);
        let options = Options { warm_up, duration, ..Options::new(algorithm, threads) };
        let seen = || {
            let of = run(Engine::Adaptive, &options).expect("it starts");
            assert!(of.duration_ns >= duration && of.reads == 0, "{of:?}");
            assert!(of.waits_ns.p50 <= of.waits_ns.p99, "{of:?}");
            [of.updates, of.grace_periods, of.waits_ns.count, of.callbacks.queued]
        };
        assert!((0..10_000).any(|_| seen().iter().all(|count| *count > 0)));
    }

    #[test]
    fn no_workload_of_this_machine_has_closures_and_all_can_be_simulated() {
        let algorithm = Algorithm::named("adaptive").expect("it is the default");
        for cpus in [1, 2, 64] {
            for workload in workloads::of_machine(cpus) {
                let options = Options { cpus, ..Options::new(algorithm, workload.threads) };
                assert_eq!(options.check(), Ok(()), "{}", workload.name);
                let has_closures = |group: &Group| matches!(group.role, Role::Calls { .. });
                assert!(!options.threads.iter().any(has_closures), "{}", workload.name);
            }
        }
    }
}
