//! The command `rcu`: measures a machine and a workload, and says which synchronisation fits.
//!
//! Reading order: [`exit`], [`interrupt`] and [`output`] are what every command shares; [`schema`]
//! prints what the documents look like, [`number`] says what is wrong with a number, and
//! [`distinct`] lists things once; [`machine`] and [`costs`] describe where we run; [`keys`],
//! [`workload`] and [`draw`] make the input; [`advise`] runs every design on it;
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
mod demo;
mod diff;
mod distinct;
mod draw;
mod exit;
mod html;
mod interrupt;
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

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ::bench::sampling;
use clap::{Parser, Subcommand};
use clap_complete::Shell;

use exit::{Exit, Failure, Result};
use number::within;
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
    sample: Option<PathBuf>,
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
    Demo {
        /// Take about N seconds, and more on a busy machine
        #[arg(long, value_name = "N", default_value_t = 30, value_parser = within(3..=60))]
        seconds: u32,
    },
    /// Try to catch the library freeing memory that is still being read
    #[command(override_help = torture::HELP)]
    Torture {
        /// What `rcu torture --help` lists
        #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Do what one of the library's hot paths does: for `rcu compare --instructions`
    #[command(hide = true)]
    Paths(compare::instructions::PathsArgs),
    /// Print a shell completion script for this command
    Completions {
        /// The shell whose completion script is printed
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
    /// Print the JSON Schema of the documents that --json writes
    Schema {
        /// The document, as its member `schema` names it after `quiescence/`; without it, all
        /// documents are listed
        #[arg(value_name = "NAME", value_parser = schema::names())]
        name: Option<String>,
    },
    /// Print the manual page
    Man {
        /// Also write a page for each subcommand, as files in DIR
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

const EXAMPLES: &str = include_str!("help/rcu.txt").trim_ascii_end();

/// What is simplest, and the examples.
fn long_help() -> String {
    format!("{}\n{EXAMPLES}", advise::simplest())
}

fn main() -> ExitCode {
    let done = match torture::asked() {
        Some(arguments) => torture::run(&arguments).map(|()| Exit::Ok),
        None => arguments::parsed(std::env::args_os()).and_then(|cli| run(&cli)),
    };
    let exit = done.unwrap_or_else(|failure| {
        failure.message.iter().for_each(output::print_error);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

fn run(cli: &Cli) -> Result<Exit> {
    use Command::{Completions, Demo, Man, Paths, Schema};
    // Before the file is opened: an old document, or none, would stay there as if it were this one.
    if cli.output.json.is_some()
        && let Some(Demo { .. } | Completions { .. } | Schema { .. } | Man { .. } | Paths(_)) =
            &cli.command
    {
        return Err(Failure::usage("this command writes text; it has no JSON"));
    }
    let mut output = Output::new(&cli.output)?;
    let sampling = cli.sample.as_ref().map(|_| sampling::begin()).transpose()?;
    let exit = dispatch(cli, &mut output)?;
    if let (Some(path), Some(write)) = (&cli.sample, sampling) {
        write(path)?;
    }
    output.finish()?;
    Ok(exit)
}

fn dispatch(cli: &Cli, output: &mut Output) -> Result<Exit> {
    match &cli.command {
        None => {
            if std::env::args_os().len() == 1 {
                output.note("this takes half a minute, `rcu --quick` 15 s; `rcu --help` says more");
            }
            return advise::run(&cli.advise, output);
        }
        Some(Command::Advise(args)) => return advise::run(args, output),
        Some(Command::Costs(args)) => return Ok(costs::run(args, output)),
        Some(Command::Bench(args)) => return bench::run(args, output),
        Some(Command::Compare(args)) => return compare::run(args, output),
        Some(Command::Simulate(args)) => return simulate::run(args, output),
        Some(Command::Demo { seconds }) => return demo::run(*seconds, output),
        Some(Command::Diff(args)) => diff::run(args, output)?,
        Some(Command::Top(args)) => top::run(args, output)?,
        Some(Command::Torture { arguments }) => torture::run(arguments)?,
        Some(Command::Paths(args)) => compare::instructions::paths(args, output)?,
        Some(Command::Completions { shell }) => arguments::completions(*shell, output),
        Some(Command::Schema { name }) => schema::run(name.as_deref(), output),
        Some(Command::Man { dir }) => arguments::manual(dir.as_deref(), output)?,
    }
    Ok(Exit::Ok)
}
