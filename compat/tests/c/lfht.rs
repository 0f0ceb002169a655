//! The hash table beside liburcu's own: the same operations, and everything that can be seen of
//! them the same.
//!
//! The program writes down what each call answered and the order of the whole table; it is run with
//! Debian's libraries and with ours, and what it wrote is compared. Needs gcc and Debian's
//! liburcu-dev; skipped without.

use std::path::Path;
use std::process::Command;

use xtask::needs;
use xtask::needs::Need::Liburcu;

fn compile(directory: &Path) -> std::path::PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lfht/operations.c");
    let program = directory.join("operations");
    let said = Command::new("gcc")
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-D_LGPL_SOURCE", "-o"])
        .args([&program, &source])
        .args(["-lurcu-memb", "-lurcu-cds", "-lurcu-common", "-lpthread"])
        .output()
        .expect("gcc runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    program
}

/// What the program writes, with the libraries of a directory, or Debian's.
fn transcript(program: &Path, libraries: Option<&Path>, seed: u32) -> String {
    let mut command = Command::new(program);
    command.args([seed.to_string(), "300".to_owned()]).env_remove("LD_LIBRARY_PATH");
    if let Some(libraries) = libraries {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    let mut loads = Command::new(program);
    loads
        .env_remove("LD_LIBRARY_PATH")
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let loaded = loads.env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
    let loaded = String::from_utf8_lossy(&loaded.stdout);
    assert_eq!(loaded.contains("libquiescence"), libraries.is_some(), "{loaded}");
    let said = command.output().unwrap();
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{libraries:?}, seed {seed}: {} {errors}", said.status);
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn the_same_operations_have_the_same_answers() {
    if !needs::met(&[Liburcu]) {
        return;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lfht");
    std::fs::create_dir_all(&directory).unwrap();
    let program = compile(&directory);
    let libraries = xtask::compat::built().join("lib");
    for seed in 1..=5 {
        let theirs = transcript(&program, None, seed);
        let ours = transcript(&program, Some(&libraries), seed);
        assert!(theirs.lines().count() > 10_000, "it did what it was to do");
        for (number, (theirs, ours)) in theirs.lines().zip(ours.lines()).enumerate() {
            assert_eq!(ours, theirs, "seed {seed}, line {}: ours against Debian's", number + 1);
        }
        assert_eq!(ours.len(), theirs.len());
    }
}
