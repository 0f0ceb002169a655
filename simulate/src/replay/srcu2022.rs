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
//! look at an index, on the four boots with at most 100 to 250 looks, by least squares of the
//! logarithms; how many calls a boot makes and what else it does, on Gao's boots with 5.18 and
//! 5.19-rc1. All else is predicted ([`FITTED`]). Another seed changes the boots whose callbacks are
//! delayed now and then by up to an eighth, the others by up to 4 %.
//!
//! **Why spinning is fast**: at a tick, an idle CPU pulls the preempted caller over, where it ends
//! its section. So a worker that spins past a tick is fast, and one that sleeps before it is slow.
//! Without the pull (`balances: false`), and with a look's price that fits best then (8 us), the
//! boots with long pauses come out 26 to 86 % too slow, and raising the limit on runs in a jiffy
//! makes a boot slower, where it made it faster on both machines that it was tried on. The typical
//! error of a row is 20 % then, and 10 % with the pull.
//!
//! **What is still off**: of the four boots with long pauses three took 0.9 to 1.5 s more than in
//! the model. Those with 20 looks have 0.8 s more user time than all other boots; what had changed
//! is not said. Linux 5.18 booted in 8.402 s and the change reverted in 8.173 s, so a boot is known
//! to 3 %. Kolothum's boots with fixes took longer than Gao's, and his with 5.18 did not.
//!
//! **"fix1" and "fix2"** of Kolothum's table are not the first diff, of which Gao says that it did
//! not help. The mail says what happens with the block kept and its limit set to 1,000,000, and
//! says that this and the logic without the block take the same time "in both cases": so they are
//! those two, in whatever order. In the model they behave alike.

use grace::srcu::{AnyDelay, CallbackDelay, Published};

use super::{Fitted, Role, Row};
use crate::srcu::{Options, Report, run};

const SOURCE: &str = "lkml2022.srcu";

/// What was fitted, and on which figure.
pub const FITTED: &[Fitted] = &[
    Fitted {
        source: SOURCE,
        parameter: "345 us of the caller's work between two calls",
        on: "5.18 seconds",
    },
    Fitted {
        source: SOURCE,
        parameter: "5 us for a look at an index, on four boots",
        on: "boot: limit 100",
    },
    Fitted { source: SOURCE, parameter: "10,000 calls in a boot", on: "boot: 5.19-rc1" },
    Fitted { source: SOURCE, parameter: "1.33 s of other work in a boot", on: "boot: 5.18" },
];

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

/// The released delay function, with another limit on runs in a jiffy.
fn throttled(runs: u32) -> Published {
    Published { runs_per_jiffy_max: Some(runs), ..Published::final_at(250) }
}

fn options(delay: Published, calls: u32) -> Options {
    Options { calls, ..Options::reports_of_2022(AnyDelay::Published(delay)) }
}

fn report(options: &Options) -> Report {
    run(options).expect("these options are possible")
}

/// The seconds that a loop of so many calls takes.
fn loop_s(delay: Published, calls: u32) -> f64 {
    report(&options(delay, calls)).elapsed_ns as f64 / 1e9
}

fn boot_s(delay: Published) -> f64 {
    REST_OF_A_BOOT_S + loop_s(delay, CALLS_OF_A_BOOT)
}

/// The caller's own work in a loop of so many calls: given, whatever the worker does.
fn work_s(calls: u32) -> f64 {
    let work_ns = options(Published::V5_18, calls).caller_work_ns;
    f64::from(calls) * work_ns as f64 / 1e9
}

/// A row of a loop: what its calls take beyond the caller's own work is free.
fn loop_row(figure: String, published: f64, delay: Published, role: Role, why: &str) -> Row {
    let numbers = (published, loop_s(delay, 8_000), "s");
    let row = Row::number(SOURCE, figure, numbers, role, why);
    if role == Role::Predicted { row.beyond(work_s(8_000), 0.0) } else { row }
}

/// A row of a boot, of which all that is not the calls is given as well.
fn boot_row(figure: String, published: f64, delay: Published, role: Role, why: &str) -> Row {
    let row = Row::number(SOURCE, figure, (published, boot_s(delay), "s"), role, why);
    let given = REST_OF_A_BOOT_S + work_s(CALLS_OF_A_BOOT);
    if role == Role::Predicted { row.beyond(given, 0.0) } else { row }
}

/// All rows. Cost: some seconds.
pub fn rows() -> Vec<Row> {
    let mut rows = loops();
    rows.extend(boots());
    rows.extend(experiments());
    rows.push(cpu_time());
    rows.push(throttle());
    rows.push(Row::not_modelled(
        SOURCE,
        "boot: limit 100, while a kernel is built",
        (62.763, "s"),
        "what is built takes the caller's CPU, too; that no CPU is idle then, so that none pulls, would \
         not do: in the model 100 looks end before a tick comes",
    ));
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
            "spins past a tick, where an idle CPU pulls the caller; if its runs of this jiffy are used \
             up before, or the grace period is a jiffy old, it sleeps and delays its callbacks",
        ),
    ];
    let row = |(variant, delay, published, role, mechanism)| {
        loop_row(format!("{variant} seconds"), published, delay, role, mechanism)
    };
    let mut rows: Vec<Row> = table.into_iter().map(row).collect();
    let not_preemptible =
        report(&Options { preempt: false, ..options(Published::V5_19_RC1, 8_000) });
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
        let figure = format!("guest_boot_s {variant}");
        boot_row(figure, published, delay, Role::Predicted, mechanism)
    };
    table.into_iter().map(row).collect()
}

/// The boots of the experiments in that thread: not in `figures.toml`, and a harder test.
fn experiments() -> Vec<Row> {
    use Role::{Fitted, Predicted};

    let unlimited = Published { no_delay_per_phase_max: Some(1_000_000), ..Published::FIRST_DIFF };
    let callbacks = "callbacks at once: two ticks less";
    let limit = "spins until its looks are used up, then sleeps two ticks, unless a tick comes \
                 first and an idle CPU pulls the caller; what it spins it pays for in virtual \
                 runtime, so the longer it spins the fewer calls it preempts";
    let look = "as that of 100 looks counted once a run; a look's price is fitted on these four";
    let pause = "as many looks with a longer pause in each run: spins past a tick";
    let free = "spins past a tick, unless its runs of this jiffy are used up before";
    let table: [(&str, Published, f64, Role, &str); 22] = [
        ("5.18", Published::V5_18, 8.402, Fitted, "the rest of a boot is fitted on it"),
        ("5.19-rc1", Published::V5_19_RC1, 161.433, Fitted, "the number of calls is"),
        ("first diff", Published::FIRST_DIFF, 163.404, Predicted, "as 5.19-rc1"),
        ("first diff, limit 1000000", unlimited, 15.215, Predicted, free),
        ("block removed", Published::BLOCK_REMOVED, 15.262, Predicted, free),
        ("first diff, callbacks at once", CALLBACKS_AT_ONCE, 83.936, Predicted, callbacks),
        (
            "block removed, callbacks at once",
            Published { no_delay_per_phase_max: None, ..CALLBACKS_AT_ONCE },
            11.418,
            Predicted,
            free,
        ),
        ("limit 100", limited(100), 30.053, Fitted, look),
        ("limit 150", limited(150), 25.151, Fitted, look),
        ("limit 200", limited(200), 20.704, Fitted, look),
        ("limit 250", limited(250), 15.748, Fitted, look),
        ("limit 500", limited(500), 11.401, Predicted, free),
        ("limit 1000", limited(1_000), 11.443, Predicted, free),
        ("limit 10000", limited(10_000), 11.258, Predicted, free),
        ("limit 1000000", limited(1_000_000), 11.154, Predicted, free),
        ("limit 100, counted once a run", long_pause(100, 5), 19.263, Predicted, limit),
        ("limit 100, last pause 100 us", long_pause(100, 100), 9.347, Predicted, pause),
        ("limit 20, last pause 200 us", long_pause(20, 200), 9.741, Predicted, pause),
        ("limit 20, last pause 400 us", long_pause(20, 400), 10.120, Predicted, pause),
        ("limit 20, last pause 800 us", long_pause(20, 800), 9.851, Predicted, pause),
        ("the patch, 100 runs in a jiffy", throttled(100), 11.498, Predicted, free),
        ("the patch as released", Published::final_at(250), 9.7, Predicted, free),
    ];
    let row = |(variant, delay, published, role, mechanism)| {
        boot_row(format!("boot: {variant}"), published, delay, role, mechanism)
    };
    table.into_iter().map(row).collect()
}

/// What the process took of a CPU in a boot with 5.18, by `time`: the half of it that was not the
/// worker.
fn cpu_time() -> Row {
    Row::number(
        SOURCE,
        "boot: 5.18, user and system time",
        (3.015 + 1.102, REST_OF_A_BOOT_S + work_s(CALLS_OF_A_BOOT), "s"),
        Role::Predicted,
        "the worker's spinning is not the process's: fair shares say how much of 8.4 s it was. If \
         the rest of a boot is not all work, the process takes less",
    )
}

/// That a higher limit on runs in a jiffy makes a boot faster.
fn throttle() -> Row {
    let (low, high) = (boot_s(throttled(100)), boot_s(throttled(1_000)));
    Row::statement(
        SOURCE,
        "100 runs in a jiffy, or 1,000",
        "more are faster: 11.5 and 9.7 s; on a third machine 67 and 43 s",
        (format!("{low:.1} and {high:.1} s"), high < low),
        "100 runs end before the tick in which an idle CPU pulls the caller",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Fit, assert_fitted};

    #[test]
    fn every_row_fits() {
        let rows = rows();
        assert_fitted(FITTED, &rows);
        for row in &rows {
            let expected = if row.role == Role::NotModelled { Fit::NotCompared } else { Fit::Fits };
            assert_eq!(row.fit(), expected, "{row:?}");
        }
        // And none does so by being given.
        let predicted = rows.iter().filter(|row| row.role == Role::Predicted);
        for row in predicted {
            assert!(row.free_share() > Some(Row::DIFFERENCE_BELOW), "{row:?}");
        }
    }

    #[test]
    fn without_the_pull_boots_miss() {
        let seconds = |delay| {
            let alone = Options { balances: false, ..options(delay, CALLS_OF_A_BOOT) };
            REST_OF_A_BOOT_S + report(&alone).elapsed_ns as f64 / 1e9
        };
        assert!(seconds(throttled(1_000)) > 1.25 * 9.7);
        assert!(seconds(long_pause(20, 200)) > 1.5 * 9.741);
    }

    #[test]
    fn the_seed_decides_little() {
        let seconds = |delay, seed| report(&Options { seed, ..options(delay, 8_000) }).elapsed_ns;
        for (delay, part) in [(Published::BLOCK_REMOVED, 8), (throttled(1_000), 25)] {
            let first = seconds(delay, 1);
            for seed in 2..5 {
                assert!(seconds(delay, seed).abs_diff(first) < first / part, "{delay:?} {seed}");
            }
        }
    }
}
