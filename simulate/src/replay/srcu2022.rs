//! The regression of 2022: 8,000 expedited SRCU grace periods in 5.66 seconds under Linux 5.18, in
//! 128 under 5.19-rc1, and how the fixes did.
//!
//! Source: the threads "Commit 282d8998e997 (srcu: Prevent expedited GPs and blocking readers from
//! consuming CPU) cause qemu boot slow" and "srcu: Reduce blocking aggressiveness of expedited
//! grace periods further", linux-kernel, June 2022. A guest's firmware makes about 10,000
//! memory-slot updates, one expedited grace period each. Two people measured: Gao the loops and
//! boots with many variants, Kolothum four boots on another machine. Both used arm64, 250 ticks a
//! second, and a preemptible kernel. Zyngier set the limit on runs in a jiffy on a third machine.
//!
//! **What is fitted**: the caller's work between two calls, on the loop of 5.18; the cost of a look
//! at an index, on the four boots with at most 100 to 250 looks, by least squares of the
//! logarithms; the number of calls in a boot and its other work, on Gao's boots with 5.18 and
//! 5.19-rc1. Everything else is predicted ([`FITTED`]). Another seed changes boots whose callbacks
//! are sometimes delayed by up to an eighth, the others by up to 4 %.
//!
//! **Why spinning is fast**: at a tick, an idle CPU pulls the preempted caller over, where it ends
//! its section. So a worker that spins past a tick is fast, and one that sleeps before it is slow.
//! Without the pull (`balances: false`), and with the cost of a look that then fits best (8 us),
//! the boots with long pauses are 26 to 86 % too slow, and a higher limit on runs in a jiffy makes
//! a boot slower, whereas it was faster on both machines where that was tried. The typical error of
//! a row is then 20 %, and 10 % with the pull.
//!
//! **What is still off**: of the four boots with long pauses, three took 0.9 to 1.5 s more than in
//! the model. Those with 20 looks have 0.8 s more user time than all other boots; the mail does not
//! say what had changed. Linux 5.18 booted in 8.402 s, and with the change reverted in 8.173 s, so
//! a boot is known to within 3 %. Kolothum's boots with fixes took longer than Gao's, but his boot
//! with 5.18 did not.
//!
//! **What misses** is a test on a fourth machine, of 10,000 calls with nothing between them: 17 us
//! per call before its fix, and little more than 1 us with it. Looks, runs and wake-ups, as fitted
//! or estimated here, take 23 us together, so the model reproduces neither of them, nor their
//! ratio.
//!
//! **"fix1" and "fix2"** of Kolothum's table are not the first diff, which according to Gao did not
//! help. The mail reports the block kept with its limit set to 1,000,000, and says that this and
//! the logic without the block take the same time "in both cases". So the two fixes are these, in
//! whatever order. In the model they behave alike.

use grace::srcu::{AnyDelay, CallbackDelay, Published};

use super::published::Publication;
use super::{Fitted, Row, Variation, fitted};
use crate::srcu::{Blocked, Options, Report, run};

const SOURCE: &str = "lkml2022.srcu";

/// What was fitted, and on which figure.
pub const FITTED: &[Fitted] = &[
    fitted(SOURCE, "345 us of the caller's work between two calls", "5.18 seconds"),
    fitted(SOURCE, "5 us for a look at an index, on four boots", "boot: limit 100"),
    fitted(SOURCE, "10,000 calls in a boot", "boot: 5.19-rc1"),
    fitted(SOURCE, "1.33 s of other work in a boot", "boot: 5.18"),
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

/// What is changed of [`Options::reports_of_2022`].
#[derive(Clone, Copy)]
struct Model(fn(&mut Options));

const MODEL: Model = Model(|_| ());

/// What is estimated, and what the reports name.
pub fn variations() -> Vec<Variation> {
    let of = |what, change| Variation::of(what, move || Model(change).rows());
    vec![
        of("half the caller's section", |options| options.enqueue_ns /= 2),
        of("twice the caller's section", |options| options.enqueue_ns *= 2),
        of("half the cost of a run, without its looks", |options| options.run_ns /= 2),
        of("twice the cost of a run", |options| options.run_ns *= 2),
        of("half the time of a wake-up", |options| options.wake_ns /= 2),
        of("twice the time of a wake-up", |options| options.wake_ns *= 2),
        of("half the time of callbacks", |options| options.callbacks_ns /= 2),
        of("twice the time of callbacks", |options| options.callbacks_ns *= 2),
        of("without: preemption of the caller in its section", |options| options.preempt = false)
            .missing("5.19-rc1 seconds"),
        of("without: the pull by idle CPUs", |options| options.balances = false)
            .missing("boot: limit 20, last pause 200 us"),
        of("without: the delay of expedited callbacks", |options| {
            if let AnyDelay::Published(delay) = &mut options.delay {
                delay.callbacks = CallbackDelay::UnlessExpedited;
            }
        })
        .missing("5.19-rc1 seconds"),
        of("without: waiting at all, as in 5.18", |options| {
            options.delay = AnyDelay::Published(Published::V5_18);
        })
        .missing("a reader blocks for 1 s"),
    ]
}

fn report(options: &Options) -> Report {
    run(options).expect("these options are possible")
}

impl Model {
    fn options(self, delay: Published, calls: u32) -> Options {
        let usual = Options::reports_of_2022(AnyDelay::Published(delay));
        let mut options = Options { calls, ..usual };
        (self.0)(&mut options);
        options
    }

    /// The seconds that a loop of so many calls takes.
    fn loop_s(self, delay: Published, calls: u32) -> f64 {
        report(&self.options(delay, calls)).elapsed_ns as f64 / 1e9
    }

    fn boot_s(self, delay: Published) -> f64 {
        REST_OF_A_BOOT_S + self.loop_s(delay, CALLS_OF_A_BOOT)
    }

    /// The caller's own work in a loop of so many calls: given, whatever the worker does.
    fn work_s(self, calls: u32) -> f64 {
        let work_ns = self.options(Published::V5_18, calls).caller_work_ns;
        f64::from(calls) * work_ns as f64 / 1e9
    }

    /// A call of 10,000 back to back at 1,000 ticks a second, on average.
    fn back_to_back_us(self, delay: Published, preempt: bool) -> f64 {
        let usual = self.options(delay, 10_000);
        let loop_of = Options { hz: 1_000, preempt, caller_work_ns: 0, ..usual };
        report(&loop_of).elapsed_ns as f64 / 1e3 / 10_000.0
    }

    /// Seconds of a boot that asks for one grace period for so many of its updates.
    fn boot_of_requests_s(self, delay: Published, requests: u32) -> f64 {
        let usual = self.options(delay, CALLS_OF_A_BOOT / requests);
        let caller_work_ns = u64::from(requests) * usual.caller_work_ns;
        REST_OF_A_BOOT_S + report(&Options { caller_work_ns, ..usual }).elapsed_ns as f64 / 1e9
    }

    /// What was said without a number, or without one that is known here.
    fn fill_statements(self, said: &mut Publication) {
        let blocked = Some(Blocked { from_ns: 50_000_000, for_ns: 1_000_000_000 });
        let kernels = [
            Published::V5_18,
            Published::V5_19_RC1,
            Published::BLOCK_REMOVED,
            Published::final_at(250),
        ];
        let awake_ms = kernels.map(|delay| {
            let options = Options { blocked, ..self.options(delay, 500) };
            report(&options).worker_awake_max_ns as f64 / 1e6
        });
        let [old, mended @ ..] = awake_ms;
        // It sleeps before the third jiffy ends.
        let is_mended = old > 990.0 && mended.iter().all(|ms| *ms < 12.0);
        said.statement("blocks", &awake_ms.map(|ms| format!("{ms:.3}")), is_mended);

        let boots = [Published::V5_19_RC1, Published::V5_18]
            .map(|delay| [1, 10, 100].map(|requests| self.boot_of_requests_s(delay, requests)));
        let [slow, fast] = boots;
        // It boots as fast as 5.18 then, and did not before.
        let is_cure = !Row::in_band(slow[0] / fast[0]) && Row::in_band(slow[2] / fast[2]);
        let found: Vec<String> = boots.as_flattened().iter().map(|s| format!("{s:.1}")).collect();
        said.statement("requests", &found, is_cure);
    }

    fn fill_elsewhere(self, said: &mut Publication) {
        let us = ELSEWHERE.map(|delay| self.back_to_back_us(delay, false));
        said.number("elsewhere", us[0]).number("elsewhere: mended", us[1]);
        let preempted = ELSEWHERE.map(|delay| self.back_to_back_us(delay, true));
        said.why("elsewhere", &preempted.map(|us| format!("{us:.0}")));
        said.number("elsewhere: ratio", us[0] / us[1]);
    }

    fn rows(self) -> Vec<Row> {
        let mut said = Publication::read(include_str!("srcu2022.toml"));
        for (variant, delay) in LOOPS {
            // What its calls take beyond the caller's own work is free.
            let figure = format!("{variant} seconds");
            said.predicted(&figure, self.loop_s(delay, 8_000), self.work_s(8_000));
        }
        self.fill_elsewhere(&mut said);
        self.fill_statements(&mut said);
        let work_of_a_boot_s = REST_OF_A_BOOT_S + self.work_s(CALLS_OF_A_BOOT);
        for (figure, delay) in boots() {
            // All that is not the calls is given as well.
            said.predicted(figure, self.boot_s(delay), work_of_a_boot_s);
        }
        // What the process took of a CPU in a boot with 5.18, by `time`: the half of it that was
        // not the worker.
        said.number("boot: 5.18, user and system time", work_of_a_boot_s);
        // A higher limit on runs in a jiffy makes a boot faster; without that, as fast.
        let runs = [100, 1_000].map(|runs| self.boot_s(throttled(runs)));
        said.beyond("100 runs in a jiffy over 1,000", runs[0] / runs[1], 1.0, 0.0);
        said.rows()
    }
}

/// The four loops of the reports.
const LOOPS: [(&str, Published); 4] = [
    ("5.18", Published::V5_18),
    ("5.19-rc1", Published::V5_19_RC1),
    ("first-diff", Published::FIRST_DIFF),
    ("block-removed", Published::BLOCK_REMOVED),
];

/// The guest boots, measured on a machine that no parameter was fitted on; and those of the
/// experiments in that thread, a harder test.
fn boots() -> [(&'static str, Published); 26] {
    let unlimited = Published { no_delay_per_phase_max: Some(1_000_000), ..Published::FIRST_DIFF };
    let block_removed = Published { no_delay_per_phase_max: None, ..CALLBACKS_AT_ONCE };
    [
        ("guest_boot_s 5.18", Published::V5_18),
        ("guest_boot_s 5.19-rc1", Published::V5_19_RC1),
        ("guest_boot_s fix1", Published::BLOCK_REMOVED),
        ("guest_boot_s fix2", unlimited),
        ("boot: 5.18", Published::V5_18),
        ("boot: 5.19-rc1", Published::V5_19_RC1),
        ("boot: first diff", Published::FIRST_DIFF),
        ("boot: first diff, limit 1000000", unlimited),
        ("boot: block removed", Published::BLOCK_REMOVED),
        ("boot: first diff, callbacks at once", CALLBACKS_AT_ONCE),
        ("boot: block removed, callbacks at once", block_removed),
        ("boot: limit 100", limited(100)),
        ("boot: limit 150", limited(150)),
        ("boot: limit 200", limited(200)),
        ("boot: limit 250", limited(250)),
        ("boot: limit 500", limited(500)),
        ("boot: limit 1000", limited(1_000)),
        ("boot: limit 10000", limited(10_000)),
        ("boot: limit 1000000", limited(1_000_000)),
        ("boot: limit 100, counted once a run", long_pause(100, 5)),
        ("boot: limit 100, last pause 100 us", long_pause(100, 100)),
        ("boot: limit 20, last pause 200 us", long_pause(20, 200)),
        ("boot: limit 20, last pause 400 us", long_pause(20, 400)),
        ("boot: limit 20, last pause 800 us", long_pause(20, 800)),
        ("boot: the patch, 100 runs in a jiffy", throttled(100)),
        ("boot: the patch as released", Published::final_at(250)),
    ]
}

/// The two kernels of the test on another machine, in the order of its rows.
const ELSEWHERE: [Published; 2] = [Published::V5_19_RC1, Published::FIRST_DIFF];

/// All rows. Cost: some seconds.
pub fn rows() -> Vec<Row> {
    MODEL.rows()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Fit, Role};

    /// But for the time that is exactly what is given, what follows from another row, and what
    /// nothing is published of. (Which rows fit, `rcu simulate --published` has on record.)
    #[test]
    fn no_row_fits_by_being_given() {
        const GIVEN: [&str; 2] = ["boot: 5.18, user and system time", "one grace period for"];
        let predicted = rows().into_iter().filter(|row| row.role == Role::Predicted);
        for row in predicted.filter(|row| row.fit() == Fit::Fits) {
            let is_given = GIVEN.iter().any(|given| row.figure.starts_with(given));
            assert_eq!(row.free_share() > Some(Row::DIFFERENCE_BELOW), !is_given, "{row:?}");
        }
    }

    /// 345 us of work between calls, at 250 ticks a second, would hide what a call takes.
    #[test]
    fn the_test_elsewhere_has_no_work_between_its_calls() {
        let us = ELSEWHERE.map(|delay| MODEL.back_to_back_us(delay, false));
        assert!(us[1] > 20.0 && us[1] < 40.0, "the looks and wake-ups of a call: {us:?}");
        assert!(
            us[0] > 2.0 * us[1],
            "a tick finds the grace period old, so callbacks wait: {us:?}"
        );
    }

    #[test]
    fn without_the_pull_boots_miss() {
        let seconds = |delay| {
            let alone = Options { balances: false, ..MODEL.options(delay, CALLS_OF_A_BOOT) };
            REST_OF_A_BOOT_S + report(&alone).elapsed_ns as f64 / 1e9
        };
        assert!(seconds(throttled(1_000)) > 1.25 * 9.7);
        assert!(seconds(long_pause(20, 200)) > 1.5 * 9.741);
    }

    #[test]
    fn the_seed_decides_little() {
        let seconds =
            |delay, seed| report(&Options { seed, ..MODEL.options(delay, 8_000) }).elapsed_ns;
        for (delay, part) in [(Published::BLOCK_REMOVED, 8), (throttled(1_000), 25)] {
            let first = seconds(delay, 1);
            for seed in 2..5 {
                assert!(seconds(delay, seed).abs_diff(first) < first / part, "{delay:?} {seed}");
            }
        }
    }
}
