//! Compiles one program: strictly, against the headers it is meant for and no others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::needs::{debian_headers, debian_libraries, libraries_0_15, liburcu_0_15};

use super::table::Job;
use crate::program::{Version, Whose, output, text};

/// What all jobs share.
#[derive(Debug)]
pub(crate) struct Place {
    /// The sources.
    sources: PathBuf,
    /// `lib` and `include` of ours, as an installation has them.
    pub(crate) ours: PathBuf,
    /// Where the executables go.
    work: PathBuf,
    /// Whether there are Debian 12's libraries to compare with.
    pub(crate) debians: bool,
    /// Whether there are Debian 13's.
    pub(crate) debian_13s: bool,
}

impl Place {
    /// Builds our libraries unless `QUIESCENCE_COMPAT` says where they are.
    pub(crate) fn new(debians: bool, debian_13s: bool) -> Self {
        let ours =
            std::env::var_os("QUIESCENCE_COMPAT").map_or_else(xtask::compat::built, PathBuf::from);
        let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
        fs::create_dir_all(&work).unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        Self { sources, ours, work, debians, debian_13s }
    }
}

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) path: PathBuf,
    pub(crate) job: Job,
}

/// Where Debian's `liburcu-NAME.so.8` is.
pub(crate) fn debian_library(theirs: Version, name: &str) -> PathBuf {
    let directory = match theirs {
        Version::V13 => debian_libraries(),
        Version::V15 => libraries_0_15(),
    };
    directory.join(format!("liburcu-{name}.so.8"))
}

/// The executable, or what the compiler said.
pub(crate) fn compile(place: &Place, job: &Job) -> Result<Compiled, String> {
    let source = place.sources.join(&job.program.source);
    let is_cpp = job.program.source.ends_with(".cpp");
    let stem = source.file_stem().unwrap().to_string_lossy().into_owned();
    let how = if job.inline { "inlined" } else { "exported" };
    let path = place.work.join(format!("{stem}-{}-{:?}-{how}", job.variant.name(), job.headers));
    let dependencies = path.with_extension("d");

    let mut command = Command::new(if is_cpp { "g++" } else { "gcc" });
    command.arg(if is_cpp { "-std=gnu++17" } else { "-std=gnu11" });
    // Where readers are calls there is little to optimise between them; what the compiler warns of
    // needs some of it.
    command.arg(if job.inline { "-O1" } else { "-Og" });
    command.args(["-pthread", "-Wall", "-Wextra", "-Werror", "-MD", "-MF"]);
    // Deprecated names are tested as well.
    command.arg(&dependencies).arg("-Wno-deprecated-declarations");
    command.args(job.variant.define());
    command.args(job.inline.then_some("-D_LGPL_SOURCE"));
    match job.headers {
        Whose::Ours => {
            command.arg("-I").arg(place.ours.join("include"));
            command.arg("-L").arg(place.ours.join("lib"));
            // The core is behind the libraries, and not of the program's concern.
            command.arg("-Wl,-rpath-link").arg(place.ours.join("lib"));
        }
        Whose::Debians => drop(command.args(["-DDEBIAN_HEADERS", "-DLIBURCU_0_13"])),
        Whose::Debian13s => {
            // The system's there, as `/usr/include` is here: what they warn of is not ours.
            command.arg("-DDEBIAN_HEADERS").arg("-isystem").arg(liburcu_0_15().join("include"));
            command.arg("-L").arg(liburcu_0_15().join("lib"));
            // They are of a later C library than the one here, and run with that.
            command.arg("-Wl,--allow-shlib-undefined");
        }
    }
    command.arg("-I").arg(&place.sources).arg(&source).arg("-o").arg(&path);
    command.arg(format!("-lurcu-{}", job.variant.name()));
    // What one library is for is not to be found in another one's place.
    if job.program.source != "futex.c" {
        command.args(["-lurcu-cds", "-lurcu-common"]);
    }
    let output = output(&mut command);
    if !output.status.success() {
        return Err(text(&output));
    }
    only_from_where_they_should(place, job, &dependencies)?;
    Ok(Compiled { path, job: *job })
}

/// A header that is missing in our tree would be found in Debian's, unnoticed.
fn only_from_where_they_should(place: &Place, job: &Job, list: &Path) -> Result<(), String> {
    let dependencies = fs::read_to_string(list).map_err(|error| error.to_string())?;
    let headers = debian_headers();
    let headers = headers.to_str().expect("a path in ASCII");
    let is_foreign = |name: &&str| match job.headers {
        Whose::Ours => name.starts_with(headers) && name.contains("/urcu"),
        Whose::Debians => Path::new(name).starts_with(&place.ours),
        Whose::Debian13s => {
            Path::new(name).starts_with(&place.ours)
                || name.starts_with(headers) && name.contains("/urcu")
        }
    };
    let foreign: Vec<_> = dependencies.split_whitespace().filter(is_foreign).collect();
    if foreign.is_empty() { Ok(()) } else { Err(format!("compiled with {foreign:?}")) }
}
