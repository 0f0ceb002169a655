//! The C program of [`rcu bench compat`](super): compiled in a directory of its own, and started
//! for each measurement anew, with one library or the other.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// The flavours of liburcu: a program each.
pub(super) const FLAVORS: [&str; 4] = ["memb", "mb", "qsbr", "bp"];

/// The sources, by the names of their files.
const SOURCES: [(&str, &str); 3] = [
    ("program.c", include_str!("program.c")),
    ("flood.c", include_str!("flood.c")),
    ("exported.c", include_str!("exported.c")),
];

/// What these include.
const HEADERS: [(&str, &str); 2] =
    [("program.h", include_str!("program.h")), ("flavor.h", include_str!("flavor.h"))];

/// The limit of ours in a flood: what the default is where there are 1 GiB of memory.
const FLOOD_LIMIT: (&str, &str) = ("QUIESCENCE_LIMIT_OBJECTS", "65536");

/// The programs, compiled.
pub(crate) struct Programs {
    directory: tempfile::TempDir,
    /// That of our libraries.
    ours: PathBuf,
}

impl Programs {
    /// Compiles them, against Debian's headers and libraries.
    pub(crate) fn compile(ours: PathBuf) -> Result<Self, Error> {
        let directory = tempfile::tempdir()
            .map_err(|error| Error::io("cannot make a temporary directory", error))?;
        for (name, text) in SOURCES.into_iter().chain(HEADERS) {
            let source = directory.path().join(name);
            std::fs::write(&source, text)
                .map_err(|error| Error::io(format!("cannot write {}", source.display()), error))?;
        }
        let programs = Self { directory, ours };
        let compilers: Vec<_> =
            FLAVORS.into_iter().map(|flavor| programs.compiler(flavor).spawn()).collect();
        for compiler in compilers {
            let output = compiler.and_then(std::process::Child::wait_with_output);
            let output = output.map_err(|error| {
                Error::io("cannot run cc, the C compiler (apt-get install gcc)", error)
            })?;
            if !output.status.success() {
                return Err(Error::Unsupported(format!(
                    "the program that both libraries are measured under cannot be compiled; it \
                     needs a C compiler and Debian's liburcu (apt-get install gcc libc6-dev \
                     liburcu-dev). cc says:\n{}",
                    String::from_utf8_lossy(&output.stderr)
                )));
            }
        }
        Ok(programs)
    }

    fn program(&self, flavor: &str) -> PathBuf {
        self.directory.path().join(flavor)
    }

    fn compiler(&self, flavor: &str) -> Command {
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O2", "-pthread", "-DNDEBUG"])
            .arg(format!("-DFLAVOR_{}", flavor.to_uppercase()))
            .args(SOURCES.map(|(source, _)| self.directory.path().join(source)))
            .arg("-o")
            .arg(self.program(flavor))
            .args([&format!("-lurcu-{flavor}"), "-lurcu-cds", "-lurcu-common"])
            .stderr(Stdio::piped());
        compiler
    }

    /// Measures in a process of its own, with our libraries or else with those of the system.
    /// Returns so many figures.
    pub(crate) fn measure(
        &self,
        flavor: &str,
        is_ours: bool,
        (measurement, amount): (&str, u64),
        figures: usize,
    ) -> Result<Vec<f64>, Error> {
        let ours = is_ours.then_some(&*self.ours);
        let mut command = Command::new(self.program(flavor));
        match ours {
            Some(directory) => command.env("LD_LIBRARY_PATH", directory),
            None => command.env_remove("LD_LIBRARY_PATH"),
        };
        command.envs(measurement.contains("flood").then_some(FLOOD_LIMIT));
        let output = command.arg(measurement).arg(amount.to_string()).output();
        let output =
            output.map_err(|error| Error::io("cannot start the measured program", error))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<&str> = said.lines().collect();
        let last = lines.pop().filter(|_| output.status.success()).ok_or_else(|| {
            Error::Unsupported(format!(
                "the measured program ended at {measurement}: {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim_end()
            ))
        })?;
        if !are_as_wanted(ours, &lines) {
            return Err(Error::Unsupported(format!(
                "the measured program was to run on {}, but has loaded {}",
                ours.map_or_else(|| "Debian's library".into(), |ours| ours.display().to_string()),
                lines.join(", ")
            )));
        }
        let parsed: Result<Vec<f64>, _> = last.split(' ').map(str::parse).collect();
        parsed.ok().filter(|parsed| parsed.len() == figures).ok_or_else(|| {
            Error::Unsupported(format!(
                "the measured program answers {last:?} to {measurement}, which is to have \
                 {figures} figures"
            ))
        })
    }
}

/// Whether a program that has loaded these libraries runs on ours in that directory, or else on
/// Debian's.
fn are_as_wanted(ours: Option<&Path>, libraries: &[&str]) -> bool {
    let is_core = |file: &&&str| file.contains("/libquiescence");
    let is_in = |directory: &Path, file: &str| {
        Path::new(file).canonicalize().is_ok_and(|file| file.starts_with(directory))
    };
    let has_core = libraries.iter().any(|file| is_core(&file));
    match ours {
        Some(directory) => has_core && libraries.iter().all(|file| is_in(directory, file)),
        None => !has_core && !libraries.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_known_by_its_core() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let file = |name: &str| {
            let path = directory.join(name);
            std::fs::write(&path, "").unwrap();
            path.display().to_string()
        };
        let (library, core) = (file("liburcu-memb.so.8.0.0"), file("libquiescence.so.0"));
        assert!(are_as_wanted(Some(&directory), &[&library, &core]));
        assert!(!are_as_wanted(Some(&directory), &[&library]), "Debian's, in this directory");
        assert!(!are_as_wanted(Some(Path::new("/elsewhere")), &[&library, &core]));
        assert!(are_as_wanted(None, &[&library]) && !are_as_wanted(None, &[]));
        assert!(!are_as_wanted(None, &[&library, &core]), "ours, in the system's place");
    }
}
