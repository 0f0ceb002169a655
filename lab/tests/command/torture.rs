//! `rcu torture` is the program `rcu-torture`, whose tests are in its package.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use crate::common::{expect_code, fails, held, run};

/// `rcu torture ARGS`, where the program is built: all tests together have built it before.
fn torture(args: &str) -> std::process::Output {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let directory = Path::new(env!("CARGO_BIN_EXE_rcu")).parent().expect("a directory");
        if !directory.join("rcu-torture").exists() {
            let profile = directory.file_name().expect("the profile's directory");
            let profile = if profile == "debug" { OsStr::new("dev") } else { profile };
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args("build --quiet --locked --package quiescence-torture --profile".split(' '));
            cargo.arg(profile).arg("--target-dir").arg(directory.parent().expect("the target's"));
            assert!(cargo.status().expect("cargo runs").success());
        }
    });
    run(["torture"].into_iter().chain(args.split(' ')))
}

/// A copy of the command without `rcu-torture` beside it.
fn alone(directory: &Path) -> PathBuf {
    let alone = directory.join("rcu");
    // By a process of its own: a file that is open for writing here could not be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_rcu")).arg(&alone).status();
    assert!(copied.unwrap().success());
    alone
}

#[test]
fn a_run_is_written_as_text_and_as_json() {
    let args = "--only readers,processes --seconds 1 --seed 42";
    let (stdout, _) = expect_code(&torture(args), 0);
    assert!(stdout.starts_with("seed"), "{stdout}");
    assert!(stdout.contains("clean: "), "{stdout}");
    let report = held(&torture(&format!("--json - {args}")));
    assert_eq!(report["schema"], "quiescence/torture");
    assert_eq!(report["verdict"], "clean");
    let children = report["deferred"].as_array().expect("a list");
    let child = children.iter().find(|done| done["operation"] == "child process");
    assert!(child.is_some_and(|child| child["count"].as_u64() > Some(0)), "{report}");
}

#[test]
fn what_is_wrong_with_its_options_is_its_own_answer() {
    fails(&torture("--seconds 0"), 2, "0 is not in 1..=31536000");
    fails(&run(["--json", "-", "torture"]), 2, "'torture' cannot be used with '--json <FILE>'");
    fails(&torture("--list-mutants --mutant no-scan"), 2, "Usage: rcu torture ");
}

#[test]
fn the_help_of_torture_is_there_without_its_program() {
    torture("--list-mutants");
    let program = Path::new(env!("CARGO_BIN_EXE_rcu")).with_file_name("rcu-torture");
    let mut program = Command::new(program);
    let (own, _) = expect_code(&program.arg0("rcu torture").arg("--help").output().unwrap(), 0);
    let directory = tempfile::tempdir().unwrap();
    let alone = alone(directory.path());
    for words in [["torture", "--help"], ["torture", "-h"], ["help", "torture"]] {
        let (text, _) = expect_code(&Command::new(&alone).args(words).output().unwrap(), 0);
        let text = text.strip_prefix("Example: rcu torture\n\n").expect("an example");
        assert_eq!(text.trim_end(), own.trim_end(), "{words:?}: lab/src/help/torture.txt is old");
    }
}

#[test]
fn without_the_program_the_answer_says_how_to_build_it() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        Command::new(alone(directory.path())).args(["torture", "--seconds", "1"]).output().unwrap();
    let (_, stderr) = expect_code(&output, 4);
    assert!(stderr.contains("cargo build --release -p quiescence-torture"), "{stderr}");
    assert!(stderr.contains("Usage: rcu torture [OPTIONS]"), "{stderr}");
}
