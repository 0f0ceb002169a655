//! How the command ends: the one place for exit codes and for what is no error at all.
//!
//! Every subcommand returns `Result<Exit>`. An [`Exit`] is a verdict on what was measured;
//! a [`Failure`] is why nothing could be. A closed pipe (`rcu advise | head -1`) is neither: the
//! reader has what it wanted, so the command ends quietly and well.

use std::fmt;
use std::io;
use std::path::Path;

/// The verdict of a command that ran.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// What was asked was done, and nothing is wrong.
    Ok = 0,
    /// A checksum error, a reader that saw freed memory, or a regression.
    Violation = 1,
    /// The arguments or the input files cannot be used.
    Usage = 2,
    /// The machine is too noisy for a verdict.
    Noisy = 3,
    /// This machine lacks what was asked for.
    Unsupported = 4,
    /// The results could not be written: the disk is full, or has failed.
    NotWritten = 5,
    /// A comparison that cannot be decided; `git bisect run` skips the commit.
    Undecided = 125,
    /// Ctrl-C; what had been measured is written.
    Interrupted = 130,
}

/// What comes of a part of a command.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command could not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code that it means.
    pub(crate) exit: Exit,
    /// Nothing if the user knows: help was asked for, or what is wrong with the arguments has been
    /// written, or no process reads standard output any more.
    pub(crate) message: Option<String>,
}

impl Failure {
    /// What the exit code says is the case; the words say why.
    pub(crate) fn because(exit: Exit, why: impl fmt::Display) -> Failure {
        Failure { exit, message: Some(why.to_string()) }
    }

    /// An argument or an input is wrong; the words say which, where, and what would be right.
    pub(crate) fn usage(why: impl fmt::Display) -> Failure {
        Failure::because(Exit::Usage, why)
    }

    /// One side of a comparison could not be measured; the words say why.
    pub(crate) fn undecided(why: impl fmt::Display) -> Failure {
        Failure::because(Exit::Undecided, why)
    }

    /// Ctrl-C came before there was anything to show.
    pub(crate) fn interrupted() -> Failure {
        Failure::because(Exit::Interrupted, "interrupted before there was anything to show")
    }

    /// The user has been told.
    pub(crate) fn told(exit: Exit) -> Failure {
        Failure { exit, message: None }
    }

    /// An I/O error with what was being done; a closed pipe, which is then standard output, is no
    /// error.
    pub(crate) fn io(doing: impl fmt::Display, error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::told(Exit::Ok);
        }
        let exit = if is_of_the_disk(&error) { Exit::NotWritten } else { Exit::Usage };
        Failure::because(exit, format_args!("{doing}: {error}"))
    }

    /// The same, for a file: if it is a pipe that is closed, results are lost.
    pub(crate) fn file(verb: &str, path: &Path, error: io::Error) -> Failure {
        let doing = format!("cannot {verb} {}", path.display());
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::because(Exit::NotWritten, format_args!("{doing}: {error}"));
        }
        Failure::io(doing, error)
    }
}

/// The text of a file that the user named.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, error))
}

/// Whether the disk refuses, and not what the user named.
pub(crate) fn is_of_the_disk(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let failed = Some(rustix::io::Errno::IO.raw_os_error());
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
        || error.raw_os_error() == failed
}

impl From<bench::Error> for Failure {
    fn from(error: bench::Error) -> Failure {
        match error {
            bench::Error::Usage(why) => Failure::usage(why),
            bench::Error::Unsupported(why) => Failure::because(Exit::Unsupported, why),
            bench::Error::Io { doing, error } => Failure::io(doing, error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or_default())
    }
}
