//! From what was typed to what is run: names are looked up, and lists become every combination.
//!
//! The engine varies fastest, so that engines stand side by side. A number that is set goes to whom
//! it belongs: the engine, the workload or the machine; where none has it, the combination is the
//! same as without, and is run once. Nothing is run before all of it has been found to be possible.

use std::sync::LazyLock;
use std::time::Duration;

use bench::{data, units};
use serde::Deserialize;
use simulate::cost::Costs;
use simulate::parameter::{Choice, Kind};
use simulate::setup::{MICROSECOND, SECOND};
use simulate::{EngineKind, Setup, Workload};

use super::options::{Set, WhatIfArgs};
use crate::distinct::distinct;
use crate::exit::{Failure, Result};

/// The most combinations.
const RUNS_MAX: usize = 1_000;

/// The most that all runs together may take on one CPU of this machine, about.
const TIME_MAX: Duration = Duration::from_secs(2 * 3_600);

/// The workload when none is named.
const WORKLOAD: &str = "dbench";

/// The numbers that `--set` takes: those of the machine that have no option of their own, and those
/// of SRCU's machine. Numbers of engines and workloads are the simulator's.
#[derive(Debug, Deserialize)]
pub(super) struct Numbers {
    pub(super) machine: Vec<Number>,
    pub(super) srcu: Vec<Number>,
}

/// A number that can be set.
#[derive(Debug, Deserialize)]
pub(super) struct Number {
    pub(super) name: String,
    pub(super) what: String,
    /// The largest value, where the simulator does not say what is too much.
    pub(super) max: Option<u64>,
}

pub(super) static NUMBERS: LazyLock<Numbers> =
    LazyLock::new(|| data::read_toml(include_str!("numbers.toml")));

/// One combination.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) engine: EngineKind,
    pub(super) workload: Workload,
    pub(super) setup: Setup,
    /// What the costs are called.
    pub(super) costs: String,
    /// The numbers that were set, and where they took effect.
    pub(super) sets: Vec<(String, u64)>,
}

/// What a number of the machine is, as [`NUMBERS`] names it and in its unit; set before, if a value
/// is given. What does not fit is as impossible as the most that does: [`Setup::check`] refuses it.
fn machine_number(setup: &mut Setup, name: &str, value: Option<u64>) -> Option<u64> {
    let count = |count: &mut u32| {
        *count = value.map_or(*count, |value| value.try_into().unwrap_or(u32::MAX));
        u64::from(*count)
    };
    let time = |time: &mut u64, unit_ns: u64| {
        *time = value.map_or(*time, |value| value.saturating_mul(unit_ns));
        *time / unit_ns
    };
    Some(match name {
        "budget_ppm" => count(&mut setup.budget_ppm),
        "slice_us" => time(&mut setup.slice, MICROSECOND),
        "softirq_runs" => count(&mut setup.softirq_runs),
        "ksoftirqd_percent" => count(&mut setup.ksoftirqd_percent),
        "idle_look_every_ns" => time(&mut setup.idle_look_every, 1),
        "background_every_us" => time(&mut setup.background_every, MICROSECOND),
        _ => return None,
    })
}

/// What a number of the machine is, unless it is set.
pub(super) fn usual(name: &str) -> u64 {
    machine_number(&mut Setup::default(), name, None).unwrap_or_default()
}

/// Every combination, in the order that they are shown in.
///
/// # Errors
/// If one of them is impossible, or all of them would take too long: the reason.
pub(super) fn runs(args: &WhatIfArgs, costs: &[(String, Costs)]) -> Result<Vec<Run>> {
    let engines: Vec<EngineKind> = args.engine.iter().flatten().cloned().collect();
    let workloads = match &args.workload[..] {
        [] => vec![Workload::named(WORKLOAD).map_err(Failure::usage)?],
        named => named.to_vec(),
    };
    known(&args.set, &engines, &workloads)?;
    check_once(&args.set, &[])?;
    let usual = Setup::default();
    let setup = Setup {
        duration: args.duration.unwrap_or(usual.duration),
        warm_up: args.warm_up.unwrap_or(usual.warm_up),
        timeline: args.timeline.unwrap_or(usual.timeline),
        ..usual
    };
    let (engine, workload) = (engines[0].clone(), workloads[0].clone());
    let first = Run { engine, workload, setup, costs: "modern".to_owned(), sets: Vec::new() };
    let mut settings = vec![first];
    vary(&mut settings, &workloads, |run, workload| run.workload = workload.clone())?;
    vary(&mut settings, &args.cpus, |run, &cpus| run.setup.cpus = cpus)?;
    vary(&mut settings, &args.hz, |run, &hz| run.setup.hz = hz)?;
    vary(&mut settings, &args.tickless, |run, &on| run.setup.tickless = on)?;
    vary(&mut settings, &args.preemptible, |run, &on| run.setup.preemptible = on)?;
    vary(&mut settings, costs, |run, (name, costs)| {
        run.costs.clone_from(name);
        run.setup.costs = *costs;
    })?;
    vary(&mut settings, &args.seed, |run, &seed| run.setup.seed = seed)?;
    for (name, values) in &args.set {
        vary(&mut settings, values, |run, &value| run.sets.push((name.clone(), value)))?;
    }
    vary(&mut settings, &engines, |run, engine| run.engine = engine.clone())?;
    for run in &mut settings {
        run.apply()?;
        run.setup.check().map_err(Failure::usage)?;
    }
    let runs = distinct(settings);
    check_time(&runs)?;
    Ok(runs)
}

/// Replaces each run by as many as there are values; no values leave what is there.
pub(super) fn vary<R: Clone, T>(
    runs: &mut Vec<R>,
    values: &[T],
    change: impl Fn(&mut R, &T),
) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    check_count(runs.len().saturating_mul(values.len()))?;
    let varied = runs.iter().flat_map(|run| {
        values.iter().map(|value| {
            let mut run = run.clone();
            change(&mut run, value);
            run
        })
    });
    *runs = varied.collect();
    Ok(())
}

/// Refuses more combinations than can be shown.
pub(super) fn check_count(runs: usize) -> Result<()> {
    match runs {
        0..=RUNS_MAX => Ok(()),
        _ => Err(Failure::usage(format!("more than {RUNS_MAX} combinations; give fewer values"))),
    }
}

/// Refuses a number that belongs to none: no engine, no workload, nor the machine.
fn known(sets: &[Set], engines: &[EngineKind], workloads: &[Workload]) -> Result<()> {
    let engines = engines.iter().flat_map(|engine| engine.parameters().iter());
    let workloads = workloads.iter().flat_map(|workload| workload.parameters().iter());
    let machine = NUMBERS.machine.iter().map(|number| &*number.name);
    let names = distinct(engines.chain(workloads).map(|each| each.name).chain(machine));
    match sets.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        Some((name, _)) => Err(Failure::usage(format!(
            "nothing to be run has a number called {name:?}{}; there are {}",
            match owners(name).as_slice() {
                [] => String::new(),
                owners => format!(", only {} would", owners.join(", ")),
            },
            names.join(", ")
        ))),
        None => Ok(()),
    }
}

/// Refuses a number that is given twice, or with an option that sets it as well.
pub(super) fn check_once(sets: &[Set], also_set: &[&str]) -> Result<()> {
    for (place, (name, _)) in sets.iter().enumerate() {
        let is_twice = sets[..place].iter().any(|earlier| earlier.0 == *name);
        if is_twice || also_set.contains(&name.as_str()) {
            return Err(Failure::usage(format!(
                "{name} is given twice; for several values: --set {name}=A,B"
            )));
        }
    }
    Ok(())
}

/// What has a number of this name, of all that could be run.
fn owners(name: &str) -> Vec<&'static str> {
    let srcu = NUMBERS.srcu.iter().any(|number| number.name == name);
    let engines = EngineKind::all().into_iter().filter(|each| has(each, name));
    let workloads = Workload::all().into_iter().filter(|each| has(each, name));
    let names = engines.map(|each| each.name()).chain(workloads.map(|each| each.name()));
    names.chain(srcu.then_some(super::srcu::NAME)).collect()
}

fn has<K: Kind>(owner: &Choice<K>, name: &str) -> bool {
    owner.parameters().iter().any(|each| each.name == name)
}

impl Run {
    /// Gives the numbers that were set to whom they belong, and forgets those that belong to none.
    fn apply(&mut self) -> Result<()> {
        for (name, value) in std::mem::take(&mut self.sets) {
            let mut is_taken = machine_number(&mut self.setup, &name, Some(value)).is_some();
            if has(&self.engine, &name) {
                self.engine.set(&name, value).map_err(Failure::usage)?;
                is_taken = true;
            }
            if has(&self.workload, &name) {
                self.workload.set(&name, value).map_err(Failure::usage)?;
                is_taken = true;
            }
            if is_taken {
                self.sets.push((name, value));
            }
        }
        let numbers = self.workload.parameters();
        let waiters = numbers.iter().find(|each| each.name == "waiters").map(|each| each.value);
        let cpus = self.setup.cpus;
        match waiters.filter(|&waiters| cpus > 0 && waiters > cpus as u64) {
            Some(waiters) => Err(Failure::usage(format!(
                "waiters = {waiters}: there are {cpus} CPUs, and each has one at most"
            ))),
            None => Ok(()),
        }
    }
}

/// About how long a run takes on a CPU of this machine: what takes the time is what happens on
/// the virtual CPUs, so there is the more of it the more there are, and the more they do.
pub(super) fn about(setup: &Setup, engine: &EngineKind, workload: &Workload) -> Duration {
    /// A virtual second of a virtual CPU, in microseconds.
    const FLOOD_US: u128 = 35_000;
    const IDLE_US: u128 = 500;
    const OTHER_US: u128 = 6_000;
    let second_us = match workload.name() {
        "update-flood" => FLOOD_US,
        "idle" | "waiter-idle" => IDLE_US,
        _ => OTHER_US,
    };
    // What a CPU does again and again because of a number of the machine.
    const EVENT_NS: u128 = 400;
    let events = [setup.idle_look_every, setup.background_every];
    let events_us = |every: u64| match every {
        0 => 0,
        every => EVENT_NS * 1_000_000 / u128::from(every),
    };
    let second_us = second_us + events.into_iter().map(events_us).sum::<u128>();
    let cpus = setup.cpus as u128;
    // Each of its CPUs looks at each.
    let square = if engine.name() == "poll-per-cpu" { 1 + cpus / 16 } else { 1 };
    let length = u128::from(setup.warm_up.saturating_add(setup.duration));
    let ns = length.saturating_mul(cpus * square * second_us * 1_000) / u128::from(SECOND);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)).max(Duration::from_millis(1))
}

/// Refuses what would take hours.
fn check_time(runs: &[Run]) -> Result<()> {
    let times = runs.iter().map(|run| about(&run.setup, &run.engine, &run.workload));
    let about: Duration = times.fold(Duration::ZERO, Duration::saturating_add);
    if about <= TIME_MAX {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "this would take about {} h of CPU time; fewer CPUs, values, or a shorter --duration \
         take less",
        units::figures(about.as_secs_f64() / 3_600.0)
    )))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::options;
    use super::*;

    /// What is run for such a line.
    pub(in crate::simulate) fn resolve(line: &str) -> Vec<Run> {
        let args = options::typed(line).unwrap().what_if;
        runs(&args, &[]).unwrap()
    }

    #[test]
    fn one_value_each_is_one_run() {
        let runs = resolve("--engine tick");
        assert_eq!(runs.len(), 1);
        assert_eq!((runs[0].engine.name(), runs[0].workload.name()), ("tick", "dbench"));
        assert_eq!(runs[0].setup, Setup::default());
    }

    #[test]
    fn several_values_are_every_combination_with_the_engines_side_by_side() {
        let runs = resolve("--engine poll,tick --cpus 2,8 --hz 100,1000");
        let seen: Vec<_> =
            runs.iter().map(|run| (run.setup.cpus, run.setup.hz, run.engine.name())).collect();
        assert_eq!(seen.len(), 8);
        assert_eq!(seen[..3], [(2, 100, "poll"), (2, 100, "tick"), (2, 1000, "poll")]);
        assert_eq!(seen[7], (8, 1000, "tick"));
    }

    #[test]
    fn a_number_goes_to_whom_it_belongs_and_makes_no_difference_elsewhere() {
        let sets = "--set busy_us=100,200 --set slice_us=4000";
        let runs = resolve(&format!("--engine tick --workload idle,dbench {sets}"));
        let sets: Vec<_> = runs.iter().map(|run| (run.workload.name(), run.sets.len())).collect();
        assert_eq!(sets, [("idle", 1), ("dbench", 2), ("dbench", 2)], "idle has no busy_us");
        assert!(runs.iter().all(|run| run.setup.slice == 4_000 * MICROSECOND));
    }

    #[test]
    fn every_number_of_the_machine_takes_effect_and_varies() {
        for number in &NUMBERS.machine {
            let get = |setup: &Setup| machine_number(&mut setup.clone(), &number.name, None);
            let usual = get(&Setup::default()).expect("the machine has it");
            let other = if usual > 1 { usual - 1 } else { usual + 4_600 };
            let runs = resolve(&format!("--engine tick --set {}={other},{usual}", number.name));
            let seen: Vec<u64> = runs.iter().filter_map(|run| get(&run.setup)).collect();
            assert_eq!(seen, [other, usual], "{}", number.name);
            assert_ne!(runs[0].setup, Setup::default(), "{}", number.name);
            assert_eq!(runs[1].setup, Setup::default(), "{}", number.name);
            assert_eq!(runs[0].sets, [(number.name.clone(), other)]);
        }
    }

    #[test]
    fn a_number_of_several_workloads_was_named_for_each_in_a_refusal() {
        let args = options::typed("--workload idle,dbench --set milk=1").unwrap().what_if;
        let refused = runs(&args, &[]).unwrap_err().to_string();
        assert_eq!(refused.matches("kernel_percent").count(), 1, "{refused}");
    }
}
