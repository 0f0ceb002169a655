//! The effect of setting a number of SRCU's machine or of its delay functions: users can try boots
//! of their own, such as those that were tried in 2022.

use grace::srcu::{AdaptiveDelay, Age, CallbackDelay, Published};
use simulate::srcu::{Blocked, DelayFunction, Options, Placement};

use super::super::options::Set;
use super::super::product::{NUMBERS, Number, check_once};
use crate::exit::{Failure, Result};

/// When the reader of `blocked_ns` enters: the loop is under way then.
const BLOCKED_FROM_NS: u64 = 100_000_000;

/// Sets a number. False if the delay function has none of this name; nothing has changed then.
fn set(to: &mut Options, name: &str, value: u64) -> bool {
    // The table has no larger ones of those that are counts.
    let count = value as u32;
    match name {
        "calls" => to.calls = count,
        "caller_work_ns" => to.caller_work_ns = value,
        "hz" => to.hz = count,
        "cpus" => to.cpus = count,
        "balances" => to.balances = value != 0,
        "apart" if value == 0 => to.placement = Placement::WithCaller,
        "apart" => to.placement = Placement::Apart,
        "expedited" => to.expedited = value != 0,
        "enqueue_ns" => to.enqueue_ns = value,
        "run_ns" => to.run_ns = value,
        "check_ns" => to.check_ns = value,
        "wake_ns" => to.wake_ns = value,
        "callbacks_ns" => to.callbacks_ns = value,
        "latency_ns" => to.scheduler.latency_ns = value,
        "min_granularity_ns" => to.scheduler.min_granularity_ns = value,
        "wakeup_granularity_ns" => to.scheduler.wakeup_granularity_ns = value,
        "protected_ns" => to.scheduler.protected_ns = value,
        "migration_cost_ns" => to.scheduler.migration_cost_ns = value,
        "readers" => to.readers.count = count,
        "inside_ns" => to.readers.inside_ns = value,
        "outside_ns" => to.readers.outside_ns = value,
        "blocked_ns" => {
            let blocked = Blocked { from_ns: BLOCKED_FROM_NS, for_ns: value };
            to.blocked = (value > 0).then_some(blocked);
        }
        _ => {
            return match &mut to.delay {
                DelayFunction::Published(delay) => set_published(delay, name, count),
                DelayFunction::Adaptive(delay) => set_adaptive(delay, name, count),
            };
        }
    }
    true
}

/// The same of the kernel's delay functions.
fn set_published(to: &mut Published, name: &str, value: u32) -> bool {
    let none_if_0 = (value != 0).then_some(value);
    match name {
        "looks" => to.no_delay_per_phase_max = none_if_0,
        "looks_each" => to.asks_after_each_check = value != 0,
        "limit" => to.runs_per_jiffy_max = none_if_0,
        "pause_us" => to.last_retry_us = value,
        "retry_us" => to.retry_us = value,
        "callbacks_at_once" if value == 0 => to.callbacks = CallbackDelay::LikeWorker,
        "callbacks_at_once" => to.callbacks = CallbackDelay::UnlessExpedited,
        "age" => {
            to.age = match value {
                0 => Age::Ignored,
                1 => Age::FromFirstTick,
                _ => Age::PastFullJiffy,
            }
        }
        "interval_jiffies" => to.interval_jiffies = value,
        "interval_jiffies_max" => to.interval_jiffies_max = value,
        _ => return false,
    }
    true
}

/// Refuses what no run could take: unknown names, values that are too large, a name twice.
pub(super) fn check(sets: &[Set], also_set: &[&str]) -> Result<()> {
    for (name, values) in sets {
        let max = find(name)?.max.unwrap_or(u64::MAX);
        if let Some(value) = values.iter().find(|value| **value > max) {
            return Err(Failure::usage(format!("--set {name}={value}: it is at most {max}")));
        }
    }
    check_once(sets, also_set)
}

fn find(name: &str) -> Result<&'static Number> {
    NUMBERS.srcu.iter().find(|number| number.name == name).ok_or_else(|| {
        let known: Vec<&str> = NUMBERS.srcu.iter().map(|number| &*number.name).collect();
        let known = known.join(", ");
        Failure::usage(format!("{} has no number called {name:?}; it has {known}", super::NAME))
    })
}

/// Sets these numbers.
///
/// # Errors
/// The first that the delay function does not have.
pub(super) fn apply<'a>(options: &mut Options, sets: &'a [(String, u64)]) -> Result<(), &'a str> {
    let lacking = sets.iter().find(|(name, value)| !set(options, name, *value));
    lacking.map_or(Ok(()), |(name, _)| Err(name))
}

#[cfg(test)]
mod tests {
    use simulate::srcu::variant;

    use super::*;

    fn options(name: &str) -> Options {
        Options::reports_of_2022(variant(name, 250).expect("it is one of the variants"))
    }

    #[test]
    fn each_number_changes_something_in_a_delay_function_that_has_it() {
        for number in &NUMBERS.srcu {
            let changes = |name| {
                let (before, mut after) = (options(name), options(name));
                // One of these differs from what is there.
                [0, 1]
                    .into_iter()
                    .any(|value| set(&mut after, &number.name, value) && after != before)
            };
            assert!(changes("final") || changes("adaptive"), "{number:?}");
        }
    }

    #[test]
    fn the_boots_of_2022_can_be_set() {
        let boot = |sets: &[(&str, u64)]| {
            let sets: Vec<_> = sets.iter().map(|(name, to)| ((*name).to_owned(), *to)).collect();
            let mut options = options("first-diff");
            apply(&mut options, &sets).expect("a kernel has them");
            options
        };
        let delay = |options: &Options| match options.delay {
            DelayFunction::Published(delay) => delay,
            DelayFunction::Adaptive(_) => unreachable!("it is the kernel's"),
        };
        let tried = boot(&[
            ("callbacks_at_once", 1),
            ("looks", 20),
            ("looks_each", 0),
            ("pause_us", 200),
            ("calls", 10_000),
        ]);
        let expected = Published {
            callbacks: CallbackDelay::UnlessExpedited,
            no_delay_per_phase_max: Some(20),
            asks_after_each_check: false,
            last_retry_us: 200,
            ..Published::FIRST_DIFF
        };
        assert_eq!((delay(&tried), tried.calls), (expected, 10_000));
        let free = delay(&boot(&[("looks", 0), ("limit", 0), ("age", 0)]));
        assert_eq!((free.no_delay_per_phase_max, free.runs_per_jiffy_max), (None, None));
        assert_eq!(free.age, Age::Ignored);
    }
}
