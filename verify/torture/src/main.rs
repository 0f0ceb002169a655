//! The program `rcu-torture`, which `rcu torture` becomes. It has few dependencies, so that a build
//! of the copy in which steps can be removed takes little time.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use quiescence_torture::screen::{Failure, Screen};
use quiescence_torture::{HELP, TortureArgs, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Tries to catch the library freeing memory that is still being read.
#[derive(Debug, Parser)]
#[command(name = "rcu-torture", version, after_help = HELP)]
struct Cli {
    #[command(flatten)]
    torture: TortureArgs,
    /// Also write the results as JSON to FILE; `-`: to standard output only
    #[arg(long, value_name = "FILE", conflicts_with = "list_mutants")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match tortured(cli) {
        Ok(code) => code,
        // Before anything was found: the reader has what it wanted.
        Err(Failure::Io { error, .. }) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            // An error that cannot be written has no thread to read it; the exit code still tells.
            let _ = writeln!(io::stderr(), "error: {error}");
            // As `rcu`: 5 where the disk is full or has failed, 2 where an argument is wrong.
            ExitCode::from(if is_of_the_disk(&error) { 5 } else { 2 })
        }
    }
}

fn is_of_the_disk(failure: &Failure) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let Failure::Io { error, .. } = failure else { return false };
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
        || error.raw_os_error() == Some(libc::EIO)
}

fn tortured(cli: Cli) -> Result<ExitCode, Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Handlers run in the order of registration, so the second signal ends the process.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupt))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupt)))
            .map_err(|error| Failure::Io { doing: "cannot handle Ctrl-C", error })?;
    }
    let verdict = run(&cli.torture, &Screen::new(cli.json)?, &interrupt)?;
    Ok(verdict.map_or(ExitCode::SUCCESS, |verdict| ExitCode::from(verdict.exit_code())))
}
