//! A load: the words of a `rcu bench` or `rcu advise`, run in a process of its own, and the figures
//! in the document that it writes.
//!
//! The documents of `docs/JSON.md` are the interface between programs of different versions: a
//! program that has never heard of `rcu compare` can be compared.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};
use std::{fmt, mem};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exit::{Exit, Failure, Result};

/// What is measured, as typed after `rcu`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String")]
pub(crate) struct Load(String);

/// What a run has told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// What each figure costs, so that less is better; or why there is none.
    pub(crate) figures: Vec<(Key, Result<f64, String>)>,
    pub(crate) quality: Quality,
}

/// How good the run was by its own verdict.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Quality {
    Calm,
    Disturbed,
    Incomplete,
    /// Saved rounds, and versions of the program that do not say.
    #[default]
    Unknown,
}

impl Quality {
    pub(super) const ALL: [Self; 4] =
        [Self::Calm, Self::Disturbed, Self::Incomplete, Self::Unknown];
}

/// What a figure is of.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Key {
    /// `read/1-thread`; of `rcu advise` the name of the workload.
    pub(crate) case: String,
    pub(crate) rival: String,
    /// Whether the rival is this project's own.
    pub(crate) ours: bool,
    pub(crate) metric: String,
    /// `ns`, `1/s`, `objects` or `bytes`.
    pub(crate) unit: String,
    /// Whether it is the first metric of its case, the most important one.
    pub(crate) is_first: bool,
}

/// Options that decide what a load's process writes are not the user's to give.
const RESERVED: [&str; 5] = ["--json", "--html", "--markdown", "--csv", "--pictures"];

/// So long a program that is asked to stop may take to write what it has.
const GRACE: Duration = Duration::from_secs(5);

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // First: a blank that is escaped at the end would leave its backslash alone.
        let text = text.trim();
        let words = shlex::split(text).ok_or("a quotation mark is not closed")?;
        if !matches!(words.first().map(String::as_str), Some("bench" | "advise")) {
            return Err("a load begins with `bench` or `advise`, and is one argument: \
                        \"bench read --only quiescence\""
                .to_owned());
        }
        let is_reserved =
            |word: &&String| RESERVED.iter().any(|reserved| word.starts_with(reserved));
        if let Some(word) = words.iter().find(is_reserved) {
            return Err(format!("{word} is not for a load: its results are read by this command"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Load {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.case, self.rival, self.metric)
    }
}

impl Load {
    /// What stands for the paths whose instructions are counted.
    pub(super) fn paths() -> Self {
        Self("paths".to_owned())
    }

    /// As a shell would have them; at least one.
    fn words(&self) -> Vec<String> {
        shlex::split(&self.0).expect("each quotation mark is closed")
    }

    /// The words, and what is added to them so that the results can be read; and, if there are to
    /// be many runs, so that each is short.
    pub(crate) fn arguments(&self, is_one_of_many: bool) -> Vec<String> {
        let (words, mut more) = (self.words(), vec!["--json", "-"]);
        let is_advise = words[0] == "advise";
        if is_advise {
            more.extend(["--skip", "costs", "--skip", "sweep"]);
        }
        let has = |option: &str| words.iter().any(|word| word.split('=').next() == Some(option));
        let short = [&["--quick"][..], &["--run-ms", "20"], &["--rounds", "3"]];
        for option in &short[..if is_advise { 3 } else { 1 }] {
            if is_one_of_many && !has(option[0]) {
                more.extend(*option);
            }
        }
        [words, more.into_iter().map(str::to_owned).collect()].concat()
    }

    /// Runs it once with this program: interrupted, if that would take until past `until`.
    pub(crate) fn measure(&self, program: &Program, until: Option<Instant>) -> Result<Run> {
        if until.is_some_and(|until| Instant::now() >= until) {
            return Err(Failure::interrupted());
        }
        let mut command = Command::new(&program.path);
        command.args(self.arguments(true));
        if let Some(percent) = program.planted_percent.filter(|_| self.words()[0] == "bench") {
            command.args(["--plant", &percent.to_string()]);
        }
        let (output, is_stopped) = run_until(&mut command, until).map_err(Failure::undecided)?;
        if is_stopped && !output.status.success() {
            return Err(Failure::interrupted());
        }
        self.read(program, &output)
    }

    /// What a process has told that has ended.
    fn read(&self, program: &Program, output: &Output) -> Result<Run> {
        if output.status.code() == Some(Exit::Interrupted as i32) {
            return Err(Failure::interrupted());
        }
        let place = format!("{} {self}", program.path.display());
        let document = serde_json::from_slice(&output.stdout)
            .map_err(|_| Failure::undecided(format!("{place}: {}", complaint(output))))?;
        Run::of(&document).map_err(|reason| Failure::undecided(format!("{place}: {reason}")))
    }
}

/// Why a process failed: its status, and what it said of it.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.starts_with("error:")).or(text.lines().last());
    line.map_or_else(String::new, |line| format!("{line}; ")) + &output.status.to_string()
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Result<Output> {
    Ok(run_until(command, None)?.0)
}

/// Runs a program to its end, or until then: it is asked to stop as `timeout` asks it, and killed
/// after [`GRACE`]. Also says whether it was.
///
/// It writes into pipes, which break if this process is killed: so a program that measures notices,
/// and stops.
fn run_until(command: &mut Command, until: Option<Instant>) -> Result<(Output, bool)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = command.spawn().and_then(|child| follow(child, until));
    run.map_err(|error| Failure::file("run", Path::new(command.get_program()), error))
}

/// Reads what a child writes into its pipes, until it has ended; after `until` it is stopped.
///
/// Whoever the child leaves behind with its pipes is not waited for. Without process descriptors
/// its end is taken to be that of the pipes.
fn follow(mut child: Child, mut until: Option<Instant>) -> io::Result<(Output, bool)> {
    // No other process has its number before it is waited for.
    let number = Pid::from_child(&child);
    let process = pidfd_open(number, PidfdFlags::empty()).ok();
    let mut signals = [Signal::TERM, Signal::KILL].into_iter();
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let pipes = pipes.map(|pipe| File::from(pipe.expect("a pipe")));
    let mut written = [Vec::new(), Vec::new()];
    let mut open: Vec<_> = pipes.iter().zip(&mut written).collect();
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let pipes = open.iter().map(|&(pipe, _)| pipe.as_fd());
        let fds = pipes.chain(process.as_ref().map(AsFd::as_fd));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut fds, left.as_ref()) {
            Err(Errno::INTR) => continue,
            ready => ready?,
        };
        let end = process.as_ref().and_then(|_| fds.pop());
        // Also in the last turn: then all that the child wrote is read.
        for ((pipe, written), fd) in mem::take(&mut open).into_iter().zip(fds) {
            let count = ioctl_fionread(pipe)?;
            pipe.take(count).read_to_end(written)?;
            if count > 0 || !fd.revents().contains(PollFlags::HUP) {
                open.push((pipe, written));
            }
        }
        if end.map_or(open.is_empty(), |end| !end.revents().is_empty()) {
            break;
        }
        // By the clock: a pipe into which a program writes without a pause is always ready.
        if until.is_some_and(|until| until <= Instant::now()) {
            until = signals.next().map(|signal| {
                // It fails if the program belongs to another user; then it is waited for.
                let _ = kill_process(number, signal);
                Instant::now() + GRACE
            });
        }
    }
    let [stdout, stderr] = written;
    Ok((Output { status: child.wait()?, stdout, stderr }, signals.len() < 2))
}

/// A program that measures: this one, or another version of it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// A regression of a known size, for trials.
    pub(crate) planted_percent: Option<f64>,
}

impl Program {
    /// The program that runs.
    pub(crate) fn own() -> Result<Program> {
        let path = std::env::current_exe()
            .map_err(|error| Failure::io("cannot find the program that runs", error))?;
        Ok(Program { path, planted_percent: None })
    }

    /// The one in this file, if it calls itself a version of this command; else fails with the exit
    /// code `wrong`.
    pub(crate) fn at(path: &Path, wrong: Exit) -> Result<Program> {
        let found = path.canonicalize().map_err(|error| Failure::file("run", path, error));
        let soon = Some(Instant::now() + GRACE);
        let ask = |file: &PathBuf| run_until(Command::new(file).arg("--version"), soon);
        let tried = found.and_then(|file| Ok((ask(&file)?.0, file)));
        let (version, file) = tried.map_err(|failure| Failure { exit: wrong, ..failure })?;
        let path = path.display();
        let why = match version.status.success() {
            false => format!("`{path} --version` fails: {}", complaint(&version)),
            true if version.stdout.starts_with(b"rcu ") => {
                return Ok(Program { path: file, planted_percent: None });
            }
            true => format!("`{path}` is not a version of rcu"),
        };
        Err(Failure::because(wrong, why))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Run {
    /// What a document of `rcu bench` or `rcu advise` tells.
    pub(crate) fn of(document: &Value) -> Result<Run, String> {
        let quality = Quality::deserialize(&document["run"]["verdict"]).unwrap_or_default();
        let mut run = Run { quality, ..Run::default() };
        match document["schema"].as_str() {
            Some("quiescence/bench") => run.add_bench(document),
            Some("quiescence/advise") => run.add_advise(document),
            other => return Err(format!("cannot read a document of schema {other:?}")),
        }
        if run.figures.is_empty() {
            return Err("nothing was measured that can be compared".to_owned());
        }
        Ok(run)
    }

    /// All that it should have figures of, those that it lacks last.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let of = |is_there| self.figures.iter().filter(move |(_, cost)| cost.is_ok() == is_there);
        of(true).chain(of(false)).map(|(key, _)| key)
    }

    /// The figure, or why there is none.
    pub(crate) fn cost_of(&self, key: &Key) -> Result<f64, &str> {
        let figure = self.figures.iter().find(|(own, _)| own == key);
        let cost = figure.map(|(_, cost)| cost.as_ref().copied().map_err(String::as_str));
        cost.unwrap_or(Err("the run does not have it"))
    }

    fn add_bench(&mut self, document: &Value) {
        for case in list(&document["cases"]) {
            for rival in list(&case["rivals"]) {
                for (number, metric) in list(&rival["metrics"]).enumerate() {
                    let of = [&case["id"], &metric["name"], &metric["unit"]].map(text);
                    self.add(of, rival, number == 0, [&metric["spread"], &metric["missing"]]);
                }
            }
        }
    }

    fn add_advise(&mut self, document: &Value) {
        const METRICS: [(&str, &str, &str); 2] =
            [("operations", "1/s", "operations_per_second"), ("CPU", "ns", "cpu_ns_per_operation")];
        let case = text(&document["workload"]["name"]);
        // Of threads that had no CPUs at once the rate is of CPU time, in one program or both.
        let known = &METRICS[usize::from(document["ranked_by"] == "cpu")..];
        for design in list(&document["designs"]) {
            for (number, &(metric, unit, field)) in known.iter().enumerate() {
                let of = [&*case, metric, unit].map(str::to_owned);
                self.add(of, design, number == 0, [&design[field], &design["missing"]]);
            }
        }
    }

    /// What a metric of a rival in a case says that it costs: the median of what counted. Shares
    /// are left out: which way is better is not known of them.
    fn add(
        &mut self,
        [case, metric, unit]: [String; 3],
        rival: &Value,
        is_first: bool,
        [spread, missing]: [&Value; 2],
    ) {
        let (name, ours) = (text(&rival["name"]), rival["ours"].as_bool().unwrap_or_default());
        let key = Key { case, rival: name, ours, metric, unit, is_first };
        let median = spread["median"].as_f64();
        let above_zero = median.filter(|median| *median > 0.0);
        let cost = match &*key.unit {
            "ns" | "bytes" => above_zero,
            "1/s" => above_zero.map(|rate| 1e9 / rate),
            "objects" => median.map(|objects| objects + 1.0),
            _ => return,
        };
        let reason = || missing.as_str().unwrap_or("the run does not say why").to_owned();
        self.figures.push((key, cost.ok_or_else(reason)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::arguments::alone;
    use crate::output::OutputArgs;

    /// Tables and pictures were written anew by every run of both sides, each over those before.
    #[test]
    fn no_file_but_documents_and_pages_was_refused_to_a_load() {
        let options = alone::<OutputArgs>();
        let files = options.get_arguments().filter(|option| option.get_action().takes_values());
        for option in files.filter_map(|option| option.get_long()) {
            for load in [format!("bench read --{option} a"), format!("bench read --{option}=a")] {
                assert!(load.parse::<Load>().is_err(), "{load}");
            }
        }
    }

    /// The operations of a second by CPU time were compared with those by time, where only an older
    /// version ranked by it.
    #[test]
    fn advice_by_cpu_time_was_compared_with_advice_by_time() {
        let keys = |by: &str| {
            let rate = json!({"median": 4.0});
            let design = json!({"name": "r", "operations_per_second": rate,
                                "cpu_ns_per_operation": rate});
            let run = Run::of(&json!({"schema": "quiescence/advise", "ranked_by": by,
                                      "workload": {"name": "w"}, "designs": [design]}));
            run.unwrap().keys().cloned().collect::<Vec<_>>()
        };
        let [wall, cpu] = ["wall", "cpu"].map(keys);
        assert!(wall.iter().all(|key| !cpu.contains(key)), "{wall:?} {cpu:?}");
        assert!(wall.len() == 2 && cpu.len() == 1 && cpu[0].is_first, "{cpu:?}");
    }

    /// Its blank was cut off after it had been split, and it was never split again.
    #[test]
    fn a_load_that_ended_with_an_escaped_blank_panicked() {
        let load = "bench read a\\ ".parse::<Load>();
        assert!(load.is_err(), "{load:?}");
    }

    #[test]
    fn a_load_is_the_words_of_a_measurement() {
        let load: Load = "bench read --only 'a b'".parse().unwrap();
        let arguments = ["bench", "read", "--only", "a b", "--json", "-", "--quick"];
        assert_eq!(load.arguments(true), arguments);
        assert_eq!(load.arguments(false), arguments[..6]);
        let load: Load = "advise --rounds=9 --quick".parse().unwrap();
        let text = load.arguments(true).join(" ");
        assert!(text.ends_with("--skip costs --skip sweep --run-ms 20"), "{text}");
    }

    /// `--time 10` took 27 s: what ran was finished. Any death by TERM was taken for an interrupt,
    /// and what ignored TERM was waited for.
    #[test]
    fn a_program_is_stopped_by_the_end_of_the_time_only_and_killed_if_it_does_not_end() {
        let sh = |script, until| run_until(Command::new("sh").args(["-c", script]), until).unwrap();
        let hour = Some(Instant::now() + Duration::from_secs(3_600));
        for until in [None, hour] {
            let (output, is_stopped) = sh("kill -TERM $$", until);
            assert!(!is_stopped && !output.status.success());
        }
        for script in
            ["trap '' TERM; echo began; exec sleep 1000000", "while echo more; do :; done"]
        {
            let mut soon = Duration::from_millis(50);
            loop {
                let (output, is_stopped) = sh(script, Some(Instant::now() + soon));
                assert!(is_stopped && !output.status.success());
                if !output.stdout.is_empty() {
                    break;
                }
                soon *= 2;
            }
        }
    }

    #[test]
    fn a_measurement_that_hangs_is_interrupted_when_its_time_is_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hangs");
        // Written by a process of its own: a file that is open here could not be run.
        let write = r#"printf '#!/bin/sh\nexec sleep 1000000' > "$0" && chmod +x "$0""#;
        assert!(Command::new("sh").args(["-c", write]).arg(&path).status().unwrap().success());
        let hangs = Program { path, planted_percent: None };
        let (load, soon): (Load, _) = ("bench read".parse().unwrap(), Duration::from_millis(50));
        let failure = load.measure(&hangs, Some(Instant::now() + soon)).unwrap_err();
        assert_eq!(failure.exit, Exit::Interrupted, "{failure}");
    }

    /// A pipe holds 64 KiB: of more, a child waits for its reader.
    #[test]
    fn output_of_any_size_is_read_to_its_end() {
        let script = "head -c 300000 /dev/zero; head -c 400000 /dev/zero >&2; printf end";
        let mut command = Command::new("sh");
        let (output, is_stopped) = run_until(command.args(["-c", script]), None).unwrap();
        assert!(output.status.success() && !is_stopped);
        assert_eq!((output.stdout.len(), output.stderr.len()), (300_003, 400_000));
        assert!(output.stdout.ends_with(b"end"));
    }

    #[test]
    fn a_document_gives_costs_whatever_its_units() {
        let metric = |name: &str, unit: &str| {
            let spread = json!({"median": 4.0, "low": 2.0, "high": 5.0});
            json!({"name": name, "unit": unit, "spread": spread})
        };
        let metrics =
            [metric("a", "ns"), metric("b", "1/s"), metric("c", "objects"), metric("d", "%")];
        let reason = "threads never ran at once";
        let missing = json!({"name": "e", "unit": "ns", "spread": null, "missing": reason});
        let older = json!({"name": "f", "unit": "1/s", "spread": null});
        let metrics = [&metrics[..], &[missing, older]].concat();
        let rival = json!({"name": "r", "ours": true, "metrics": metrics});
        let document = json!({
            "schema": "quiescence/bench",
            "cases": [{"id": "c/1", "rivals": [rival]}],
            "run": {"verdict": "incomplete"},
        });
        let run = Run::of(&document).unwrap();
        let costs: Vec<_> = run.keys().map(|key| (&*key.metric, run.cost_of(key))).collect();
        let expected = [
            ("a", Ok(4.0)),
            ("b", Ok(2.5e8)),
            ("c", Ok(5.0)),
            ("e", Err("threads never ran at once")),
            ("f", Err("the run does not say why")),
        ];
        assert_eq!(costs, expected, "medians");
        assert!(run.figures[0].0.is_first && !run.figures[1].0.is_first);
        assert_eq!(run.quality, Quality::Incomplete);
        assert!(Run::of(&json!({"schema": "quiescence/top"})).is_err());
        let empty = json!({"schema": "quiescence/bench", "cases": [], "run": {"verdict": "calm"}});
        assert!(Run::of(&empty).is_err());
    }
}
