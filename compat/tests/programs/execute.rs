//! Runs a compiled program with one set of libraries after the other, and looks at how it ends.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::build::{Compiled, Place};
use crate::table::{Headers, Job, With, faults_of};

/// What all cases of a program do within seconds, they do within this on a machine that is busy;
/// more is a hang.
const SECONDS_MAX: &str = "120";

pub(crate) const HEADING: &str =
    "program          library  headers  readers   ours              Debian's";

/// What became of a program with one set of libraries.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// "our libraries" or "Debian's libraries".
    pub(crate) library: &'static str,
    /// How many cases ran to their ends.
    pub(crate) cases: usize,
    took_ms: u128,
    pub(crate) failure: Option<String>,
}

/// One line of the table.
pub(crate) fn line(job: &Job, is_compiled: bool, outcomes: &[Outcome]) -> String {
    let headers = if job.headers == Headers::Ours { "ours" } else { "Debian" };
    let readers = if job.inline { "inlined" } else { "exported" };
    let mut line =
        format!("{:<16} {:<8} {headers:<8} {readers:<9}", job.program.source, job.variant.name());
    if !is_compiled {
        return line + " does not compile";
    }
    for outcome in outcomes {
        let result = if outcome.failure.is_some() { "FAILED" } else { "ok" };
        line += &format!(" {:>2} {result:<6} {:>5} ms", outcome.cases, outcome.took_ms);
    }
    line
}

/// With ours; then with Debian's, where those can be asked.
pub(crate) fn run_with_each_library(place: &Place, job: &Job, compiled: &Compiled) -> Vec<Outcome> {
    let mut outcomes = vec![run(job, compiled, Some(&place.ours.join("lib")))];
    if job.program.with == With::Both && place.debians {
        outcomes.push(run(job, compiled, None));
    }
    outcomes
}

struct Ended {
    said: String,
    is_success: bool,
    how: String,
}

/// With our libraries, or with those that the system has.
fn execute(program: &Path, arguments: &[&str], libraries: Option<&Path>) -> Ended {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", SECONDS_MAX]).arg(program).args(arguments);
    command.env_remove("LD_LIBRARY_PATH").env("PROGRAMS_LIBRARY", "debian");
    if let Some(path) = libraries {
        command.env("LD_LIBRARY_PATH", path).env("PROGRAMS_LIBRARY", "ours");
    }
    let output = command.output().expect("timeout(1), of coreutils");
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    Ended {
        said: String::from_utf8_lossy(&said).into_owned(),
        is_success: output.status.success(),
        how: output.status.to_string(),
    }
}

/// The case that was begun and not ended.
fn unfinished(said: &str) -> &str {
    let begun = said.lines().rev().find_map(|line| line.strip_prefix("run "));
    begun.unwrap_or("before its first case")
}

fn run(job: &Job, compiled: &Compiled, libraries: Option<&Path>) -> Outcome {
    let begun = Instant::now();
    let is_ours = libraries.is_some();
    let mut arguments = Vec::new();
    if !is_ours {
        arguments.extend(faults_of(job).map(|fault| fault.case));
        if !arguments.is_empty() {
            arguments.insert(0, "--not");
        }
    }
    let ended = execute(&compiled.path, &arguments, libraries);
    let mut failure = (!ended.is_success).then(|| {
        let last: Vec<_> = ended.said.lines().rev().take(6).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        format!("{} in {}:\n  {}", ended.how, unfinished(&ended.said), last.join("\n  "))
    });
    if !is_ours {
        for fault in faults_of(job).filter(|fault| fault.always) {
            // Were it to pass there, it would not test what it says.
            if execute(&compiled.path, &[fault.case], None).is_success {
                failure.get_or_insert(format!("{} passes, against the table", fault.case));
            }
        }
    }
    Outcome {
        library: if is_ours { "our libraries" } else { "Debian's libraries" },
        cases: ended.said.lines().filter(|line| line.starts_with("ok ")).count(),
        took_ms: begun.elapsed().as_millis(),
        failure,
    }
}
