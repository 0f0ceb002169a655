//! C programs, compiled against our headers or Debian's, and run on our libraries or Debian's.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use xtask::limited;
use xtask::needs::liburcu_0_15;

/// Whose headers, or whose libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose<'l> {
    Ours,
    Debians,
    /// Headers, and libraries to link with, of liburcu 0.15.
    Debian13s,
    /// Libraries only: those of a directory.
    In(&'l Path),
}

/// A directory of this test, empty.
pub(crate) fn scratch(name: &str) -> PathBuf {
    crate::common::scratch("abi", name)
}

/// Compiles one of the programs of `tests/abi`.
pub(crate) fn compile(
    directory: &Path,
    source: &str,
    headers: Whose<'_>,
    options: &[&str],
) -> PathBuf {
    let tree = xtask::compat::built();
    let program = directory.join(source.trim_end_matches(".c"));
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=gnu11",
        "-O2",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
        "-D_GNU_SOURCE",
    ]);
    if headers == Whose::Ours {
        compiler.arg("-I").arg(tree.join("include"));
    }
    if headers == Whose::Debian13s {
        compiler.arg("-I").arg(liburcu_0_15().join("include"));
        compiler.arg("-L").arg(liburcu_0_15().join("lib")).arg("-Wl,--allow-shlib-undefined");
    }
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/abi").join(source));
    // Ours are linked against ours: a program's needs are the same either way.
    if headers == Whose::Ours {
        compiler.arg("-L").arg(tree.join("lib"));
    }
    let output = compiler.args(options).arg("-o").arg(&program).output().expect("cc runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{source} with {headers:?} headers:\n{said}"
    );
    program
}

/// Runs a program on one or the other libraries; ours are given their directory, Debian's are found
/// anyway. A program that hangs is ended, and fails.
pub(crate) fn run(program: &Path, libraries: Whose<'_>, arguments: &[&str]) -> String {
    let output = run_to_end(program, libraries, arguments, &[]);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success(),
        "{} {arguments:?} on {libraries:?} libraries: {} (signal {:?})\n{out}{err}",
        program.display(),
        output.status,
        output.status.signal()
    );
    out.into_owned()
}

fn run_to_end(
    program: &Path,
    libraries: Whose<'_>,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("LD_LIBRARY_PATH").envs(environment.iter().copied());
    let directory = match libraries {
        Whose::Ours => Some(xtask::compat::built().join("lib")),
        Whose::In(directory) => Some(directory.to_path_buf()),
        Whose::Debians => None,
        Whose::Debian13s => unreachable!("they run with the C library of their system only"),
    };
    command.envs(directory.map(|directory| ("LD_LIBRARY_PATH", directory)));
    limited::output(&mut command, Duration::from_secs(60)).expect("it runs")
}

/// Runs a program that must abort; what it said.
pub(crate) fn run_and_abort(
    program: &Path,
    libraries: Whose<'_>,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> String {
    let output = run_to_end(program, libraries, arguments, environment);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let aborted = output.status.signal() == Some(6);
    assert!(aborted, "{} {arguments:?} was to abort: {}\n{said}", program.display(), output.status);
    assert!(!said.is_empty(), "{} {arguments:?} aborted without a word", program.display());
    said
}
