//! Explores every scenario under both models, every engine, and bounded memory, the big ones too,
//! and says how many states each has.
//!
//! `cargo run --release -p quiescence-verify --example exhaustive` for all of them; `... -- NAME`
//! for one scenario or engine; `... -- NAME MUTANT` for a mutant, or an engine without a step, with
//! the trace of what it breaks.

use std::process::ExitCode;

use check::engines::{Subject, subjects};
use check::harness::World;
use check::limit::{self, Limited};
use check::{GracePeriods, Model, Mutant, Scenario, explore, scenarios};

/// States, at most: some 20 GB.
const LIMIT: usize = 60_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map(String::as_str);
    let is_chosen = |candidate: &str| name.is_none_or(|name| name == candidate);
    let mut chosen = scenarios::all();
    chosen.retain(|scenario| is_chosen(&scenario.name));
    let subjects: Vec<&Subject> = subjects().iter().filter(|one| is_chosen(one.name)).collect();
    let limited = Limited::table().scenario.iter().chain(&Limited::table().big);
    let limited: Vec<_> = limited.filter(|scenario| is_chosen(scenario.name)).collect();
    if chosen.is_empty() && subjects.is_empty() && limited.is_empty() {
        eprintln!("no such scenario or engine");
        return ExitCode::from(2);
    }
    let without = arguments.get(1).map(String::as_str);
    let mut mutants = GracePeriods::table().fault.iter().map(|fault| fault.mutant);
    let mutant =
        mutants.find(|mutant| Some(GracePeriods::mutant_name(*mutant).as_str()) == without);
    let is_step = |one: &&Subject| one.faults().any(|known| known.step == without);
    let mut rules = Limited::table().fault.iter().map(|fault| fault.mutant);
    let rule = rules.find(|rule| without == Some(format!("{rule:?}").as_str()));
    let is_known = !limited.is_empty() && rule.is_some() || mutant.is_some();
    if without.is_some() && !is_known && !subjects.iter().any(is_step) {
        eprintln!("no such mutant, or step of that engine");
        return ExitCode::from(2);
    }
    let are_safe = explore_all(&chosen, mutant);
    let have_held: Vec<bool> = subjects.iter().map(|one| explore_engine(one, without)).collect();
    let are_bounded = explore_limits(&limited, rule);
    let are_safe = are_safe && are_bounded && !have_held.contains(&false);
    if are_safe { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn explore_all(chosen: &[Scenario], mutant: Option<Mutant>) -> bool {
    let mut are_safe = true;
    for scenario in chosen {
        for model in Model::ALL {
            let begun = std::time::Instant::now();
            let verdict = explore(scenario, model, mutant, LIMIT);
            let seconds = begun.elapsed().as_secs_f32();
            println!("{} under {model:?}: {verdict} ({seconds:.1} s)", scenario.name);
            are_safe &= verdict.is_safe();
        }
    }
    are_safe
}

fn explore_limits(chosen: &[&limit::Scenario], without: Option<limit::Mutant>) -> bool {
    let mut are_safe = true;
    for scenario in chosen {
        let begun = std::time::Instant::now();
        let verdict = Limited::explore(scenario, Model::Tso, without, LIMIT);
        let seconds = begun.elapsed().as_secs_f32();
        println!("limit, {}: {verdict} ({seconds:.1} s)", scenario.name);
        are_safe &= verdict.is_safe();
    }
    are_safe
}

/// On all CPUs; without a step, on those where its harm is to be found.
fn explore_engine(subject: &Subject, without: Option<&str>) -> bool {
    let known = subject.faults().find(|known| known.step.is_some() && known.step == without);
    let all = match known {
        Some(expected) => vec![expected.on.clone()],
        None => [subject.quick.clone(), subject.exhaustive.clone()].concat(),
    };
    let mut is_safe = true;
    for on in all {
        let begun = std::time::Instant::now();
        let verdict = subject.explore(&on, known.and_then(|expected| expected.step), LIMIT);
        let seconds = begun.elapsed().as_secs_f32();
        println!("{} on {on}: {verdict} ({seconds:.1} s)", subject.name);
        is_safe &= verdict.is_safe();
    }
    is_safe
}
