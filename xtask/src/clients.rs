//! Runs Debian's own programs, and liburcu's own tests, on the libraries: the scripts of
//! `compat/clients`, one after the other. What came of each is a row of docs/WORKS_WITH.md.
//!
//! What a script does it says itself; here is only which are run, on which libraries, and how it
//! ended. A program that is not installed is a failure too: otherwise a machine without any would
//! show that all is well.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::say;
use crate::tools::{root, works_with};

/// The scripts, in the order they are run in, and how the row of each begins. What follows a hyphen
/// is an argument.
pub const CLIENTS: [(&str, &str); 12] = [
    ("knot", "knotd"),
    ("gdnsd", "gdnsd"),
    ("kzone", "kzonesign, kzonecheck"),
    ("xfs", "xfs_repair"),
    ("multipath", "multipathd"),
    ("flowtop", "flowtop"),
    ("ganesha", "ganesha.nfsd"),
    ("gluster", "glusterd"),
    ("lttng", "lttng-sessiond, -consumerd, -relayd"),
    ("liburcu-0.13.2", "liburcu 0.13's own tests"),
    ("liburcu-0.14.1", "liburcu 0.14's own tests"),
    ("liburcu-0.15.2", "liburcu 0.15's own tests"),
];

/// What a script ends with if something that it needs is not installed.
const MISSING: i32 = 4;

/// And if this machine does not let it run, which it says why.
const CANNOT: i32 = 5;

/// Runs these clients (all of them, if none is named) on the libraries of `tree`, and beside them
/// on liburcu: for some seconds, or `long`. The command `rcu`, by which they look at the libraries'
/// counts, is built first, unless the environment says in `RCU` where it is.
///
/// # Errors
/// If one did not hold, or something that it needs is not installed, or none could run on this
/// machine; the others are run nevertheless.
pub fn run(tree: &Path, names: &[String], long: bool) -> Result<()> {
    let rcu = match std::env::var_os("RCU") {
        Some(rcu) => rcu.into(),
        None => crate::tools::built_program("rcu", "rcu")?,
    };
    let (mut failed, mut has_run) = (Vec::new(), false);
    let is_asked = |name: &str| names.is_empty() || names.iter().any(|asked| asked == name);
    for (name, program) in CLIENTS.into_iter().filter(|(name, _)| is_asked(name)) {
        let (code, said) = script(name, tree, &rcu, long)?;
        let verdict = match code {
            Some(0) => "passed",
            Some(CANNOT) => "skipped: not possible on this machine",
            Some(MISSING) => "skipped: not installed",
            _ => "failed",
        };
        let told = |mark: &str| said.lines().find_map(|line| Some(line.split_once(mark)?.1));
        let version = told(": version: ").unwrap_or("=");
        let [ours, stock] = [": tests on ours: ", ": tests on stock: "].map(told);
        let [ours, stock] = [ours, stock].map(|tests| tests.unwrap_or(verdict));
        // Of seconds on a machine that does other things there is no speed to be told.
        let speed = told(": speed, ours / stock: ").filter(|_| long);
        let speed = speed.map_or("=".to_owned(), |speed| format!("{speed}, COMMIT, DAY"));
        works_with(&[program, version, "liburcu", ours, stock, "COMMIT, DAY", &speed])?;
        has_run |= code != Some(CANNOT);
        if !matches!(code, Some(0 | CANNOT)) {
            failed.push(format!("{name} ({verdict})"));
        }
    }
    ensure!(has_run, "none of the clients could run on this machine");
    ensure!(failed.is_empty(), "did not pass: {}", failed.join(", "));
    Ok(())
}

/// Runs a script: how it ended, and what it said.
fn script(name: &str, tree: &Path, rcu: &Path, long: bool) -> Result<(Option<i32>, String)> {
    let mut words = name.split('-');
    let file = format!("compat/clients/{}.sh", words.next().unwrap_or_default());
    let mut script = Command::new(root().join(&file));
    script.args(words).arg("--libraries").arg(tree.join("lib")).env("RCU", rcu);
    script.args(long.then_some("--long")).stdout(Stdio::piped());
    let mut script = script.spawn().with_context(|| file)?;
    let mut said = String::new();
    for line in BufReader::new(script.stdout.take().expect("a pipe")).lines() {
        let line = line?;
        said.extend([&line, "\n"]);
        say::line(line)?;
    }
    Ok((script.wait()?.code(), said))
}
