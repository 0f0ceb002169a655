//! Programs and shared objects in C and C++, compiled against our headers, and run on our
//! libraries.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use xtask::limited;

/// An empty directory of one test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    crate::common::scratch("regressions", name)
}

/// Compiles a source of `tests/regressions`, or one of an absolute path, with warnings as errors,
/// into `directory/name`. C++ if its name says so.
pub(crate) fn compile(directory: &Path, source: &str, name: &str, options: &[&str]) -> PathBuf {
    let tree = xtask::compat::built();
    let into = directory.join(name);
    let is_cpp = source.ends_with(".cpp");
    let mut compiler = Command::new(if is_cpp { "g++" } else { "gcc" });
    compiler.args(["-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]);
    compiler.arg(if is_cpp { "-std=c++17" } else { "-std=gnu11" });
    compiler.arg("-I").arg(tree.join("include"));
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions").join(source));
    compiler.arg("-L").arg(tree.join("lib")).args(options);
    compiler.args(["-lurcu-memb", "-lquiescence", "-ldl", "-o"]).arg(&into);
    let output = compiler.output().expect("the compiler runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{source} {options:?}:\n{said}");
    into
}

/// Runs a program on our libraries. One that hangs is ended.
pub(crate) fn run(
    program: &Path,
    arguments: &[&dyn AsRef<OsStr>],
    environment: &[(&str, &str)],
) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", xtask::compat::built().join("lib"));
    command.env_remove("QUIESCENCE_DEBUG").envs(environment.iter().copied());
    limited::output(&mut command, Duration::from_secs(100)).expect("it runs")
}

/// What a program wrote that must end well.
pub(crate) fn succeeds(program: &Path, arguments: &[&dyn AsRef<OsStr>]) -> String {
    let output = run(program, arguments, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}\n{said}", program.display(), output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a program complained of that must abort.
pub(crate) fn aborts(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{}\n{said}", output.status);
    said
}
