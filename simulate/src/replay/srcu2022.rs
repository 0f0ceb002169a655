//! The regression of 2022: 8,000 expedited SRCU grace periods in 5.66 seconds under Linux 5.18, in
//! 128 under 5.19-rc1, and how the fixes did.
//!
//! Source: the threads "Commit 282d8998e997 (srcu: Prevent expedited GPs and blocking readers from
//! consuming CPU) cause qemu boot slow" and "srcu: Reduce blocking aggressiveness of expedited
//! grace periods further", linux-kernel, June 2022. A guest's firmware makes about 10,000
//! memory-slot updates, one expedited grace period each. Two people measured: Gao the loops and
//! boots with many variants, Kolothum four boots on another machine. Both: arm64, 250 ticks a
//! second, preemptible.
//!
//! **What is fitted**: the caller's work between two calls, on the loop of 5.18; the price of a
//! look at an index, on the boot with at most 100 looks; how many calls a boot makes and what else
//! it does, on Gao's boots with 5.18 and 5.19-rc1. All else is predicted, and hardly changes with
//! the seed.
//!
//! **What does not fit**: of the four boots with few looks and long pauses one; the others fit
//! narrowly. In truth they did better. Something that is not modelled spared them, such as another
//! CPU that pulls the preempted caller over.
//!
//! **"fix1" and "fix2"** of Kolothum's table are not the first diff, of which Gao says that it did
//! not help. The mail says what happens with the block kept and its limit set to 1,000,000, and
//! says that this and the logic without the block take the same time "in both cases": so they are
//! those two, in whatever order. In the model they behave alike.

use grace::srcu::{AnyDelay, CallbackDelay, Published};

use super::{Role, Row};
use crate::srcu::{Options, run};

const SOURCE: &str = "lkml2022.srcu";

/// Grace periods of a boot. Fitted: 161.4 - 8.4 seconds, at 16 - 0.7 ms each.
const CALLS_OF_A_BOOT: u32 = 10_000;
/// What a boot does besides. Fitted: what is left of 8.4 seconds.
const REST_OF_A_BOOT_S: f64 = 1.33;

/// What spares the callbacks a jiffy, as Upadhyay proposed.
const CALLBACKS_AT_ONCE: Published =
    Published { callbacks: CallbackDelay::UnlessExpedited, ..Published::FIRST_DIFF };

/// Its limit on looks without a wait set to `looks`.
const fn limited(looks: u32) -> Published {
    Published { no_delay_per_phase_max: Some(looks), ..CALLBACKS_AT_ONCE }
}

/// The same, counted once a run, with a longer pause before its last check.
const fn long_pause(looks: u32, last_retry_us: u32) -> Published {
    Published { asks_after_each_check: false, last_retry_us, ..limited(looks) }
}

/// The seconds that a loop of so many calls takes.
fn loop_s(delay: Published, calls: u32) -> f64 {
    let options = Options { calls, ..Options::reports_of_2022(AnyDelay::Published(delay)) };
    let report = run(&options).expect("these options are possible");
    report.elapsed_ns as f64 / 1e9
}

fn boot_s(delay: Published) -> f64 {
    REST_OF_A_BOOT_S + loop_s(delay, CALLS_OF_A_BOOT)
}

/// All rows. Cost: some seconds.
pub fn rows() -> Vec<Row> {
    let mut rows = loops();
    rows.extend(boots());
    rows.extend(experiments());
    rows
}

/// The four loops of `figures.toml`, and where there was no regression.
fn loops() -> Vec<Row> {
    let sleeps = "the worker preempts the caller in its own section, finds it there, and sleeps: \
                  two ticks; callbacks are delayed as well: two more";
    let table: [(&str, Published, f64, Role, &str); 4] = [
        (
            "5.18",
            Published::V5_18,
            5.66,
            Role::Fitted,
            "the caller's own work, and as much of the worker's spinning as is fair",
        ),
        ("5.19-rc1", Published::V5_19_RC1, 128.35, Role::Predicted, sleeps),
        ("first-diff", Published::FIRST_DIFF, 128.10, Role::Predicted, sleeps),
        (
            "block-removed",
            Published::BLOCK_REMOVED,
            9.53,
            Role::Predicted,
            "the worker spins for a jiffy or two and pays for it in virtual runtime, so it preempts \
             the caller in few calls only; each of these sleeps and delays its callbacks",
        ),
    ];
    let row = |(variant, delay, published, role, mechanism)| {
        let numbers = (published, loop_s(delay, 8_000), "s");
        Row::number(SOURCE, format!("{variant} seconds"), numbers, role, mechanism)
    };
    let mut rows: Vec<Row> = table.into_iter().map(row).collect();
    let not_preemptible = run(&Options {
        preempt: false,
        ..Options::reports_of_2022(AnyDelay::Published(Published::V5_19_RC1))
    })
    .expect("these options are possible");
    let ms = not_preemptible.latency_p99_ns as f64 / 1e6;
    rows.push(Row::statement(
        SOURCE,
        "5.19-rc1 elsewhere",
        "a loop of 10,000 calls on another machine shows none of it",
        (format!("not preemptible: p99 {ms:.3} ms a call"), ms < 1.0),
        "where the worker cannot preempt the caller in its section, it finds no reader; which \
         preemption that machine had is not published",
    ));
    rows
}

/// The guest boots of `figures.toml`, measured on a machine that no parameter was fitted on.
fn boots() -> Vec<Row> {
    let fix = Published { no_delay_per_phase_max: Some(1_000_000), ..Published::FIRST_DIFF };
    let table: [(&str, Published, f64); 4] = [
        ("5.18", Published::V5_18, 8.0),
        ("5.19-rc1", Published::V5_19_RC1, 163.0),
        ("fix1", Published::BLOCK_REMOVED, 19.0),
        ("fix2", fix, 19.0),
    ];
    let row = |(variant, delay, published)| {
        let mechanism = match variant {
            "fix1" => {
                "taken to be the first diff without its block (fix1 and fix2 may be the \
                       other way round); 10,000 calls and 1.33 s of other work, from another machine"
            }
            "fix2" => "taken to be the first diff with its limit at 1,000,000; as fix1",
            _ => "10,000 calls and 1.33 s of other work, both fitted on another machine's boots",
        };
        let numbers = (published, boot_s(delay), "s");
        Row::number(SOURCE, format!("guest_boot_s {variant}"), numbers, Role::Predicted, mechanism)
    };
    table.into_iter().map(row).collect()
}

/// The boots of the experiments in that thread: not in `figures.toml`, and a harder test.
fn experiments() -> Vec<Row> {
    let patch = Published { runs_per_jiffy_max: Some(100), ..Published::final_at(250) };
    let callbacks = "callbacks at once: two ticks less";
    let limit = "spins until its looks are used up, then sleeps two ticks; what it spins it pays for \
                 in virtual runtime, so the longer it spins the fewer calls it preempts";
    let pause = "as many looks with a longer pause in each run: spins longer before it sleeps";
    let free = "spins until the grace period is older than a jiffy";
    let table: [(&str, Published, f64, Role, &str); 19] = [
        ("5.18", Published::V5_18, 8.402, Role::Fitted, "the rest of a boot is fitted on it"),
        ("5.19-rc1", Published::V5_19_RC1, 161.433, Role::Fitted, "the number of calls is"),
        ("first diff", Published::FIRST_DIFF, 163.404, Role::Predicted, "as 5.19-rc1"),
        ("block removed", Published::BLOCK_REMOVED, 15.262, Role::Predicted, free),
        ("first diff, callbacks at once", CALLBACKS_AT_ONCE, 83.936, Role::Predicted, callbacks),
        (
            "block removed, callbacks at once",
            Published { no_delay_per_phase_max: None, ..CALLBACKS_AT_ONCE },
            11.418,
            Role::Predicted,
            callbacks,
        ),
        ("limit 100", limited(100), 30.053, Role::Fitted, "a look's price is fitted on it"),
        ("limit 150", limited(150), 25.151, Role::Predicted, limit),
        ("limit 200", limited(200), 20.704, Role::Predicted, limit),
        ("limit 250", limited(250), 15.748, Role::Predicted, limit),
        ("limit 500", limited(500), 11.401, Role::Predicted, limit),
        ("limit 1000", limited(1_000), 11.443, Role::Predicted, free),
        ("limit 1000000", limited(1_000_000), 11.154, Role::Predicted, free),
        ("limit 100, counted once a run", long_pause(100, 5), 19.263, Role::Predicted, limit),
        ("limit 100, last pause 100 us", long_pause(100, 100), 9.347, Role::Predicted, pause),
        ("limit 20, last pause 200 us", long_pause(20, 200), 9.741, Role::Predicted, pause),
        ("limit 20, last pause 400 us", long_pause(20, 400), 10.120, Role::Predicted, pause),
        ("limit 20, last pause 800 us", long_pause(20, 800), 9.851, Role::Predicted, pause),
        ("the patch", patch, 11.498, Role::Predicted, "spins a jiffy or two; callbacks at once"),
    ];
    let row = |(variant, delay, published, role, mechanism)| {
        let numbers = (published, boot_s(delay), "s");
        Row::number(SOURCE, format!("boot: {variant}"), numbers, role, mechanism)
    };
    table.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Fit;

    #[test]
    fn the_loops_and_the_boots_of_figures_toml_all_fit() {
        for row in loops().into_iter().chain(boots()) {
            assert_eq!(row.fit(), Fit::Fits, "{row:?}");
        }
    }

    #[test]
    fn most_experiments_fit_too_and_those_that_do_not_are_known() {
        let rows = experiments();
        let misses = rows.iter().filter(|row| row.fit() != Fit::Fits);
        let misses: Vec<&str> = misses.map(|row| row.figure.as_str()).collect();
        assert_eq!(misses, ["boot: limit 20, last pause 200 us"]);
    }

    #[test]
    fn the_seed_decides_nothing() {
        let seconds = |seed| {
            let delay = AnyDelay::Published(Published::BLOCK_REMOVED);
            let options = Options { seed, ..Options::reports_of_2022(delay) };
            run(&options).expect("these options are possible").elapsed_ns
        };
        let first = seconds(1);
        for seed in 2..6 {
            assert!(seconds(seed).abs_diff(first) < first / 20, "{seed}");
        }
    }
}
