//! Explores every scenario under both models, the big ones too, and says how many states it has.
//!
//! `cargo run --release -p check --example exhaustive` for all of them;
//! `... -- NAME` for one; `... -- NAME MUTANT` for a mutant, with the trace of what it breaks.

use std::process::ExitCode;

use check::{MUTANTS, Model, Mutant, Scenario, explore, scenarios};

/// States, at most: some 20 GB.
const LIMIT: usize = 60_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let chosen: Vec<Scenario> = match arguments.first() {
        None => scenarios::all(),
        Some(name) => scenarios::named(name).into_iter().collect(),
    };
    if chosen.is_empty() {
        eprintln!("no such scenario");
        return ExitCode::from(2);
    }
    let mut mutant: Option<Mutant> = None;
    if let Some(name) = arguments.get(1) {
        let Some(fault) = MUTANTS.iter().find(|fault| fault.name == name) else {
            eprintln!("no such mutant");
            return ExitCode::from(2);
        };
        mutant = Some(fault.mutant);
    }
    let mut all_safe = true;
    for scenario in &chosen {
        for model in Model::ALL {
            let begun = std::time::Instant::now();
            let verdict = explore(scenario, model, mutant, LIMIT);
            let seconds = begun.elapsed().as_secs_f32();
            println!("{} under {model:?}: {verdict} ({seconds:.1} s)", scenario.name);
            all_safe &= verdict.is_safe();
        }
    }
    if all_safe { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
