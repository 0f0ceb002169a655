//! How the scripts of `compat/clients` end: what `common.sh` promises each of them.
//!
//! A script here is a few lines that source it; what hangs in it would hang for longer than any
//! test may take.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use xtask::needs;

/// A function that waits for what does not come, and whose messages go nowhere meanwhile.
const WAITS: &str = "never() { sleep 0.02; false; }\nuntil_true 600 never never\n";

/// A program that does not end, in the foreground.
const HANGS: &str = "sleep 600.5\n";

/// Tries a script for each of these at once: they wait most of the time.
fn whatever_it_waits_for(tries: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| tries(HANGS));
        tries(WAITS);
    });
}

/// A folder with an executable script of these lines, and a folder `tmp` for what it makes.
fn script(lines: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let common = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compat/clients/common.sh");
    let path = folder.path().join("trial.sh");
    fs::create_dir(folder.path().join("tmp")).expect("a folder");
    let text = folder.path().join("trial.txt");
    fs::write(&text, format!("#!/usr/bin/env bash\nsource {}\n{lines}", common.display()))
        .expect("the script is written");
    // By a process of its own: a child that another test forks meanwhile would inherit a descriptor
    // that is open for writing, and the script could not be run (ETXTBSY).
    let mut install = Command::new("install");
    let status = install.args(["-m", "755"]).args([&text, &path]).status().expect("coreutils");
    assert!(status.success(), "the script is installed");
    folder
}

/// To be run on Debian's libraries only, so that none have to be built.
fn command(folder: &Path) -> Command {
    let mut command = Command::new(folder.join("trial.sh"));
    command.args(["--only", "stock"]).env("TMPDIR", folder.join("tmp"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// It has failed, says after which limit, and has left neither a file nor a process behind.
fn failed(folder: &Path, output: &Output, limit_s: u32) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = format!("trial: FAILED: took more than {limit_s} s, or was told to end\n");
    assert_eq!(said.matches("FAILED").count(), 1, "{said}");
    assert!(said.contains(&expected), "{said}");
    let left = fs::read_dir(folder.join("tmp")).expect("the folder is there").count();
    assert_eq!(left, 0, "files are left");
    assert!(!runs(&folder.join("tmp")), "a process is left");
}

/// Does a process have this path in its environment?
fn runs(path: &Path) -> bool {
    let path = path.to_str().expect("UTF-8").as_bytes();
    fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        let variables = fs::read(entry.path().join("environ")).unwrap_or_default();
        variables.windows(path.len()).any(|some| some == path)
    })
}

#[test]
fn says_that_its_time_is_over_whatever_it_waits_for() {
    if !needs::met_for("", &["Scripts"]) {
        return;
    }
    whatever_it_waits_for(|waits| {
        let start = "client trial 1 1 \"$@\"\nstart log stock sleep 600.5\n";
        let folder = script(&format!("{start}{waits}"));
        let output = command(folder.path()).output().expect("the script runs");
        failed(folder.path(), &output, 1);
    });
}

/// Namespaces of one's own, which `alone` needs: without, this says so.
fn has_namespaces() -> bool {
    if !needs::met_for("", &["Scripts"]) {
        return false;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "ip", "link"]);
    let has = unshare.output().is_ok_and(|output| output.status.success());
    if !has {
        needs::skipped("right to namespaces", "util-linux and iproute2, and be root");
    }
    has
}

#[test]
fn ends_in_its_namespaces_when_it_is_told_from_outside() {
    if !has_namespaces() {
        return;
    }
    whatever_it_waits_for(|waits| {
        let start = "alone \"$@\"\nclient trial 500 500 \"$@\"\nstart log stock sleep 600.5\n";
        let folder = script(&format!("{start}echo ready\n{waits}"));
        let mut child = command(folder.path()).spawn().expect("the script runs");
        let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("it says something");
        assert_eq!(line, "ready\n");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
        let mut stderr = Vec::new();
        child.stderr.take().expect("a pipe").read_to_end(&mut stderr).expect("it is read");
        let status = child.wait().expect("it ends");
        failed(folder.path(), &Output { status, stdout: Vec::new(), stderr }, 500);
    });
}

#[test]
fn passes_on_how_it_ended_in_its_namespaces() {
    if !has_namespaces() {
        return;
    }
    for code in [0, 1, 4, 5, 7] {
        let folder = script(&format!("alone \"$@\"\nclient trial 9 9 \"$@\"\nexit {code}\n"));
        let status = command(folder.path()).status().expect("the script runs");
        assert_eq!(status.code(), Some(code));
    }
}
