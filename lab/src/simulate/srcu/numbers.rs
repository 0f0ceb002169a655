//! The numbers of SRCU's machine and of its delay functions that `--set` takes: a reader can try
//! boots of his own, such as those that were tried in 2022.

use grace::srcu::{AdaptiveDelay, Age, CallbackDelay, Published};
use simulate::srcu::{Blocked, DelayFunction, Options, Placement};

use super::super::options::Set;
use crate::exit::{Failure, Result};

/// A number that can be set.
#[derive(Debug)]
pub(in crate::simulate) struct Number {
    pub(in crate::simulate) name: &'static str,
    pub(in crate::simulate) what: &'static str,
    /// The largest value; the smallest is 0.
    max: u64,
    change: Change,
}

/// What setting a number does.
#[derive(Debug)]
enum Change {
    /// It is this time, or this count.
    Ns(fn(&mut Options) -> &mut u64),
    Count(fn(&mut Options) -> &mut u32),
    /// It is one of the kernel's delay functions, or of ours.
    Kernel(fn(&mut Published, u64)),
    Ours(fn(&mut AdaptiveDelay, u64)),
    /// It is one of every run.
    Other(fn(&mut Options, u64)),
}

use Change::{Count, Kernel, Ns, Other, Ours};

impl Change {
    /// Sets it. False if the delay function has no such number; nothing has changed then.
    fn apply(&self, options: &mut Options, value: u64) -> bool {
        match (self, &mut options.delay) {
            (Ns(time), _) => *time(options) = value,
            (Count(count), _) => *count(options) = value as u32, // at most `MANY`
            (Other(change), _) => change(options, value),
            (Kernel(change), DelayFunction::Published(delay)) => change(delay, value),
            (Ours(change), DelayFunction::Adaptive(delay)) => change(delay, value),
            (Kernel(_) | Ours(_), _) => return false,
        }
        true
    }
}

const fn number(name: &'static str, max: u64, change: Change, what: &'static str) -> Number {
    Number { name, what, max, change }
}

/// Any time; the simulator says which are too long.
const NS: u64 = u64::MAX;
/// As many as there can be.
const MANY: u64 = u32::MAX as u64 - 1;

/// When the reader of `blocked_ns` enters: the loop is under way then.
const BLOCKED_FROM_NS: u64 = 100_000_000;

/// All of them.
pub(in crate::simulate) const NUMBERS: &[Number] = &[
    number("calls", MANY, Count(|to| &mut to.calls), "grace periods that the caller waits for"),
    number("caller_work_ns", NS, Ns(|to| &mut to.caller_work_ns), "mean work between calls"),
    number("hz", MANY, Count(|to| &mut to.hz), "ticks a second, as --hz"),
    number("cpus", MANY, Count(|to| &mut to.cpus), "CPUs, as --cpus"),
    number("balances", 1, Other(|to, n| to.balances = n != 0), "whether idle CPUs pull; 0 or 1"),
    number("apart", 1, Other(apart), "whether the worker has a CPU of its own; 0 or 1"),
    number("expedited", 1, Other(|to, n| to.expedited = n != 0), "whether calls are; 0 or 1"),
    number(
        "looks",
        MANY,
        Kernel(|delay, n| delay.no_delay_per_phase_max = none_if_0(n)),
        "looks of a phase before the worker sleeps; 0: no limit; a run that fails takes 2, or 4",
    ),
    number(
        "looks_each",
        1,
        Kernel(|delay, n| delay.asks_after_each_check = n != 0),
        "whether each look of a run is counted (4 a run) or the run (2); 0 or 1",
    ),
    number(
        "limit",
        MANY,
        Kernel(|delay, n| delay.runs_per_jiffy_max = none_if_0(n)),
        "runs in a jiffy before the worker sleeps; 0: no limit",
    ),
    number(
        "pause_us",
        1_000_000,
        Kernel(|delay, n| delay.last_retry_us = n as u32),
        "the pause before the last look of a run",
    ),
    number(
        "retry_us",
        1_000_000,
        Kernel(|delay, n| delay.retry_us = n as u32),
        "the pause before its other looks",
    ),
    number(
        "callbacks_at_once",
        1,
        Kernel(|delay, n| delay.callbacks = callbacks(n)),
        "whether callbacks of expedited grace periods never wait; 0 or 1",
    ),
    number(
        "age",
        2,
        Kernel(|delay, n| delay.age = age(n)),
        "when its age delays a grace period: 0 never, 1 from the first tick, 2 past a full jiffy",
    ),
    number(
        "interval_jiffies",
        1_000,
        Count(interval),
        "the wait for grace periods that are not expedited",
    ),
    number("interval_jiffies_max", 1_000, Count(interval_max), "the longest wait"),
    number(
        "first_nap_us",
        1_000_000,
        Ours(|delay, n| delay.first_nap_us = n as u32),
        "adaptive's nap before its first look",
    ),
    number(
        "runs_max",
        MANY,
        Ours(|delay, n| delay.runs_max = n as u32),
        "adaptive's runs before the next nap",
    ),
    number(
        "nap_us",
        1_000_000,
        Ours(|delay, n| delay.nap_us = n as u32),
        "adaptive's shortest nap after that",
    ),
    number("enqueue_ns", NS, Ns(|to| &mut to.enqueue_ns), "half of the caller's section"),
    number("run_ns", NS, Ns(|to| &mut to.run_ns), "a run of the worker, besides its looks"),
    number("check_ns", NS, Ns(|to| &mut to.check_ns), "a look: summing an index's counts"),
    number("wake_ns", NS, Ns(|to| &mut to.wake_ns), "from a wake-up to the first instruction"),
    number("callbacks_ns", NS, Ns(|to| &mut to.callbacks_ns), "running the callbacks"),
    number("latency_ns", NS, Ns(|to| &mut to.scheduler.latency_ns), "the fair scheduler's latency"),
    number(
        "min_granularity_ns",
        NS,
        Ns(|to| &mut to.scheduler.min_granularity_ns),
        "how long a task runs before a tick may preempt it",
    ),
    number(
        "wakeup_granularity_ns",
        NS,
        Ns(|to| &mut to.scheduler.wakeup_granularity_ns),
        "by how much one that wakes must be behind to preempt",
    ),
    number(
        "protected_ns",
        NS,
        Ns(|to| &mut to.scheduler.protected_ns),
        "how long a task runs before one that wakes may preempt it",
    ),
    number(
        "migration_cost_ns",
        NS,
        Ns(|to| &mut to.scheduler.migration_cost_ns),
        "a task that ran so recently is not pulled",
    ),
    number("readers", MANY, Count(|to| &mut to.readers.count), "readers on other CPUs"),
    number("inside_ns", NS, Ns(|to| &mut to.readers.inside_ns), "mean length of a section"),
    number("outside_ns", NS, Ns(|to| &mut to.readers.outside_ns), "mean time between them"),
    number(
        "blocked_ns",
        NS,
        Other(blocked),
        "how long a reader blocks in its section, after 100 ms; 0: none",
    ),
];

fn apart(options: &mut Options, value: u64) {
    options.placement = if value == 0 { Placement::WithCaller } else { Placement::Apart };
}

fn blocked(options: &mut Options, for_ns: u64) {
    options.blocked = (for_ns > 0).then_some(Blocked { from_ns: BLOCKED_FROM_NS, for_ns });
}

const fn none_if_0(value: u64) -> Option<u32> {
    if value == 0 { None } else { Some(value as u32) }
}

const fn callbacks(at_once: u64) -> CallbackDelay {
    if at_once == 0 { CallbackDelay::LikeWorker } else { CallbackDelay::UnlessExpedited }
}

const fn age(from: u64) -> Age {
    match from {
        0 => Age::Ignored,
        1 => Age::FromFirstTick,
        _ => Age::PastFullJiffy,
    }
}

fn interval(options: &mut Options) -> &mut u32 {
    match &mut options.delay {
        DelayFunction::Published(delay) => &mut delay.interval_jiffies,
        DelayFunction::Adaptive(delay) => &mut delay.interval_jiffies,
    }
}

fn interval_max(options: &mut Options) -> &mut u32 {
    match &mut options.delay {
        DelayFunction::Published(delay) => &mut delay.interval_jiffies_max,
        DelayFunction::Adaptive(delay) => &mut delay.wait_jiffies_max,
    }
}

/// Refuses what no run could take: unknown names, values that are too large, a name twice.
pub(super) fn check(sets: &[Set], also_set: &[&str]) -> Result<()> {
    for (place, Set { name, values }) in sets.iter().enumerate() {
        let number = find(name)?;
        if let Some(value) = values.iter().find(|value| **value > number.max) {
            let max = number.max;
            return Err(Failure::Usage(format!("--set {name}={value}: it is at most {max}")));
        }
        let is_twice = sets[..place].iter().any(|earlier| earlier.name == *name);
        if is_twice || also_set.contains(&name.as_str()) {
            return Err(Failure::Usage(format!(
                "{name} is given twice; for several values: --set {name}=A,B"
            )));
        }
    }
    Ok(())
}

fn find(name: &str) -> Result<&'static Number> {
    NUMBERS.iter().find(|number| number.name == name).ok_or_else(|| {
        let known: Vec<&str> = NUMBERS.iter().map(|number| number.name).collect();
        Failure::Usage(format!(
            "{} has no number called {name:?}; it has {}",
            super::NAME,
            known.join(", ")
        ))
    })
}

/// Sets these numbers.
///
/// # Errors
/// The first that the delay function does not have.
pub(super) fn apply<'a>(options: &mut Options, sets: &'a [(String, u64)]) -> Result<(), &'a str> {
    for (name, value) in sets {
        let number = NUMBERS.iter().find(|number| number.name == name);
        if !number.is_some_and(|number| number.change.apply(options, *value)) {
            return Err(name);
        }
    }
    Ok(())
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
        for number in NUMBERS {
            let changes = |name| {
                let (before, mut after) = (options(name), options(name));
                // One of these differs from what is there.
                [0, 1]
                    .into_iter()
                    .any(|value| number.change.apply(&mut after, value) && after != before)
            };
            assert!(changes("final") || changes("adaptive"), "{number:?}");
        }
    }

    #[test]
    fn the_boots_of_2022_can_be_set() {
        let set = |sets: &[(&str, u64)]| {
            let sets: Vec<_> = sets.iter().map(|(name, to)| ((*name).to_owned(), *to)).collect();
            let mut options = options("first-diff");
            apply(&mut options, &sets).expect("a kernel has them");
            options
        };
        let delay = |options: &Options| match options.delay {
            DelayFunction::Published(delay) => delay,
            DelayFunction::Adaptive(_) => unreachable!("it is the kernel's"),
        };
        let boot = set(&[
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
        assert_eq!((delay(&boot), boot.calls), (expected, 10_000));
        let free = delay(&set(&[("looks", 0), ("limit", 0), ("age", 0)]));
        assert_eq!((free.no_delay_per_phase_max, free.runs_per_jiffy_max), (None, None));
        assert_eq!(free.age, Age::Ignored);
    }

    #[test]
    fn a_number_that_a_delay_function_does_not_have_is_named() {
        let looks = [("calls".to_owned(), 5), ("looks".to_owned(), 5)];
        assert_eq!(apply(&mut options("adaptive"), &looks), Err("looks"));
        assert_eq!(apply(&mut options("5.18"), &[("nap_us".to_owned(), 5)]), Err("nap_us"));
    }
}
