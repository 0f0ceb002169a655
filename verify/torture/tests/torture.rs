//! Torture finds nothing in the library as it is; and finds each step that is removed, in a build
//! that has the hooks.

#[path = "../../../quiescence/tests/common/expect.rs"]
mod expect;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// One torture at a time: each has more threads than there are CPUs.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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

/// Its exit code, standard output and standard error.
fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8");
    let code = output.status.code().expect("the program was not killed");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Fails unless the program ended with this code; shows what it said.
fn expect_code(output: &Output, code: i32) -> (String, String) {
    let (found, stdout, stderr) = told(output);
    assert_eq!(found, code, "standard output:\n{stdout}\nstandard error:\n{stderr}");
    (stdout, stderr)
}

#[test]
fn a_full_disk_is_no_usage_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = torture(["--list-mutants"]).stdout(full).output().unwrap();
    let (_, stderr) = expect_code(&output, 5);
    assert!(stderr.contains("cannot write what was found"), "{stderr}");
    let _alone = alone();
    let output = run("--only readers --seconds 1 --json /dev/full".split(' '));
    let (stdout, stderr) = expect_code(&output, 5);
    assert!(stdout.contains("clean: "), "what was found is told: {stdout}");
    assert!(stderr.contains("cannot write what was found"), "{stderr}");
}

/// A clean run with these fences, checked as a whole.
fn clean(fences: &str) {
    let _alone = alone();
    let args = "--only readers --seconds 1 --seed 7 --json -";
    let output = torture(args.split(' '))
        .env("QUIESCENCE_FENCES", fences)
        .output()
        .expect("the program starts");
    let (stdout, _) = expect_code(&output, 0);
    let report: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
    assert_eq!((&report["schema"], &report["version"]), (&"quiescence/torture".into(), &2.into()));
    assert_eq!(report["verdict"], "clean");
    assert_eq!(report["seed"], 7);
    let count = |value: &Value| value.as_u64().expect("a count");
    let sum = |field: &str| report[field].as_array().expect("a list").iter().map(count).sum();
    let reads: u64 = sum("ages");
    assert_eq!(reads, count(&report["reads"]));
    assert!(reads > 0);
    assert_eq!(count(&report["ages"][0]) + count(&report["ages"][1]), reads);
    for updates in report["updates"].as_array().expect("a list") {
        assert!(count(&updates["count"]) > 0, "{} was never used", updates["way"]);
    }
    for reads in report["reads_by_kind"].as_array().expect("a list") {
        assert!(count(&reads["count"]) > 0, "nobody read as {}", reads["kind"]);
    }
    for domain in report["domains"].as_array().expect("a list") {
        assert!(count(&domain["grace_periods"]) > 0, "{domain}");
    }
    assert_eq!(report["callbacks_queued"], report["callbacks_run"]);
    if fences == "portable" {
        assert_eq!(report["fences"], "portable");
    } else if report["fences"] != "membarrier" {
        let remedy = "use Linux 4.14 or later, unfiltered";
        expect::skip("membarrier", "membarrier(2)", "fences", remedy);
    }
}

/// A clean run about these themes, in which every one of these operations was done. Returns its
/// report.
fn defers(themes: &str, seconds: u64, operations: &[&str]) -> Value {
    does("best", themes, seconds, operations)
}

/// The same, on this path per CPU.
fn does(per_cpu: &str, themes: &str, seconds: u64, operations: &[&str]) -> Value {
    does_with(("QUIESCENCE_PERCPU", per_cpu), themes, seconds, operations)
}

fn does_with(
    (name, value): (&str, &str),
    themes: &str,
    seconds: u64,
    operations: &[&str],
) -> Value {
    let _alone = alone();
    let seconds = seconds.to_string();
    let args = ["--only", themes, "--seconds", &seconds, "--seed", "7", "--json", "-"];
    let output = torture(args).env(name, value).output().expect("the program starts");
    let (stdout, _) = expect_code(&output, 0);
    let report: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
    assert_eq!(report["verdict"], "clean");
    let deferred = report["deferred"].as_array().expect("a list");
    for operation in operations {
        let count = deferred
            .iter()
            .find(|done| done["operation"] == **operation)
            .map(|done| &done["count"]);
        let count = count.and_then(Value::as_u64).expect("a operation of this name");
        assert!(count > 0, "nobody did this: {operation}");
    }
    report
}

/// What everybody does who defers.
const SHAPES: [&str; 9] = [
    "box",
    "large box",
    "Arc",
    "vector",
    "retire_sized",
    "small value",
    "large value",
    "small closure",
    "large closure",
];

#[test]
fn floods_of_callbacks_are_clean() {
    let operations = [
        "zero-sized box and odd word",
        "object whose drop retires another",
        "closure that queues itself again",
        "retire inside a section",
        "retire by a QSBR reader",
        "try_retire",
        "call inside a section",
        "call_hurry",
        "try_call",
        "barrier",
    ];
    defers("floods", 1, &[&SHAPES[..], &operations].concat());
}

#[test]
fn domains_with_hardly_any_room_keep_their_limits() {
    let operations = [
        "refused, and retired later",
        "limit filled to the last object",
        "limit settled after a section",
        "reader that blocks in its section",
    ];
    defers("limits", 1, &[&SHAPES[..], &operations].concat());
}

#[test]
fn what_is_left_alone_is_freed_in_time() {
    let operations = [
        "left alone until all was freed",
        "domain ended with callbacks",
        "thread ended with callbacks",
        "deferred in a thread-local destructor",
    ];
    defers("quiet", 3, &operations);
}

#[test]
fn slow_readers_beside_a_flood_and_short_threads_are_clean() {
    let report = defers("floods,stalls,churn", 2, &["reader that blocks in its section"]);
    let deferred = report["deferred"].as_array().expect("a list");
    let threads = deferred.iter().find(|done| done["operation"] == "short-lived thread");
    // 10,000 in two minutes.
    assert!(threads.and_then(|done| done["count"].as_u64()) >= Some(166), "{threads:?}");
}

#[test]
fn processes_that_are_stopped_and_that_fork_are_clean() {
    defers("processes", 3, &["child process", "child process stopped and continued"]);
    defers("forks", 1, &["fork in a storm"]);
}

/// What has threads that are moved and interrupted.
const MOVED: [&str; 2] = ["thread moved to other CPUs", "signal to a thread"];

/// A clean run about sleepable domains: everybody reads, every way is used, grace periods end.
fn sleeps(per_cpu: &str) {
    let operations = [
        "small domain that grew",
        "grace period during a section of another domain",
        "future dropped half-way",
    ];
    let report = does(per_cpu, "sleepable", 2, &[&MOVED[..], &operations].concat());
    let each = |list: &str, count: &str, expected: usize| {
        let list = report[list].as_array().expect("a list");
        assert_eq!(list.len(), expected, "{list:?}");
        for one in list {
            assert!(one[count].as_u64().expect("a count") > 0, "none: {one}");
        }
    };
    each("reads_by_kind", "count", 7);
    each("updates", "count", 16);
    each("domains", "grace_periods", 2);
    assert_eq!(report["weak"], false);
    assert_eq!(report["callbacks_queued"], report["callbacks_run"]);
    if per_cpu == "portable" {
        assert_eq!(report["per_cpu"], "portable");
    }
}

#[test]
fn sleepable_domains_are_clean() {
    sleeps("best");
}

#[test]
fn sleepable_domains_are_clean_without_sequences() {
    sleeps("portable");
}

/// The same about what else counts per CPU.
fn counts(per_cpu: &str) {
    let operations = ["Snapshot::load", "Snapshot::store", "Snapshot::swap", "Snapshot::update"];
    does(per_cpu, "rseq-read", 1, &[&MOVED[..], &operations].concat());
    let operations = [
        "addition to counters",
        "exact sum under load",
        "LimitCounter::try_add",
        "LimitCounter::try_add refused",
        "BigRef::try_get",
        "BigRef::kill",
        "LocalGlobalLock::read",
        "LocalGlobalLock::write",
        "LocalGlobalLock guard that ended on another thread",
    ];
    does(per_cpu, "tools", 1, &[&MOVED[..], &operations].concat());
}

#[test]
fn restartable_reads_and_tools_are_clean() {
    counts("best");
}

#[test]
fn restartable_reads_and_tools_are_clean_without_sequences() {
    counts("portable");
}

#[test]
fn sequence_locks_and_latches_are_clean() {
    let operations = ["SeqLock::read", "SeqLock::update", "Latch::read", "Latch::update"];
    does("best", "sequences", 1, &[&MOVED[..], &operations].concat());
}

#[test]
fn lists_queues_and_stacks_are_clean() {
    let operations =
        ["traversal of a List", "update of a List", "Queue::pop", "Stack::pop", "Stack::pop_all"];
    does("best", "lists", 1, &[&MOVED[..], &operations].concat());
}

#[test]
fn id_tables_are_clean() {
    let operations = [
        "IdMap::get",
        "IdMap::insert_with",
        "IdMap::remove",
        "IdMap::replace",
        "IdMap::set_mark and clear_mark",
        "IdMapRef::marked",
    ];
    does("best", "ids", 1, &[&MOVED[..], &operations].concat());
}

/// The same about guards and hazard pointers, which have light fences or portable ones.
fn protects(fences: &str) {
    let operations = [
        "ArcCell::load",
        "ArcGuard that ended on another thread",
        "thread with guards that outlive it",
        "Cache::load",
        "ArcCell::store",
        "ArcCell::swap",
        "ArcCell::compare_and_swap",
        "ArcCell::rcu",
        "ArcCellOption::swap",
        "ArcCellOption::take",
        "one Arc in two cells",
        "HazardPointer::protect",
        "HazardDomain::retire",
        "hazard domain ended with something protected",
    ];
    does_with(("QUIESCENCE_FENCES", fences), "hazards", 2, &[&MOVED[..], &operations].concat());
}

#[test]
fn hazard_pointers_are_clean() {
    protects("best");
}

#[test]
fn hazard_pointers_are_clean_with_portable_fences() {
    protects("portable");
}

fn borrows_and_pins(fences: &str) {
    let operations = [
        "ExactCell::load",
        "ExactGuard that ended on another thread",
        "ExactCell::store",
        "ExactCell::swap",
        "ExactCell::compare_and_swap",
        "ExactCell::rcu",
        "ExactCell<Option>::swap",
        "one Arc in two exact cells",
        "epoch::pin and loads",
        "Guard::repin",
        "exchange of epoch::Atomic",
        "Guard::defer",
        "Guard::defer_destroy",
        "Guard::flush",
    ];
    does_with(("QUIESCENCE_FENCES", fences), "exact,epoch", 1, &operations);
}

#[test]
fn exact_cells_and_epochs_are_clean() {
    borrows_and_pins("best");
}

#[test]
fn exact_cells_and_epochs_are_clean_with_portable_fences() {
    borrows_and_pins("portable");
}

#[test]
fn maps_are_clean() {
    let operations = [
        "look-up in a map",
        "walk over a map",
        "insertion into a map",
        "removal from a map",
        "update of a map",
        "HashMapRef::compute",
        "HashMap::retain",
        "map that grew or shrank",
        "history of a key checked",
        "map that ended",
    ];
    defers("maps", 2, &operations);
}

/// All at once. `RCU_TORTURE_SECONDS` says for how long. The tests of the single themes hold that
/// each operation is carried out; here a rare one may not get its turn.
#[test]
fn everything_at_once_is_clean() {
    let seconds = std::env::var("RCU_TORTURE_SECONDS")
        .map_or(3, |seconds| seconds.parse().expect("RCU_TORTURE_SECONDS is a number of seconds"));
    let themes = "readers,floods,limits,quiet,stalls,churn,processes,sleepable,rseq-read,hazards,\
                  sequences,ids,tools,lists,maps";
    let report = defers(themes, seconds, &[]);
    for updates in report["updates"].as_array().expect("a list") {
        assert!(updates["count"].as_u64() > Some(0), "{} was never used", updates["way"]);
    }
}

/// The default one runs in all other tests.
#[test]
fn the_other_engines_are_clean() {
    let _alone = alone();
    for engine in ["poll", "tick", "token"] {
        let args = ["--only", "readers,floods", "--seconds", "1", "--engine", engine];
        let (stdout, _) = expect_code(&run(args), 0);
        assert!(stdout.contains(&format!("{engine} in the private domains")), "{stdout}");
    }
}

#[test]
fn minutes_are_told_instead_of_seconds() {
    let (_, stderr) = expect_code(&run(["--minutes", "2", "--seconds", "3"]), 2);
    assert!(stderr.contains("--minutes"), "{stderr}");
    let (_, stderr) = expect_code(&run(["--only", "no-such"]), 2);
    assert!(stderr.contains("limits"), "{stderr}");
}

#[test]
fn the_library_as_it_is_is_clean() {
    clean("best");
}

#[test]
fn it_is_clean_with_portable_fences() {
    clean("portable");
}

#[test]
fn seed_and_commit_come_first() {
    let _alone = alone();
    let args = "--only readers --seconds 1 --seed 42";
    let (stdout, _) = expect_code(&run(args.split(' ')), 0);
    let mut lines = stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(lines.next(), Some(vec!["seed", "42"]));
    let commit = lines.next().expect("a second line");
    assert_eq!((commit.len(), commit[0]), (2, "commit"));
    assert!(stdout.contains("clean: "), "{stdout}");
}

#[test]
fn an_unknown_mutant_is_refused_with_the_known_ones() {
    let (stdout, stderr) = expect_code(&run(["--mutant", "no-such"]), 2);
    assert!(stdout.is_empty(), "{stdout}");
    let (names, _) = expect_code(&run(["--list-mutants"]), 0);
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
    let _alone = alone();
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
