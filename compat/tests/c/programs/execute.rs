//! Runs a compiled program with one set of libraries after the other, and looks at how it ends.

use std::path::Path;
use std::process::Output;
use std::time::Instant;

use xtask::needs::in_0_15;

use super::table::{Job, Variant, With, faults_of};
use crate::program::{Version, Whose, command, output, text};

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

/// With ours; then with Debian's, where those can be asked: the versions that are `there`. What is
/// compiled against 0.15 runs with the C library of its system.
pub(crate) fn run_with_each_library(there: &[Version], job: &Job, program: &Path) -> Vec<Outcome> {
    let is_13 = job.headers == Whose::Debian13s;
    let ours = if is_13 { Libraries::OursInDebian13 } else { Libraries::Ours };
    let theirs = match job.program.with {
        With::OurLibraries => None,
        With::Both if !is_13 => Some(Version::V13),
        // Of our headers' programs those that 0.13 has not got the functions for.
        With::Both | With::Later => (job.variant != Variant::Signal).then_some(Version::V15),
    };
    let theirs = theirs.filter(|theirs| there.contains(theirs)).map(Libraries::Theirs);
    [ours].into_iter().chain(theirs).map(|libraries| run(job, program, libraries)).collect()
}

fn execute(program: &Path, arguments: &[&str], libraries: Libraries) -> Output {
    let mut command = match libraries {
        Libraries::Ours => command(program, Whose::Ours),
        Libraries::OursInDebian13 => in_0_15(program, Some(xtask::compat::built().join("lib"))),
        Libraries::Theirs(Version::V13) => command(program, Whose::Debians),
        Libraries::Theirs(Version::V15) => in_0_15(program, None),
    };
    match libraries {
        Libraries::Theirs(theirs) => {
            command.env("PROGRAMS_LIBRARY", "debian").env("PROGRAMS_LIBURCU", theirs.number())
        }
        _ => command.env("PROGRAMS_LIBRARY", "ours").env_remove("PROGRAMS_LIBURCU"),
    };
    output(command.args(arguments))
}

/// The case that was begun and not ended.
fn unfinished(said: &str) -> &str {
    let begun = said.lines().rev().find_map(|line| line.strip_prefix("run "));
    begun.unwrap_or("before its first case")
}

fn run(job: &Job, program: &Path, libraries: Libraries) -> Outcome {
    let begun = Instant::now();
    let faults: Vec<_> = match libraries {
        Libraries::Theirs(theirs) => faults_of(job, theirs).collect(),
        _ => Vec::new(),
    };
    let mut arguments: Vec<&str> = faults.iter().map(|fault| fault.case.as_str()).collect();
    if !arguments.is_empty() {
        arguments.insert(0, "--not");
    }
    let ended = execute(program, &arguments, libraries);
    let said = text(&ended);
    let mut failure = (!ended.status.success()).then(|| {
        let last: Vec<_> = said.lines().rev().take(6).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        format!("{} in {}:\n  {}", ended.status, unfinished(&said), last.join("\n  "))
    });
    for fault in faults.iter().filter(|fault| fault.always) {
        // Were it to pass there, it would not test what it says.
        if execute(program, &[&fault.case], libraries).status.success() {
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
