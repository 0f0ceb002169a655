//! Compiles one program: strictly, against the headers it is meant for and no others.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::needs::{debian_headers, debian_libraries, libraries_0_15, liburcu_0_15};

use super::table::Job;
use crate::program::{Version, Whose, compiler, output, text};
use crate::scratch::scratch;

/// Where Debian's `liburcu-NAME.so.8` is.
pub(crate) fn debian_library(theirs: Version, name: &str) -> PathBuf {
    let directory = match theirs {
        Version::V13 => debian_libraries(),
        Version::V15 => libraries_0_15(),
    };
    directory.join(format!("liburcu-{name}.so.8"))
}

/// The executable, or what the compiler said.
pub(crate) fn compile(job: &Job) -> Result<PathBuf, String> {
    let source = Path::new("programs").join(&job.program.source);
    let is_cpp = job.program.source.ends_with(".cpp");
    let path = scratch("programs").join("program");
    let dependencies = path.with_extension("d");
    // Where readers are calls there is little to optimise between them; what the compiler warns of
    // needs some of it. Deprecated names are tested as well.
    let options = [if job.inline { "-O1" } else { "-Og" }, "-Wno-deprecated-declarations"];
    let mut command = compiler(&source, job.headers, &options);
    command.args(is_cpp.then_some("-std=gnu++17")).arg("-MD").arg("-MF").arg(&dependencies);
    command.args(job.variant.define()).args(job.inline.then_some("-D_LGPL_SOURCE"));
    match job.headers {
        Whose::Ours => {}
        Whose::Debians => drop(command.args(["-DDEBIAN_HEADERS", "-DLIBURCU_0_13"])),
        // The system's there, as `/usr/include` is here: what they warn of is not ours.
        Whose::Debian13s => {
            command.arg("-DDEBIAN_HEADERS").arg("-isystem").arg(liburcu_0_15().join("include"));
        }
    }
    command.arg("-o").arg(&path).arg(format!("-lurcu-{}", job.variant.name()));
    // What one library is for is not to be found in another one's place.
    if job.program.source != "futex.c" {
        command.args(["-lurcu-cds", "-lurcu-common"]);
    }
    let output = output(&mut command);
    if !output.status.success() {
        return Err(text(&output));
    }
    only_from_where_they_should(job, &dependencies)?;
    Ok(path)
}

/// A header that is missing in our tree would be found in Debian's, unnoticed.
fn only_from_where_they_should(job: &Job, list: &Path) -> Result<(), String> {
    let dependencies = fs::read_to_string(list).map_err(|error| error.to_string())?;
    let (ours, headers) = (xtask::compat::built(), debian_headers());
    let headers = headers.to_str().expect("a path in ASCII");
    let is_ours = |name: &str| Path::new(name).starts_with(&ours);
    let is_debians = |name: &str| name.starts_with(headers) && name.contains("/urcu");
    let is_foreign = |name: &&str| match job.headers {
        Whose::Ours => is_debians(name),
        Whose::Debians => is_ours(name),
        Whose::Debian13s => is_ours(name) || is_debians(name),
    };
    let foreign: Vec<_> = dependencies.split_whitespace().filter(is_foreign).collect();
    if foreign.is_empty() { Ok(()) } else { Err(format!("compiled with {foreign:?}")) }
}
