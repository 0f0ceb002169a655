//! The effect of setting a number of SRCU's machine or of its delay functions: users can try boots
//! of their own, such as those that were tried in 2022.

use grace::srcu::{Age, CallbackDelay};
use simulate::srcu::{Blocked, DelayFunction, Options, Placement};

use super::super::options::Set;
use super::super::product::{NUMBERS, Number, check_once};
use crate::exit::{Failure, Result};

/// When the reader of `blocked_ns` enters: the loop is under way then.
const BLOCKED_FROM_NS: u64 = 100_000_000;

/// Sets a number. False if the delay function, the kernel's or ours, has none of this name; nothing
/// has changed then.
pub(super) fn set(to: &mut Options, name: &str, value: u64) -> bool {
    use DelayFunction::{Adaptive as Ours, Published as Kernels};
    // The table has no larger ones of those that are counts.
    let count = value as u32;
    let (is_on, none_if_0) = (value != 0, (value != 0).then_some(count));
    match (name, &mut to.delay) {
        ("calls", _) => to.calls = count,
        ("caller_work_ns", _) => to.caller_work_ns = value,
        ("hz", _) => to.hz = count,
        ("cpus", _) => to.cpus = count,
        ("balances", _) => to.balances = is_on,
        ("apart", _) if is_on => to.placement = Placement::Apart,
        ("apart", _) => to.placement = Placement::WithCaller,
        ("expedited", _) => to.expedited = is_on,
        ("enqueue_ns", _) => to.enqueue_ns = value,
        ("run_ns", _) => to.run_ns = value,
        ("check_ns", _) => to.check_ns = value,
        ("wake_ns", _) => to.wake_ns = value,
        ("callbacks_ns", _) => to.callbacks_ns = value,
        ("latency_ns", _) => to.scheduler.latency_ns = value,
        ("min_granularity_ns", _) => to.scheduler.min_granularity_ns = value,
        ("wakeup_granularity_ns", _) => to.scheduler.wakeup_granularity_ns = value,
        ("protected_ns", _) => to.scheduler.protected_ns = value,
        ("migration_cost_ns", _) => to.scheduler.migration_cost_ns = value,
        ("readers", _) => to.readers.count = count,
        ("inside_ns", _) => to.readers.inside_ns = value,
        ("outside_ns", _) => to.readers.outside_ns = value,
        ("blocked_ns", _) => {
            let blocked = Blocked { from_ns: BLOCKED_FROM_NS, for_ns: value };
            to.blocked = is_on.then_some(blocked);
        }
        ("looks", Kernels(delay)) => delay.no_delay_per_phase_max = none_if_0,
        ("looks_each", Kernels(delay)) => delay.asks_after_each_check = is_on,
        ("limit", Kernels(delay)) => delay.runs_per_jiffy_max = none_if_0,
        ("pause_us", Kernels(delay)) => delay.last_retry_us = count,
        ("retry_us", Kernels(delay)) => delay.retry_us = count,
        ("callbacks_at_once", Kernels(delay)) => {
            let at_once = [CallbackDelay::LikeWorker, CallbackDelay::UnlessExpedited];
            delay.callbacks = at_once[usize::from(is_on)];
        }
        ("age", Kernels(delay)) => {
            let ages = [Age::Ignored, Age::FromFirstTick, Age::PastFullJiffy];
            delay.age = ages[value.min(2) as usize];
        }
        ("interval_jiffies", Kernels(delay)) => delay.interval_jiffies = count,
        ("interval_jiffies_max", Kernels(delay)) => delay.interval_jiffies_max = count,
        ("interval_jiffies", Ours(delay)) => delay.interval_jiffies = count,
        ("interval_jiffies_max", Ours(delay)) => delay.wait_jiffies_max = count,
        ("first_nap_us", Ours(delay)) => delay.first_nap_us = count,
        ("runs_max", Ours(delay)) => delay.runs_max = count,
        ("nap_us", Ours(delay)) => delay.nap_us = count,
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

#[cfg(test)]
mod tests {
    use grace::srcu::Published;
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
            let mut options = options("first-diff");
            let are_set = sets.iter().all(|(name, value)| set(&mut options, name, *value));
            assert!(are_set, "a kernel has them");
            let DelayFunction::Published(delay) = options.delay else { panic!("the kernel's") };
            (delay, options.calls)
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
        assert_eq!(tried, (expected, 10_000));
        let (free, _) = boot(&[("looks", 0), ("limit", 0), ("age", 0)]);
        assert_eq!((free.no_delay_per_phase_max, free.runs_per_jiffy_max), (None, None));
        assert_eq!(free.age, Age::Ignored);
    }
}
