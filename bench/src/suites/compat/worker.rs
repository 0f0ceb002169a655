//! The C program of [`rcu bench compat`](super): compiled in a directory of its own, started with
//! one library or the other, and asked for measurements by a line each.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Error;

/// A flavour of liburcu: a program of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    Memb,
    Mb,
    Qsbr,
    Bp,
}

impl Flavor {
    const ALL: [Self; 4] = [Self::Memb, Self::Mb, Self::Qsbr, Self::Bp];

    fn name(self) -> &'static str {
        match self {
            Self::Memb => "memb",
            Self::Mb => "mb",
            Self::Qsbr => "qsbr",
            Self::Bp => "bp",
        }
    }
}

/// The programs, compiled.
#[derive(Debug)]
pub(crate) struct Workers {
    directory: tempfile::TempDir,
}

impl Workers {
    /// Compiles them, against Debian's headers and libraries.
    pub(crate) fn compile() -> Result<Self, Error> {
        let directory = tempfile::tempdir()
            .map_err(|error| Error::io("cannot make a temporary directory", error))?;
        let source = directory.path().join("worker.c");
        std::fs::write(&source, include_str!("worker.c"))
            .map_err(|error| Error::io(format!("cannot write {}", source.display()), error))?;
        let workers = Self { directory };
        let compilers: Vec<_> =
            Flavor::ALL.into_iter().map(|flavor| workers.compiler(flavor, &source)).collect();
        for compiler in compilers {
            let output = compiler.and_then(Child::wait_with_output);
            let output = output.map_err(|error| {
                Error::io("cannot run cc, the C compiler (apt-get install gcc)", error)
            })?;
            if !output.status.success() {
                return Err(Error::Unsupported(format!(
                    "the program that both libraries are measured under cannot be compiled; it needs a C \
                     compiler and Debian's liburcu (apt-get install gcc libc6-dev liburcu-dev). cc says:\n{}",
                    String::from_utf8_lossy(&output.stderr)
                )));
            }
        }
        Ok(workers)
    }

    fn program(&self, flavor: Flavor) -> PathBuf {
        self.directory.path().join(flavor.name())
    }

    fn compiler(&self, flavor: Flavor, source: &Path) -> std::io::Result<Child> {
        let name = flavor.name();
        Command::new("cc")
            .args(["-O2", "-pthread", "-DNDEBUG"])
            .arg(format!("-DFLAVOR_{}", name.to_uppercase()))
            .arg(source)
            .arg("-o")
            .arg(self.program(flavor))
            .args([&format!("-lurcu-{name}"), "-lurcu-cds", "-lurcu-common", "-ldl"])
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Starts a program with the libraries of this directory, or else with those of the system.
    pub(crate) fn start(&self, flavor: Flavor, ours: Option<&Path>) -> Result<Worker, Error> {
        let mut command = Command::new(self.program(flavor));
        match ours {
            Some(directory) => command.env("LD_LIBRARY_PATH", directory),
            None => command.env_remove("LD_LIBRARY_PATH"),
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Error::io("cannot start the measured program", error))?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are pipes");
        };
        let mut worker = Worker { child, questions, answers: BufReader::new(answers) };
        let library = worker.answer("where it was loaded from")?;
        let core = worker.answer("where its core is")?;
        if is_as_wanted(ours, &library, &core) {
            return Ok(worker);
        }
        Err(Error::Unsupported(format!(
            "the measured program was to run on {}, but has loaded {library} (libquiescence: {core})",
            ours.map_or_else(|| "Debian's library".into(), |ours| ours.display().to_string())
        )))
    }
}

/// Whether a program that has loaded this library, with this core or none, runs on ours in that
/// directory, or else on Debian's.
fn is_as_wanted(ours: Option<&Path>, library: &str, core: &str) -> bool {
    let is_in = |directory: &Path, file: &str| {
        Path::new(file).canonicalize().is_ok_and(|file| file.starts_with(directory))
    };
    match ours {
        Some(directory) => is_in(directory, library) && is_in(directory, core),
        None => core == "none",
    }
}

/// A program that runs. It ends when its questions do.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Asks for a figure.
    pub(crate) fn measure(&mut self, measurement: &str, amount: u64) -> Result<f64, Error> {
        writeln!(self.questions, "{measurement} {amount}").map_err(|_| self.lost(measurement))?;
        let answer = self.answer(measurement)?;
        answer.parse().map_err(|_| {
            Error::Unsupported(format!("the measured program answers {answer:?} to {measurement}"))
        })
    }

    fn answer(&mut self, question: &str) -> Result<String, Error> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => Ok(line.trim_end().to_owned()),
            _ => Err(self.lost(question)),
        }
    }

    fn lost(&mut self, question: &str) -> Error {
        let ended = self.child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
        Error::Unsupported(format!("the measured program ended at {question:?}: {ended}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // At the end of a case nothing is being measured, and what is killed leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
        let (library, core) = (file("liburcu-memb.so.8"), file("libquiescence.so.0"));
        assert!(is_as_wanted(Some(&directory), &library, &core));
        assert!(!is_as_wanted(Some(&directory), &library, "none"), "Debian's, in this directory");
        assert!(!is_as_wanted(Some(Path::new("/elsewhere")), &library, &core));
        assert!(is_as_wanted(None, &library, "none"));
        assert!(!is_as_wanted(None, &library, &core), "ours, in the system's place");
    }
}
