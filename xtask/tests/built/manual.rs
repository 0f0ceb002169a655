//! The commands of the manual for C, `docs/C.md`, run as they stand there.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use xtask::{limited, needs};

use super::scratch;

/// `cargo xtask` runs the program that is built already: by itself, with the fewer features that it
/// asks for, cargo would build it and what it depends on once more.
const CARGO: &str = r#"cargo() { [ "$1" = xtask ] && shift && "$XTASK" "$@"; }"#;

/// The commands of a document: what stands in its blocks of `sh`.
fn commands(text: &str) -> Vec<&str> {
    let blocks = text.split("```sh\n").skip(1);
    blocks.map(|rest| rest.split("```").next().expect("a block ends")).collect()
}

#[test]
fn the_commands_of_the_manual_for_c_run() {
    needs::or_return!(Gxx, Make, PkgConfig, Cmake, Meson, Valgrind);
    xtask::compat::built();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path| fs::read_to_string(root.join(path)).expect(path);
    let alias = r#"xtask = "run --quiet --package xtask --""#;
    assert!(read(".cargo/config.toml").lines().any(|line| line == alias), "{alias}");
    let manual = read("docs/C.md");
    let commands = commands(&manual);
    assert!(commands.len() > 12, "{} blocks of commands", commands.len());
    let directory = scratch();
    let directory = directory.path();
    // From the repository as far as there are sources to be built, then in a directory of the
    // user's.
    let (install, rest) = commands.split_first().expect("the installation");
    let script = format!(
        "set -eux\n{CARGO}\ncd {root}\n{install}\ncd {directory}\n{rest}",
        root = root.display(),
        directory = directory.display(),
        rest = rest.concat(),
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("PREFIX", directory.join("prefix"));
    shell.env("XTASK", env!("CARGO_BIN_EXE_xtask"));
    for name in ["LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CFLAGS", "CXXFLAGS"] {
        shell.env_remove(name);
    }
    // Several compilers at once, and several programs.
    shell.env("MAKEFLAGS", "-j4").env("CMAKE_BUILD_PARALLEL_LEVEL", "4");
    shell.env("CTEST_PARALLEL_LEVEL", "4");
    let output = limited::output(&mut shell, Duration::from_secs(600)).expect("a shell runs");
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(out.matches("readers: ok").count() >= 6, "{out}");
    // All examples, by CMake and by meson: no test of the examples builds them once more.
    assert!(!out.contains("warning:") && !err.contains("warning:"), "{out}\n{err}");
    assert!(out.contains("0 tests failed out of 7"), "{out}");
    let passed = out.lines().find_map(|line| line.strip_prefix("Ok:"));
    assert_eq!(passed.map(str::trim), Some("7"), "{out}");
}
