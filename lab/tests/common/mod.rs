//! Runs the command `rcu` as a user would, on workloads small enough for a test.

#![allow(dead_code, reason = "each test file uses the part that it needs")]

#[path = "../../../quiescence/tests/common/again.rs"]
pub(crate) mod again;
#[path = "../../../quiescence/tests/common/expect.rs"]
pub(crate) mod expect;
#[path = "../../../quiescence/tests/common/limited.rs"]
mod limited;
pub(crate) mod schema;
mod told;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

pub(crate) use told::{expect_code, fails, prints, told};

/// Flags that make a run as short as a run can be: of a table, and of what has no keys.
pub(crate) const TINY: [&str; 6] = ["--run-ms", "5", "--rounds", "4", "--max-keys", "50"];
const WITHOUT_KEYS: &[&str] = TINY.split_at(4).0;

/// Commands that measure nothing.
const CALM: [&str; 3] = ["simulate", "top", "torture"];

/// One test at a time measures: what is disturbed is measured again, 25 times at worst.
static MEASURES: Mutex<()> = Mutex::new(());

thread_local! {
    /// Until the test that has it ends, and with it its thread.
    static TURN: MutexGuard<'static, ()> =
        MEASURES.lock().unwrap_or_else(PoisonError::into_inner);
}

/// The command, not yet run. If it measures, no other test measures from now on until this one
/// ends.
pub(crate) fn rcu<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rcu"));
    command.args(args).stdin(Stdio::null()).env_remove("NO_COLOR").env_remove("COLUMNS");
    if !command.get_args().next().is_some_and(|first| CALM.iter().any(|calm| first == *calm)) {
        TURN.with(|_| ());
    }
    command
}

/// Runs the command to its end.
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    rcu(args).output().expect("the command starts")
}

/// A run of `rcu advise` that is as short as it can be: one round, which decides nothing.
pub(crate) fn tiny(args: &[&str]) -> Command {
    tiny_of(true, &[&["--rounds", "1"], args].concat())
}

/// A tiny run of `rcu advise` with nothing but the ranking, and the leaves that it does not decide,
/// of a kind that may have no keys.
pub(crate) fn tiny_of(has_keys: bool, args: &[&str]) -> Command {
    let tiny = if has_keys { &TINY } else { WITHOUT_KEYS };
    rcu(tiny.iter().chain(&["--quick", "--skip", "costs", "--skip", "sweep"]).chain(args))
}

/// What a run wrote that had advice, or was too noisy for it: whether it was.
pub(crate) fn advised(output: &Output) -> (String, bool) {
    let (code, stdout, stderr) = told(output);
    assert!([0, 3].contains(&code), "{code}: {stdout}\n{stderr}");
    (stdout, code == 3)
}

/// Fails unless the command refuses these arguments in such words, before it prints anything.
pub(crate) fn refused<S: AsRef<OsStr> + std::fmt::Debug>(args: &[S], expected: &str) {
    let (stdout, stderr) = expect_code(&run(args), 2);
    assert!(stderr.contains(expected), "{args:?}: {stderr}");
    assert!(stdout.is_empty(), "{args:?} printed before it was refused: {stdout}");
    for word in ["f64", "float literal", "invalid digit", "i64", "u32"] {
        assert!(!stderr.contains(word), "{args:?}: {word} is Rust's: {stderr}");
    }
}

/// The document that a command wrote to standard output, where all went well.
pub(crate) fn parsed(output: &Output) -> Value {
    let (stdout, _) = expect_code(output, 0);
    serde_json::from_str(&stdout).expect("nothing but JSON")
}

/// The same, which has its schema.
pub(crate) fn held(output: &Output) -> Value {
    let document = parsed(output);
    schema::hold(&document);
    document
}

/// Runs a command that writes its document to a file, beside what else it writes; and the document,
/// which has its schema.
pub(crate) fn documented(command: &mut Command) -> (Output, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("out.json");
    let output = command.arg("--json").arg(&path).output().expect("the command starts");
    let document = json(&path);
    schema::hold(&document);
    (output, document)
}

/// A file with these bytes in a directory of the test's own.
pub(crate) fn file(directory: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).expect("the file can be written");
    path
}

/// A file of this mode, written by a process of its own: a child that another test forks meanwhile
/// would inherit a descriptor that is open for writing, and the file could not be run (ETXTBSY).
pub(crate) fn of_mode(directory: &Path, name: &str, mode: u32, text: &str) -> PathBuf {
    let (from, path) = (file(directory, &format!("{name}.txt"), text), directory.join(name));
    let mut install = Command::new("install");
    assert!(install.arg(format!("-m{mode:o}")).args([&from, &path]).status().unwrap().success());
    path
}

/// A JSON file.
pub(crate) fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the file is there");
    serde_json::from_str(&text).expect("the file is JSON")
}
