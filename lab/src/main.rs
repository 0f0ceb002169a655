//! The command `rcu`: measures a machine and a workload, and says which synchronisation fits.
//!
//! Reading order: [`exit`], [`interrupt`], [`output`] and [`json`] are what every command shares;
//! [`schema`] prints what the documents look like, [`data`] reads the program's own tables,
//! [`number`] says what is wrong with a number, and [`distinct`] lists things once; [`machine`] and
//! [`costs`] describe where we run; [`keys`], [`workload`] and [`draw`] make the input; [`advise`]
//! runs every design on it;
//! [`bench`] measures what the library promises, [`compare`] holds two versions of it against each
//! other, [`diff`] says which functions differ, and [`top`] watches it in a running process;
//! [`demo`] shows it at work; [`torture`] becomes another program. [`record`], [`html`] and
//! [`plot`] make pages and other forms of what was said.

#![forbid(unsafe_code)]

mod advise;
mod arguments;
mod bench;
mod compare;
mod costs;
mod data;
mod demo;
mod diff;
mod distinct;
mod draw;
mod exit;
mod html;
mod interrupt;
mod json;
mod keys;
mod machine;
mod number;
mod output;
mod plot;
mod provenance;
mod record;
mod schema;
mod simulate;
mod top;
mod torture;
mod workload;

use std::process::ExitCode;

use ::bench::sampling;
use clap::{Parser, Subcommand};

use exit::{Exit, Failure, Result};
use interrupt::Interrupt;
use output::{Output, OutputArgs};

/// Says which synchronisation fits your workload, on this machine.
///
/// Without a subcommand `rcu` runs `rcu advise`: it measures what synchronisation costs here, runs
/// a read-mostly workload on every design from a single mutex to RCU, ranks the designs, explains
/// the ranking, and finds where the answer flips.
#[derive(Debug, Parser)]
#[command(name = "rcu", version = provenance::VERSION)]
#[command(max_term_width = 80, after_long_help = long_help())]
#[command(args_conflicts_with_subcommands = true, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    advise: advise::AdviseArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Sample this process, and write collapsed stacks to FILE: what `rcu diff` does
    #[arg(long, value_name = "FILE", global = true, hide = true)]
    sample: Option<std::path::PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Rank designs for a workload; say where the answer flips (default)
    #[command(after_long_help = long_help(), args_override_self = true)]
    Advise(advise::AdviseArgs),
    /// Print what synchronisation costs here, next to the table of 2005
    Costs(costs::CostsArgs),
    /// Measure single operations of the library and of its rivals
    #[command(after_long_help = include_str!("help/bench.txt").trim_ascii_end())]
    Bench(bench::BenchArgs),
    /// Tell whether another version is better, worse or the same
    #[command(after_long_help = compare::HELP, override_usage = compare::USAGE)]
    Compare(compare::CompareArgs),
    /// Rank functions by their difference in cost between two loads
    #[command(after_long_help = diff::HELP)]
    Diff(diff::DiffArgs),
    /// Replay published figures, and simulate hypothetical machines
    Simulate(simulate::SimulateArgs),
    /// Watch the library in a running process that serves its statistics
    Top(top::TopArgs),
    /// Show the library at work in half a minute, explained step by step
    Demo(demo::DemoArgs),
    /// Try to catch the library freeing memory that is still being read
    #[command(override_help = torture::HELP)]
    Torture(torture::TortureArgs),
    /// Do what one of the library's hot paths does: for `rcu compare --instructions`
    #[command(hide = true)]
    Paths(compare::instructions::PathsArgs),
    /// Print a shell completion script for this command
    Completions(arguments::CompletionsArgs),
    /// Print the JSON Schema of the documents that --json writes
    Schema(schema::SchemaArgs),
    /// Print the manual page
    Man(arguments::ManArgs),
}

const EXAMPLES: &str = include_str!("help/rcu.txt").trim_ascii_end();

/// What is simplest, and the examples.
fn long_help() -> String {
    format!("{}\n{EXAMPLES}", advise::simplest())
}

fn main() -> ExitCode {
    let done = match torture::asked() {
        Some(args) => torture::run(&args),
        None => arguments::parse().and_then(|cli| run(&cli)),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.message.iter().for_each(output::print_error);
            failure.exit.into()
        }
    }
}

fn run(cli: &Cli) -> Result<Exit> {
    use Command::{Completions, Demo, Man, Paths, Schema};
    // Before the file is opened: an old document, or none, would stay there as if it were this one.
    if cli.output.json.is_some()
        && let Some(Demo(_) | Completions(_) | Schema(_) | Man(_) | Paths(_)) = &cli.command
    {
        return Err(Failure::usage("this command writes text; it has no JSON"));
    }
    let interrupt =
        Interrupt::install().map_err(|error| Failure::io("cannot handle Ctrl-C", error))?;
    let mut output = Output::new(&cli.output, interrupt)?;
    let exit = match &cli.sample {
        None => dispatch(cli, &mut output)?,
        Some(path) => {
            let write = sampling::begin()?;
            let exit = dispatch(cli, &mut output)?;
            write(path)?;
            exit
        }
    };
    output.finish()?;
    Ok(exit)
}

fn dispatch(cli: &Cli, output: &mut Output) -> Result<Exit> {
    match &cli.command {
        None => {
            if std::env::args_os().len() == 1 {
                output.note("this takes half a minute, `rcu --quick` 15 s; `rcu --help` says more");
            }
            advise::run(&cli.advise, output)
        }
        Some(Command::Advise(args)) => advise::run(args, output),
        Some(Command::Costs(args)) => costs::run(args, output),
        Some(Command::Bench(args)) => bench::run(args, output),
        Some(Command::Compare(args)) => compare::run(args, output),
        Some(Command::Diff(args)) => diff::run(args, output),
        Some(Command::Simulate(args)) => simulate::run(args, output),
        Some(Command::Top(args)) => top::run(args, output),
        Some(Command::Demo(args)) => demo::run(args, output),
        Some(Command::Torture(args)) => torture::run(args),
        Some(Command::Paths(args)) => compare::instructions::paths(args, output),
        Some(Command::Completions(args)) => arguments::completions::<Cli>(args, output),
        Some(Command::Schema(args)) => schema::run(args, output),
        Some(Command::Man(args)) => arguments::manual::<Cli>(args, output),
    }
}
