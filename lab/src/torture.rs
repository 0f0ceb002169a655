//! `rcu torture`: the program `rcu-torture`, which lies beside this one. It is built by itself, so
//! that who asks for advice need not wait for it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{env, io};

use crate::exit::{Exit, Failure, Result};
use crate::provenance::Provenance;

/// An example, and what `rcu-torture --help` writes.
pub(crate) const HELP: &str = include_str!("help/torture.txt");

/// What follows `torture`, if that is the first word of the command line. Nothing else reads it: it
/// may have words that mean something here, as `--json`. Only the help is there without that
/// program.
pub(crate) fn asked() -> Option<Vec<OsString>> {
    let mut words = env::args_os().skip(1);
    let is_first = words.next()? == "torture";
    let arguments: Vec<OsString> = words.collect();
    let is_help = matches!(&arguments[..], [only] if only == "--help" || only == "-h");
    (is_first && !is_help).then_some(arguments)
}

/// Becomes `rcu-torture`, with these arguments. Returns only where that is impossible.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let mut program =
        env::current_exe().map_err(|error| Failure::io("cannot find this program", error))?;
    program.set_file_name("rcu-torture");
    // Its document has the origin of the run, as every document has.
    let origin = serde_json::to_string(&Provenance::of_this_run(false)).unwrap_or_default();
    let mut command = Command::new(&program);
    // Its usage names what was typed.
    command.arg0("rcu torture").args(arguments).env("RCU_PROVENANCE", origin);
    let error = command.exec();
    Err(match error.kind() {
        io::ErrorKind::NotFound => {
            let why = format!(
                "there is no {}: build it with `cargo build --release -p quiescence-torture`, or \
                 run it with `cargo run --release -p quiescence-torture -- OPTIONS`\n\n\
                 Usage: rcu torture [OPTIONS]\n\nFor more information, try 'rcu torture --help'.",
                program.display()
            );
            Failure::because(Exit::Unsupported, why)
        }
        _ => Failure::io(format!("cannot run {}", program.display()), error),
    })
}
