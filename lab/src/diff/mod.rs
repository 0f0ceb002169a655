//! `rcu diff`: which functions cost more for a unit of work in one load than in another.
//!
//! A load is measured and sampled in a process of its own ([`sample`]), or is a file of stacks
//! ([`stacks`]). The cost of a unit of work is shared out among functions by their samples, and the
//! functions are ranked by growth ([`rank`]); [`report`] shows them, and [`flame`] draws them.

mod flame;
mod rank;
mod report;
mod sample;
mod stacks;

use std::cell::LazyCell;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::compare::load::{Key, Load, Program, Run};
use crate::exit::{Exit, Failure, Result};
use crate::output::Output;
use rank::Side;
use report::Report;
use sample::Sampler;
use stacks::Profile;

pub(crate) const HELP: &str = include_str!("../help/diff.txt").trim_ascii_end();

/// The arguments of `rcu diff`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// Before: the arguments of a `bench` or `advise` in quotation marks, or a file: the output of
    /// perf script, or collapsed stacks, of any program
    a: String,
    /// After: the same
    b: String,
    /// Measure A with this version of rcu [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    program_a: Option<PathBuf>,
    /// Measure B with this version of rcu [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    program_b: Option<PathBuf>,
    /// Units of work in the file A
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(requires = "work_b")]
    work_a: Option<u64>,
    /// Units of work in the file B
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(requires = "work_a")]
    work_b: Option<u64>,
    /// Count only stacks that contain this function, and only from there on
    #[arg(long, value_name = "PART OF A NAME")]
    within: Option<String>,
    /// How to take samples [default: perf if it is permitted]
    #[arg(long, value_enum)]
    sampler: Option<Sampler>,
    /// Show this many functions that grew, and as many that shrank
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,
}

/// What costs are in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Scale {
    /// Nanoseconds for a unit of work, by the first figure of the load.
    NanosecondsPerOperation,
    /// Samples for a unit of work.
    SamplesPerUnit,
    /// Per cent of all samples.
    Percent,
}

/// One side as typed.
#[derive(Debug)]
enum Input {
    File(Profile),
    Load(Load, Program),
}

/// Runs `rcu diff`.
pub(crate) fn run(args: &DiffArgs, output: &mut Output) -> Result {
    let inputs = [
        Input::of(&args.a, args.program_a.as_deref())?,
        Input::of(&args.b, args.program_b.as_deref())?,
    ];
    if args.work_a.is_some() && inputs.iter().any(|input| matches!(input, Input::Load(..))) {
        let message = "--work-a and --work-b are for files; a load tells its own work";
        return Err(Failure::usage(message));
    }
    let report = measure(args, inputs, output)?;
    report.print(args.top, output);
    output.json(report::SCHEMA, [report.document()]);
    Ok(())
}

impl Input {
    fn of(text: &str, program: Option<&Path>) -> Result<Input> {
        if let Ok(load) = text.parse() {
            let at = |path| Program::at(path, Exit::Usage);
            let program = program.map_or_else(Program::own, at)?;
            return Ok(Input::Load(load, program));
        }
        let path = Path::new(text);
        if !path.exists() {
            return Err(Failure::usage(format!(
                "{text}: neither a file nor a load; a load is one argument that begins with \
                 `bench` or `advise`: \"bench read --only quiescence\""
            )));
        }
        Ok(Input::File(Profile::read(path)?))
    }
}

fn measure(args: &DiffArgs, [a, b]: [Input; 2], output: &mut Output) -> Result<Report> {
    let scale = match (&a, &b, args.work_a) {
        (Input::Load(..), Input::Load(..), _) => Scale::NanosecondsPerOperation,
        (_, _, Some(_)) => Scale::SamplesPerUnit,
        _ => Scale::Percent,
    };
    let sampler = LazyCell::new(|| args.sampler.unwrap_or_else(Sampler::choose));
    let mut side = |name: &String, input, work: Option<u64>| {
        let sampled = match input {
            Input::File(profile) => Ok((profile, Run::default())),
            Input::Load(load, program) => sampler.sample(&load, &program),
        };
        // Whatever else Ctrl-C did to the load.
        if output.interrupt.requested() {
            return Err(Failure::interrupted());
        }
        let (profile, told) = sampled?;
        let profile = match &args.within {
            None => profile,
            Some(part) => profile.within(part),
        };
        let samples = profile.samples();
        if samples == 0 {
            return Err(Failure::usage("no sample is within that function"));
        }
        let unit_cost = match scale {
            Scale::NanosecondsPerOperation => cost_of_operation(&told, output)?,
            Scale::SamplesPerUnit => samples as f64 / work.unwrap_or(1) as f64,
            Scale::Percent => 100.0,
        };
        Ok(Side { name: name.clone(), samples, unit_cost, profile })
    };
    let sides = [side(&args.a, a, args.work_a)?, side(&args.b, b, args.work_b)?];
    Ok(Report { sides, scale })
}

/// The CPU time of the first operation in a document, or the time that it takes: samples are of CPU
/// time.
fn cost_of_operation(told: &Run, output: &mut Output) -> Result<f64> {
    let first = told.keys().find(|key| key.is_first).expect("a document has a first metric");
    let is_of_first = |key: &&Key| (&key.case, &key.rival) == (&first.case, &first.rival);
    let cpu = told.keys().filter(is_of_first).find(|key| key.metric == "CPU");
    if told.keys().any(|key| !is_of_first(&key)) {
        let (case, rival) = (&first.case, &first.rival);
        output.note(format_args!(
            "the load has several cases or designs: samples are of all of them, and a unit of work \
             is that of {case}, {rival}; --case and --only choose one"
        ));
    }
    let key = cpu.unwrap_or(first);
    told.cost_of(key).map_err(|reason| Failure::undecided(format!("{key}: no figure: {reason}")))
}
