//! `rcu compare --instructions`: how many instructions the library's hot paths take in two
//! versions.
//!
//! Each path is run in processes of its own, with N operations and with 2N, under a program that
//! counts: `(I(2N) - I(N)) / N` is what an operation takes, and what the process does besides
//! cancels out. Most counts have no noise at all, so that one of each side decides, where times
//! need pairs. Both sides are asked by the hidden command `rcu paths`.

use std::fmt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use bench::statistics::{Ratio, spread};
use serde::Serialize;

use super::CompareArgs;
use super::contest::{Base, Contest, Match, Pair};
use super::decide::{Rule, Verdict};
use super::load::{self, Key, Load, Program};
use super::report;
use crate::exit::{Exit, Failure, Result};
use crate::output::Output as Page;

/// N: whole batches of every version.
const COUNT: u64 = 16 * 1024;

/// A path that seems to differ is counted so often on each side: where the worker frees what was
/// retired, counts vary by some per cent. Twice five alike are apart by chance once in 126 times.
const COUNTS_MAX: usize = 5;

/// The arguments of `rcu paths`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PathsArgs {
    /// The path to execute [default: print the names]
    path: Option<String>,
    /// How often to execute it
    #[arg(long, value_name = "N", default_value_t = COUNT)]
    count: u64,
}

/// Runs `rcu paths`: prints the names, or does what one says and prints how the library does it
/// here.
pub(crate) fn paths(args: &PathsArgs, output: &mut Page) -> Result {
    let Some(path) = &args.path else {
        bench::paths::names().for_each(|name| output.line(name));
        return Ok(());
    };
    bench::paths::run(path, args.count)?;
    let fences = format!("{:?}", quiescence::tuning::fences()).to_lowercase();
    let words = crate::bench::per_cpu_path();
    output.line(format_args!("per-CPU words: {words}; fences: {fences}"));
    Ok(())
}

/// How instructions were counted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Counted {
    by: Counter,
    /// N.
    operations: u64,
    /// How the library did it there.
    base: String,
    candidate: String,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, operations, base, candidate } = self;
        let by = by.words()[0];
        write!(
            f,
            "Instructions of one operation, outside of the kernel, counted by {by} with \
             {operations} operations and with twice as many. The base has {base}; the candidate \
             has {candidate}."
        )
    }
}

/// What counts the instructions of a process, without those of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Counter {
    Perf,
    Valgrind,
}

impl Counter {
    /// The first that can count here.
    fn find() -> Result<Self> {
        let counts = |counter: &Self| {
            let output = load::run(counter.command().arg("true"));
            output.is_ok_and(|output| counter.instructions(&output).is_some())
        };
        [Self::Perf, Self::Valgrind].into_iter().find(counts).ok_or_else(|| {
            let message = "no program counts instructions here: install Debian's valgrind, or \
                           linux-perf on a machine whose counters can be read";
            Failure::because(Exit::Unsupported, message)
        })
    }

    /// The program that counts, and its options.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Perf => &["perf", "stat", "-x,", "-e", "instructions:u"],
            Self::Valgrind => &["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"],
        }
    }

    fn command(self) -> Command {
        let mut command = Command::new(self.words()[0]);
        command.args(&self.words()[1..]).env("LC_ALL", "C");
        command
    }

    /// What it says on standard error: perf by a line for each kind of CPU, which begins with the
    /// number; Valgrind by one that ends with it.
    fn instructions(self, output: &Output) -> Option<u64> {
        let text = String::from_utf8_lossy(&output.stderr);
        let number = |line: &str| match self {
            Self::Perf if line.contains("instructions") => line.split(',').next()?.parse().ok(),
            Self::Valgrind if line.contains("Collected :") => {
                line.rsplit(' ').next()?.parse::<u64>().ok()
            }
            _ => None,
        };
        Some(text.lines().filter_map(number).sum()).filter(|sum| *sum > 0)
    }

    /// The instructions of an operation, and how the library did it.
    fn each(self, program: &Program, path: &str) -> Result<(f64, String)> {
        let count = |count: u64| -> Result<(f64, String)> {
            let mut command = self.command();
            command.arg(&program.path).args(["paths", path, "--count", &count.to_string()]);
            let output = load::run(&mut command)?;
            let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let counted = self.instructions(&output).filter(|_| output.status.success());
            let failed = || {
                let program = program.path.display();
                Failure::undecided(format!("{program} paths {path}: {}", output.status))
            };
            Ok((counted.ok_or_else(failed)? as f64, told))
        };
        let ((once, _), (twice, told)) = (count(COUNT)?, count(2 * COUNT)?);
        Ok(((twice - once) / COUNT as f64, told))
    }
}

/// The paths that a program knows; fails with the exit code `wrong`.
fn known(program: &Program, wrong: Exit) -> Result<Vec<String>> {
    let output = load::run(Command::new(&program.path).arg("paths"));
    let output = output.map_err(|failure| Failure { exit: wrong, ..failure })?;
    if !output.status.success() {
        let path = program.path.display();
        let why = "it is older than --instructions; compare times with it, without this option";
        let message = format!("{path} has no command that runs single paths: {why}");
        return Err(Failure::because(wrong, message));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

/// The paths that are compared, and what counts.
fn prepared(args: &CompareArgs, base: &Program, new: &Program) -> Result<(Vec<String>, Counter)> {
    let old = known(base, Exit::Usage)?;
    let mut paths = known(new, Exit::Undecided)?;
    let is_asked = |path: &String| args.paths.is_empty() || args.paths.contains(path);
    paths.retain(|path| old.contains(path) && is_asked(path));
    if let Some(path) = args.paths.iter().find(|path| !paths.contains(path)) {
        let known = old.join(", ");
        return Err(Failure::usage(format!("{path} is no path of both; the base has {known}")));
    }
    if paths.is_empty() {
        return Err(Failure::undecided("the two sides have no path in common"));
    }
    Ok((paths, Counter::find()?))
}

/// Compares the paths that both programs know, or those that are asked for.
pub(super) fn run(args: &CompareArgs, new: Program, base: &Path, page: &mut Page) -> Result<Exit> {
    let base = Program::at(base, Exit::Usage)?;
    let prepared = prepared(args, &base, &new);
    // Whatever else Ctrl-C did to who was asked.
    if page.interrupt.requested() {
        return Err(Failure::interrupted());
    }
    let (paths, by) = prepared?;
    let [mut old_way, mut new_way] = [String::new(), String::new()];
    let rule = Rule { threshold_percent: args.threshold, figures: paths.len() };
    let mut pairs = Vec::new();
    // About what a path takes with Valgrind, on both sides.
    let each = Duration::from_secs(3);
    page.progress.begin(each * paths.len() as u32);
    'paths: for path in paths {
        page.progress.announce(&path);
        let mut pair = Pair::new(key(path));
        while pair.base.len() < COUNTS_MAX && pair.verdict != Verdict::Same {
            let old = by.each(&base, &pair.key.case);
            let both = old.and_then(|old| Ok((old, by.each(&new, &pair.key.case)?)));
            // Whatever else Ctrl-C did to what counts.
            if page.must_stop() {
                break 'paths;
            }
            let (old, new) = both?;
            pair.base.push(old.0);
            pair.new.push(new.0);
            (old_way, new_way) = (old.1, new.1);
            (pair.ratio, pair.verdict) = judge(&pair.base, &pair.new, rule);
        }
        pairs.push(pair);
        page.progress.advance(each);
    }
    page.progress.end();
    if pairs.is_empty() {
        return Err(page.stopped());
    }
    let matches = vec![Match { load: Load::paths(), pairs }];
    let counted = Some(Counted { by, operations: COUNT, base: old_way, candidate: new_way });
    let contest = Contest { matches, counted, ..Contest::new(new, Base::Program(base), args) };
    Ok(report::tell(&contest, page))
}

/// What both sides count.
fn key(case: String) -> Key {
    let [rival, metric, unit] = ["quiescence", "instructions", "instructions"].map(str::to_owned);
    Key { case, rival, ours: true, metric, unit, is_first: true }
}

/// The ratio of the medians; its interval is from the least to the most that the counts allow.
fn judge(base: &[f64], new: &[f64], rule: Rule) -> (Option<Ratio>, Verdict) {
    let least = |counts: &[f64]| counts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |counts: &[f64]| counts.iter().copied().fold(0.0, f64::max);
    let ratio = Ratio {
        median: spread(new).median / spread(base).median,
        low: least(new) / most(base),
        high: most(new) / least(base),
    };
    (Some(ratio), rule.verdict(&ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counter: Counter, told: &str) -> Option<u64> {
        let output = Output {
            status: std::process::ExitStatus::default(),
            stdout: Vec::new(),
            stderr: told.into(),
        };
        counter.instructions(&output)
    }

    #[test]
    fn a_path_is_worse_if_all_of_its_counts_are_apart() {
        let rule = Rule { threshold_percent: 2.0, figures: 1 };
        for (new, verdict) in [
            ([21.0, 21.0], Verdict::Same),
            ([22.0, 22.0], Verdict::Worse),
            ([19.0, 20.0], Verdict::Better),
            ([20.5, 23.0], Verdict::TooNoisy),
        ] {
            assert_eq!(judge(&[21.0, 21.0], &new, rule).1, verdict, "{new:?}");
        }
    }

    #[test]
    fn what_counts_is_understood() {
        let told = "==7== Events    : Ir\n==7== Collected : 6520662\n==7== \n";
        assert_eq!(counted(Counter::Valgrind, told), Some(6_520_662));
        let told = "12,,cpu_core/instructions:u/,9,50.00,,\n30,,cpu_atom/instructions:u/,9,50.00,,";
        assert_eq!(counted(Counter::Perf, told), Some(42));
        let told = "<not supported>,,instructions:u,0,100.00,,";
        assert_eq!(counted(Counter::Perf, told), None);
    }
}
