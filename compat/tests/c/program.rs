//! Programs and shared objects in C and C++: compiled against our headers or Debian's, and run on
//! our libraries or Debian's. Each is compiled once, however many tests run it.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use serde::Deserialize;
use xtask::limited;
use xtask::needs::liburcu_0_15;

pub(crate) use crate::scratch::scratch;

/// No program takes so long on a machine that is busy: it hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// In the order of their numbers.
pub(crate) const FLAVORS: [&str; 5] = ["memb", "mb", "qsbr", "bp", "signal"];

/// What a command says by its end; one that hangs is ended.
pub(crate) fn output(command: &mut Command) -> Output {
    let output = limited::output(command, LIMIT);
    output.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// All that was said, to standard output first.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// What a command writes to standard output that must end well.
pub(crate) fn succeeds(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whose headers, or whose libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    /// Of Debian 12: liburcu 0.13.
    Debians,
    /// Headers, and libraries to link with, of Debian 13: liburcu 0.15.
    Debian13s,
}

impl Whose {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Debians => "Debian",
            Self::Debian13s => "Debian 13",
        }
    }
}

/// A liburcu to compare ours with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Version {
    /// Of Debian 12.
    #[serde(rename = "0.13")]
    V13,
    /// Of Debian 13.
    #[serde(rename = "0.15")]
    V15,
}

impl Version {
    pub(crate) fn number(self) -> &'static str {
        if self == Self::V13 { "0.13" } else { "0.15" }
    }
}

/// What compiles `source`, below `tests` or of an absolute path, with warnings as errors. Programs
/// of our headers are linked against ours: their needs are the same either way.
pub(crate) fn compiler(source: &Path, headers: Whose, options: &[&str]) -> Command {
    let is_cpp = source.extension().is_some_and(|extension| extension == "cpp");
    let mut compiler = Command::new(if is_cpp { "g++" } else { "gcc" });
    // Without line tables, which take a fifth of the time, and which no test reads.
    compiler.args(["-O1", "-pthread", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]);
    compiler.arg(if is_cpp { "-std=c++17" } else { "-std=gnu11" });
    let place = match headers {
        Whose::Ours => Some(xtask::compat::built()),
        Whose::Debian13s => Some(liburcu_0_15()),
        Whose::Debians => None,
    };
    if let Some(place) = place {
        compiler.arg("-I").arg(place.join("include")).arg("-L").arg(place.join("lib"));
    }
    if headers == Whose::Debian13s {
        compiler.arg("-Wl,--allow-shlib-undefined");
    }
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source)).args(options);
    compiler
}

/// The program of a source, with these options: compiled by the first test that asks for it.
pub(crate) fn compile(source: &str, headers: Whose, options: &[&str]) -> PathBuf {
    type Programs = Mutex<HashMap<String, Arc<OnceLock<PathBuf>>>>;
    static PROGRAMS: LazyLock<Programs> = LazyLock::new(Programs::default);
    let what = format!("{source} {headers:?} {options:?}");
    let program = Arc::clone(PROGRAMS.lock().unwrap().entry(what.clone()).or_default());
    let make = || {
        let stem = Path::new(source).file_stem().expect("a source has a name");
        let program = scratch(&stem.to_string_lossy()).join("program");
        let output = compiler(source.as_ref(), headers, options).arg("-o").arg(&program).output();
        let output = output.expect("the compiler runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{what}:\n{said}");
        program
    };
    program.get_or_init(make).clone()
}

/// What tells a source its flavour, of which it includes the headers and asks which it is.
pub(crate) fn defines(flavor: &str) -> [String; 2] {
    [format!("-DFLAVOR={flavor}"), format!("-DFLAVOR_{}", flavor.to_uppercase())]
}

/// A program of a flavour.
pub(crate) fn compile_for(flavor: &str, source: &str, headers: Whose, options: &[&str]) -> PathBuf {
    let [name, define] = defines(flavor);
    let library = format!("-lurcu-{flavor}");
    let of_flavor = [&*name, &define, &library, "-lurcu-cds", "-lurcu-common"];
    compile(source, headers, &[options, &of_flavor].concat())
}

/// What runs a program on these libraries: ours are given their directory, Debian's are found
/// anyway.
pub(crate) fn command(program: &Path, libraries: Whose) -> Command {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH").env_remove("QUIESCENCE_DEBUG");
    let directory = match libraries {
        Whose::Ours => Some(xtask::compat::built().join("lib")),
        Whose::Debians => None,
        Whose::Debian13s => unreachable!("they run with the C library of their system only"),
    };
    command.envs(directory.map(|directory| ("LD_LIBRARY_PATH", directory)));
    command
}

/// Runs a program. One that hangs is ended.
pub(crate) fn ended(
    program: &Path,
    libraries: Whose,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Output {
    let mut command = command(program, libraries);
    output(command.args(arguments).envs(environment.iter().copied()))
}

/// What a program wrote that must end well.
pub(crate) fn run(program: &Path, libraries: Whose, arguments: &[&str]) -> String {
    succeeds(command(program, libraries).args(arguments))
}

/// The same on the libraries that are meant: with ours the core is loaded, with Debian's it is not.
pub(crate) fn run_surely(program: &Path, libraries: Whose, arguments: &[&str]) -> String {
    let loaded = succeeds(command(program, libraries).env("LD_TRACE_LOADED_OBJECTS", "1"));
    assert_eq!(loaded.contains("libquiescence"), libraries == Whose::Ours, "{loaded}");
    run(program, libraries, arguments)
}

/// What a program complained of that must abort.
pub(crate) fn aborts(
    program: &Path,
    libraries: Whose,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> String {
    let output = ended(program, libraries, arguments, environment);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (program, status) = (program.display(), output.status);
    let is_abort = status.signal() == Some(libc::SIGABRT);
    assert!(is_abort && !said.is_empty(), "{program} {arguments:?} was to abort: {status}\n{said}");
    said
}
