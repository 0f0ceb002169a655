//! What the manuals say: the commands of `docs/C.md` are run, and the lists of environment
//! variables are the same everywhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::program::{output, text};
use crate::scratch::scratch;
use xtask::limited;
use xtask::needs;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("compat is a folder").to_path_buf()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The commands of a document: what stands in its blocks of `sh`.
fn commands(text: &str) -> Vec<&str> {
    let blocks = text.split("```sh\n").skip(1);
    blocks.map(|rest| rest.split("```").next().expect("a block ends")).collect()
}

#[test]
fn the_commands_of_the_manual_for_c_run() {
    needs::or_return!(Gxx, Make, PkgConfig, Cmake, Meson, Valgrind);
    xtask::compat::built();
    let manual = read("docs/C.md");
    let commands = commands(&manual);
    assert!(commands.len() > 12, "{} blocks of commands", commands.len());
    let directory = scratch("manual");
    // From the repository as far as there are sources to be built, then in a directory of the
    // user's.
    let (install, rest) = commands.split_first().expect("the installation");
    let script = format!(
        "set -eux\ncd {root}\n{install}\ncd {directory}\n{rest}",
        root = root().display(),
        directory = directory.display(),
        rest = rest.concat(),
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("PREFIX", directory.join("prefix"));
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

/// The environment variables that a text names.
fn variables(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    let names = words.filter(|word| word.starts_with("QUIESCENCE_") && !word.ends_with('_'));
    names.map(str::to_owned).collect()
}

#[test]
fn all_lists_of_variables_are_the_same() {
    let readme = read("compat/README.md");
    let (_, table) = readme.split_once("## What the environment says").expect("the table");
    let (table, _) = table.split_once("\n## ").expect("its end");
    let rows = table.lines().filter(|line| line.starts_with("| `QUIESCENCE_"));
    let listed = variables(&rows.map(|row| row.split('|').nth(1).unwrap()).collect::<String>());
    assert!(listed.len() >= 10, "{listed:?}");
    let page = read("compat/man/libquiescence-urcu.7");
    let (_, section) = page.split_once(".SH ENVIRONMENT").expect("the section");
    let (section, _) = section.split_once(".SH ").expect("its end");
    let headings = section.lines().filter(|line| line.starts_with(".B QUIESCENCE_"));
    assert_eq!(variables(&headings.collect::<Vec<_>>().join("\n")), listed);
    // The manual for C names some, and none that is not there.
    let named = variables(&read("docs/C.md"));
    assert!(named.len() >= 4 && named.is_subset(&listed), "{named:?}");
}

/// By groff itself, which complains of what it does not know.
#[test]
fn the_manual_page_is_well_formed() {
    let groff = Command::new("groff").arg("--version").output();
    if !groff.is_ok_and(|output| output.status.success()) {
        needs::skipped("groff", "groff-base");
        return;
    }
    let page = root().join("compat/man/libquiescence-urcu.7");
    let format = output(Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8"]).arg(page));
    assert!(format.status.success() && format.stderr.is_empty(), "{}", text(&format));
}
