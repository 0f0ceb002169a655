//! Runs a compiled program with one set of libraries after the other, and looks at how it ends.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use xtask::needs::in_0_15;

use super::build::{Compiled, Place};
use super::table::{Job, Variant, With, faults_of};
use crate::program::{Version, Whose, output, text};

pub(crate) const HEADING: &str =
    "program          library  headers   readers   ours              Debian's";

/// What became of a program with one set of libraries.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) library: Libraries,
    /// How many cases ran to their ends.
    pub(crate) cases: usize,
    took_ms: u128,
    pub(crate) failure: Option<String>,
}

/// One line of the table.
pub(crate) fn line(job: &Job, is_compiled: bool, outcomes: &[Outcome]) -> String {
    let headers = job.headers.name();
    let readers = if job.inline { "inlined" } else { "exported" };
    let mut line =
        format!("{:<16} {:<8} {headers:<9} {readers:<9}", job.program.source, job.variant.name());
    if !is_compiled {
        return line + " does not compile";
    }
    for outcome in outcomes {
        let result = if outcome.failure.is_some() { "FAILED" } else { "ok" };
        line += &format!(" {:>2} {result:<6} {:>5} ms", outcome.cases, outcome.took_ms);
    }
    line
}

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Libraries {
    Ours,
    /// Ours, with the C library of Debian 13.
    OursInDebian13,
    Theirs(Version),
}

/// With ours; then with Debian's, where those can be asked. What is compiled against 0.15 runs with
/// the C library of its system.
pub(crate) fn run_with_each_library(place: &Place, job: &Job, compiled: &Compiled) -> Vec<Outcome> {
    let is_13 = job.headers == Whose::Debian13s;
    let ours = if is_13 { Libraries::OursInDebian13 } else { Libraries::Ours };
    let theirs = match job.program.with {
        With::OurLibraries => None,
        With::Both if !is_13 => place.debians.then_some(Version::V13),
        // Of our headers' programs those that 0.13 has not got the functions for.
        With::Both | With::Later => {
            (place.debian_13s && job.variant != Variant::Signal).then_some(Version::V15)
        }
    };
    let mut outcomes = vec![run(place, job, compiled, ours)];
    outcomes.extend(theirs.map(|theirs| run(place, job, compiled, Libraries::Theirs(theirs))));
    outcomes
}

fn execute(place: &Place, program: &Path, arguments: &[&str], libraries: Libraries) -> Output {
    let ours = place.ours.join("lib");
    let line: Vec<OsString> = match libraries {
        Libraries::Ours | Libraries::Theirs(Version::V13) => vec![program.into()],
        Libraries::OursInDebian13 => in_0_15(program, Some(&ours)),
        Libraries::Theirs(Version::V15) => in_0_15(program, None),
    };
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).args(arguments);
    command.env_remove("LD_LIBRARY_PATH").env_remove("PROGRAMS_LIBURCU");
    if libraries == Libraries::Ours {
        command.env("LD_LIBRARY_PATH", ours);
    }
    match libraries {
        Libraries::Theirs(theirs) => {
            command.env("PROGRAMS_LIBRARY", "debian").env("PROGRAMS_LIBURCU", theirs.number())
        }
        _ => command.env("PROGRAMS_LIBRARY", "ours"),
    };
    output(&mut command)
}

/// The case that was begun and not ended.
fn unfinished(said: &str) -> &str {
    let begun = said.lines().rev().find_map(|line| line.strip_prefix("run "));
    begun.unwrap_or("before its first case")
}

fn run(place: &Place, job: &Job, compiled: &Compiled, libraries: Libraries) -> Outcome {
    let begun = Instant::now();
    let faults: Vec<_> = match libraries {
        Libraries::Theirs(theirs) => faults_of(job, theirs).collect(),
        _ => Vec::new(),
    };
    let mut arguments: Vec<&str> = faults.iter().map(|fault| fault.case.as_str()).collect();
    if !arguments.is_empty() {
        arguments.insert(0, "--not");
    }
    let ended = execute(place, &compiled.path, &arguments, libraries);
    let said = text(&ended);
    let mut failure = (!ended.status.success()).then(|| {
        let last: Vec<_> = said.lines().rev().take(6).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        format!("{} in {}:\n  {}", ended.status, unfinished(&said), last.join("\n  "))
    });
    for fault in faults.iter().filter(|fault| fault.always) {
        // Were it to pass there, it would not test what it says.
        if execute(place, &compiled.path, &[&fault.case], libraries).status.success() {
            failure.get_or_insert(format!("{} passes, against the table", fault.case));
        }
    }
    Outcome {
        library: libraries,
        cases: said.lines().filter(|line| line.starts_with("ok ")).count(),
        took_ms: begun.elapsed().as_millis(),
        failure,
    }
}
