//! `rcu compare`: is this version faster or slower than another one, and for whom?
//!
//! Reading order: [`load`] runs a program once and reads its figures; [`contest`] runs two of them
//! in pairs; [`decide`] says what the pairs tell; [`instructions`] counts instead; [`baseline`]
//! keeps rounds for later; [`report`] shows it all.

mod baseline;
mod contest;
mod decide;
pub(crate) mod instructions;
pub(crate) mod load;
mod report;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::exit::{Exit, Failure, Result};
use crate::number::{real_within, within};
use crate::output::{self, Output};
use baseline::Baseline;
use contest::{Base, Contest, Limits};
use load::{Load, Program};

/// Loads that are compared when none is named: a section, counters and locks of a CPU, an `Arc` in
/// a cell, and updates.
const LOADS: [&str; 4] = [
    "bench read --only quiescence",
    "bench percpu --case counter,lock --only quiescence",
    "bench cells --case load --only quiescence",
    "bench update --case update --only quiescence",
];

pub(crate) const HELP: &str = include_str!("../help/compare.txt").trim_ascii_end();
pub(crate) const USAGE: &str = "\
rcu compare [OPTIONS] --with <PROGRAM> [LOAD]...
       rcu compare [OPTIONS] --baseline <NAME> [LOAD]...
       rcu compare [OPTIONS] --save <NAME> [LOAD]...";

/// The arguments of `rcu compare`.
#[derive(clap::Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("base").required(true)))]
pub(crate) struct CompareArgs {
    /// The loads to measure: the arguments of a `bench` or `advise`, each load in quotation marks
    /// [default: those of the baseline, or sections, counters, locks, cells and updates]
    #[arg(value_name = "LOAD")]
    loads: Vec<Load>,
    /// Compare with this program, `rcu` of another version, in pairs of runs
    #[arg(long, value_name = "PROGRAM", group = "base")]
    with: Option<PathBuf>,
    /// Compare with the rounds saved under this name
    #[arg(long, value_name = "NAME", value_parser = baseline::name, group = "base")]
    baseline: Option<String>,
    /// Compare nothing: measure, and save the rounds under this name
    #[arg(long, value_name = "NAME", value_parser = baseline::name, group = "base")]
    save: Option<String>,
    /// The program to judge [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    candidate: Option<PathBuf>,
    /// The folder of baselines [default: rcu/baselines in $XDG_DATA_HOME, or in ~/.local/share]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Ignore differences smaller than this
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = real_within(0.1, 1e3))]
    threshold: f64,
    /// Count the instructions of the library's own paths, with perf or else with Valgrind: exact
    /// even if times are noisy
    #[arg(long, requires = "with", conflicts_with_all = ["loads", "metrics", "plant", "rounds"])]
    instructions: bool,
    /// Count only these paths [default: all that both programs have]
    #[arg(long = "path", value_name = "A,B", value_delimiter = ',', requires = "instructions")]
    paths: Vec<String>,
    /// Decide by these metrics [default: the first of each case]
    #[arg(long = "metric", value_name = "A,B", value_delimiter = ',')]
    metrics: Vec<String>,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = within(1..=86_400))]
    time: u32,
    /// Measure at most this many pairs [default: 400; --save: 40]
    #[arg(long, value_name = "N", value_parser = within(15..=10_000))]
    rounds: Option<u32>,
    /// Use this seed to shuffle the order within the pairs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Let the candidate do this many per cent more work than it counts: for trials of this command
    #[arg(long, value_name = "PERCENT", hide = true)]
    plant: Option<f64>,
}

/// Runs `rcu compare`.
pub(crate) fn run(args: &CompareArgs, output: &mut Output) -> Result<Exit> {
    let folder = || args.folder.clone().map_or_else(baseline::folder, Ok);
    let new = match &args.candidate {
        None => Program::own()?,
        Some(path) => Program::at(path, Exit::Undecided)?,
    };
    let new = Program { planted_percent: args.plant, ..new };
    if let Some(name) = &args.save {
        return save(args, &new, baseline::path(&folder()?, name), output);
    }
    if let Some(base) = args.with.as_ref().filter(|_| args.instructions) {
        return instructions::run(args, new, base, output);
    }
    let base = match (&args.with, &args.baseline) {
        (Some(path), _) => Base::Program(Program::at(path, Exit::Usage)?),
        // One of the three is required.
        (None, name) => Base::Saved(Baseline::read(&folder()?, name.as_deref().unwrap_or(""))?),
    };
    let (loads, rounds) = match &base {
        Base::Program(_) => (default_loads(), usize::MAX),
        Base::Saved(baseline) => {
            output.note("saved rounds do not share the noise of later ones: prefer --with");
            baseline.complaint().into_iter().for_each(|text| output.note(text));
            (baseline.loads(), baseline.rounds())
        }
    };
    let (loads, limits) = (args.loads_or(loads), args.limits(rounds));
    let mut contest = Contest::new(new, base, args);
    output.progress.begin(args.time());
    contest.prepare(loads, &args.metrics, (limits, output))?;
    contest.run(limits, output)?;
    output.progress.end();
    Ok(report::tell(&contest, output))
}

impl CompareArgs {
    fn loads_or(&self, usual: Vec<Load>) -> Vec<Load> {
        if self.loads.is_empty() { usual } else { self.loads.clone() }
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.time.into())
    }

    /// From now on, with at most so many rounds.
    fn limits(&self, most: usize) -> Limits {
        const ROUNDS: u32 = 400;
        let rounds = self.rounds.unwrap_or(ROUNDS) as usize;
        Limits { until: Instant::now() + self.time(), rounds_max: rounds.min(most) }
    }
}

fn default_loads() -> Vec<Load> {
    LOADS.iter().map(|text| text.parse().expect("the built-in loads are well-formed")).collect()
}

fn save(args: &CompareArgs, program: &Program, path: PathBuf, output: &mut Output) -> Result<Exit> {
    const ROUNDS: usize = 40;
    let loads = args.loads_or(default_loads());
    let limits = args.limits(if args.rounds.is_some() { usize::MAX } else { ROUNDS });
    let folder = path.parent().unwrap_or(&path);
    fs::create_dir_all(folder).map_err(|error| Failure::file("write", folder, error))?;
    output::prepare(folder)?;
    output.progress.begin(args.time());
    let saved = contest::save(program, &loads, limits, output)?;
    output.progress.end();
    let baseline = Baseline::new(saved);
    if let Some(load) = baseline.undecidable() {
        let few = format!("{load}: no figure is in {} rounds", decide::ROUNDS_MIN);
        let message = format!("{few}: nothing is saved; try again when the machine is less busy");
        return Err(Failure::undecided(message));
    }
    baseline.write(&path)?;
    output.line(format_args!("{} rounds are in {}", baseline.rounds(), path.display()));
    output.json(baseline::SCHEMA, [json!(baseline)]);
    Ok(output.exit(Exit::Ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_loads_are_loads() {
        assert_eq!(default_loads().len(), LOADS.len());
    }
}
