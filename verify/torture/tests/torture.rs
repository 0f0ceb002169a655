//! Torture finds nothing in the library as it is; and finds each step that is removed, in a build
//! that has the hooks.

#[path = "../../../quiescence/tests/common/expect.rs"]
mod expect;
#[path = "../../../lab/tests/common/told.rs"]
mod told;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use told::{expect_code, fails, prints};

/// Two tortures at a time: each has more threads than there are CPUs, and leaves CPUs idle while
/// its threads sleep.
static PLACES: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];
static TAKEN: AtomicUsize = AtomicUsize::new(0);

fn place() -> MutexGuard<'static, ()> {
    let place = &PLACES[TAKEN.fetch_add(1, Relaxed) % PLACES.len()];
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program, not yet run.
fn torture<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rcu-torture"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    torture(args).output().expect("the program starts")
}

#[test]
fn a_full_disk_is_no_usage_error_and_seed_and_commit_come_first() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = torture(["--list-mutants"]).stdout(full).output().unwrap();
    fails(&output, 5, "cannot write what was found");
    let _place = place();
    let output = run("--only readers --seconds 1 --seed 42 --json /dev/full".split(' '));
    let (stdout, stderr) = expect_code(&output, 5);
    let mut lines = stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(lines.next(), Some(vec!["seed", "42"]));
    let commit = lines.next().expect("a second line");
    assert_eq!((commit.len(), commit[0]), (2, "commit"));
    assert!(stdout.contains("clean: "), "what was found is told: {stdout}");
    assert!(stderr.contains("cannot write what was found"), "{stderr}");
}

/// The file was opened when the run was over: a bad path cost an hour of torture its document.
#[test]
fn a_document_that_cannot_be_written_is_told_before_the_run() {
    let args = "--only readers --seconds 1 --json /nowhere/result".split(' ');
    let (stdout, stderr) = expect_code(&run(args), 2);
    assert!(stdout.is_empty() && stderr.contains("cannot write the file of --json"), "{stderr}");
    let (stdout, stderr) = expect_code(&run("--list-mutants --json -".split(' ')), 2);
    assert!(stdout.is_empty() && stderr.contains("cannot be used with"), "{stderr}");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = torture(["--mutant", "no-such"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(2), "it panicked, since its error could not be written");
}

/// A clean run about these themes, with this variable in its environment. Returns its report.
fn reported((name, value): (&str, &str), themes: &str, seconds: u64) -> Value {
    let _place = place();
    let seconds = seconds.to_string();
    let args = ["--only", themes, "--seconds", &seconds, "--seed", "7", "--json", "-"];
    let output = torture(args).env(name, value).output().expect("the program starts");
    let (stdout, _) = expect_code(&output, 0);
    let report: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
    assert_eq!(report["verdict"], "clean");
    report
}

/// What of a report counts something that is to happen, and under which name.
const DEFERRED: (&str, &str) = ("deferred", "count");
const COUNTED: [(&str, &str); 3] =
    [("updates", "count"), ("reads_by_kind", "count"), ("domains", "grace_periods")];

/// The same, in which all happened that these lists count. If something did not, since the machine
/// is busy, the run is repeated for twice as long.
fn complete(
    environment: (&str, &str),
    themes: &str,
    mut seconds: u64,
    lists: &[(&str, &str)],
) -> Value {
    loop {
        let report = reported(environment, themes, seconds);
        let counts = |(list, count): &(&str, &str)| {
            let all = report[list].as_array().expect("a list");
            assert!(!all.is_empty(), "{list}");
            let is_missing = |one: &&Value| one[count].as_u64().expect("a count") == 0;
            all.iter().filter(is_missing).cloned().collect::<Vec<_>>()
        };
        let missing: Vec<Value> = lists.iter().flat_map(counts).collect();
        if missing.is_empty() {
            return report;
        }
        assert!(seconds < 16, "never happened: {missing:?}");
        seconds *= 2;
    }
}

/// A clean run with these fences, checked as a whole.
fn clean(fences: &str) {
    let report = complete(("QUIESCENCE_FENCES", fences), "readers", 1, &COUNTED);
    assert_eq!((&report["schema"], &report["version"]), (&"quiescence/torture".into(), &2.into()));
    assert_eq!(report["seed"], 7);
    let count = |value: &Value| value.as_u64().expect("a count");
    let sum = |field: &str| report[field].as_array().expect("a list").iter().map(count).sum();
    let reads: u64 = sum("ages");
    assert_eq!(reads, count(&report["reads"]));
    assert!(reads > 0);
    assert_eq!(count(&report["ages"][0]) + count(&report["ages"][1]), reads);
    assert_eq!(report["callbacks_queued"], report["callbacks_run"]);
    if fences == "portable" {
        assert_eq!(report["fences"], "portable");
    } else if report["fences"] != "membarrier" {
        let remedy = "use Linux 4.14 or later, unfiltered";
        expect::skip("membarrier", "membarrier(2)", "fences", remedy);
    }
}

/// How the processes count per CPU, and which fences they have, if that is chosen.
const BEST: (&str, &str) = ("QUIESCENCE_PERCPU", "best");
const WITHOUT_SEQUENCES: (&str, &str) = ("QUIESCENCE_PERCPU", "portable");
const PORTABLE_FENCES: (&str, &str) = ("QUIESCENCE_FENCES", "portable");

/// A clean run whose threads did all that the themes are about.
fn does(environment: (&str, &str), themes: &str) -> Value {
    complete(environment, themes, 1, &[DEFERRED])
}

/// Those that no step of `verify/mutants` asks for alone.
#[test]
fn floods_domains_with_hardly_any_room_and_what_is_left_alone_are_clean() {
    ["floods", "limits", "quiet"].into_iter().for_each(|theme| _ = does(BEST, theme));
}

#[test]
fn slow_readers_beside_a_flood_and_short_threads_are_clean() {
    let report = reported(BEST, "floods,stalls,churn", 2);
    let done = |operation| {
        let deferred = report["deferred"].as_array().expect("a list").iter();
        let mut counts = deferred.filter(|done| done["operation"] == operation);
        counts.next().and_then(|done| done["count"].as_u64())
    };
    assert!(done("reader that blocks in its section") > Some(0));
    // 10,000 in two minutes.
    assert!(done("short-lived thread") >= Some(166), "{:?}", done("short-lived thread"));
}

#[test]
fn processes_that_are_stopped_and_that_fork_are_clean() {
    does(BEST, "processes,forks");
    does(PORTABLE_FENCES, "forks");
}

/// A clean run about sleepable domains: everybody reads, every way is used, grace periods end.
fn sleeps(environment: (&str, &str)) -> Value {
    let report = complete(environment, "sleepable", 1, &[&[DEFERRED], &COUNTED[..]].concat());
    let lengths = COUNTED.map(|(list, _)| report[list].as_array().map(Vec::len));
    assert_eq!(lengths, [Some(16), Some(7), Some(2)]);
    assert_eq!(report["weak"], false);
    assert_eq!(report["callbacks_queued"], report["callbacks_run"]);
    report
}

#[test]
fn sleepable_domains_are_clean_with_sequences_and_without() {
    sleeps(BEST);
    assert_eq!(sleeps(WITHOUT_SEQUENCES)["per_cpu"], "portable");
}

#[test]
fn restartable_reads_and_tools_are_clean_with_sequences_and_without() {
    does(BEST, "rseq-read,tools");
    does(WITHOUT_SEQUENCES, "rseq-read,tools");
}

#[test]
fn sequence_locks_latches_id_tables_and_lists_are_clean() {
    does(BEST, "sequences,ids,lists");
}

#[test]
fn hazard_pointers_exact_cells_and_epochs_are_clean_with_any_fences() {
    does(BEST, "hazards,exact,epoch");
    does(PORTABLE_FENCES, "hazards,exact,epoch");
}

#[test]
fn maps_are_clean() {
    // A round takes long.
    complete(BEST, "maps", 4, &[DEFERRED]);
}

/// All at once. `RCU_TORTURE_SECONDS` says for how long. The tests of the single themes hold that
/// each operation is carried out; here a rare one may not get its turn.
#[test]
fn everything_at_once_is_clean() {
    let seconds = std::env::var("RCU_TORTURE_SECONDS")
        .map_or(2, |seconds| seconds.parse().expect("RCU_TORTURE_SECONDS is a number of seconds"));
    let themes = "readers,floods,limits,quiet,stalls,churn,processes,sleepable,rseq-read,hazards,\
                  sequences,ids,tools,lists,maps";
    complete(BEST, themes, seconds, &COUNTED[..1]);
}

/// The default one runs in all other tests.
#[test]
fn the_other_engines_are_clean() {
    let _place = place();
    for engine in ["poll", "tick", "token"] {
        let args = ["--only", "readers,floods", "--seconds", "1", "--engine", engine];
        prints(&run(args), 0, &format!("{engine} in the private domains"));
    }
}

#[test]
fn minutes_are_told_instead_of_seconds() {
    fails(&run(["--minutes", "2", "--seconds", "3"]), 2, "--minutes");
    fails(&run(["--only", "no-such"]), 2, "limits");
}

#[test]
fn the_library_as_it_is_is_clean_with_any_fences() {
    ["best", "portable"].into_iter().for_each(clean);
}

#[test]
fn an_unknown_mutant_is_refused_with_the_known_ones() {
    let (stdout, stderr) = expect_code(&run(["--mutant", "no-such"]), 2);
    assert!(stdout.is_empty(), "{stdout}");
    let (names, _) = expect_code(&run(["--list-mutants"]), 0);
    assert!(names.lines().any(|name| name == "no-scan"), "{names}");
    for name in names.lines() {
        assert!(stderr.contains(name), "{name} is not named: {stderr}");
    }
}

/// The message names the command that builds one which can.
#[cfg(not(quiescence_mutants))]
#[test]
fn a_program_without_the_hooks_removes_no_step() {
    let (stdout, stderr) = expect_code(&run(["--mutant", "no-scan"]), 2);
    assert!(stdout.is_empty(), "{stdout}");
    assert!(stderr.contains("cargo xtask mutants --by torture no-scan"), "{stderr}");
}

#[cfg(quiescence_mutants)]
#[path = "torture/mutants.rs"]
mod mutants;

#[test]
fn an_interrupted_run_tells_what_there_is() {
    let _place = place();
    let mut child =
        torture(["--seconds", "600"]).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    // The set-up is printed once the handler is in place.
    let mut text = String::new();
    while !text.contains("time ") {
        assert_ne!(stdout.read_line(&mut text).expect("UTF-8"), 0, "{text}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("the child is there");
    stdout.read_to_string(&mut text).expect("UTF-8");
    let status = child.wait().expect("the child ends");
    assert_eq!(status.code(), Some(130), "{text}");
    assert!(text.contains("interrupted, clean until then"), "{text}");
}
