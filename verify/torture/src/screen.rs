//! Where a run writes what it finds, and how it is asked to end.

use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::report::Report;

/// Why there is no result.
#[derive(Debug)]
pub enum Failure {
    /// An argument is wrong; the message says which, and what would be right.
    Usage(String),
    /// The system refused something.
    Io {
        /// What was being done, as in "cannot start a thread".
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl Failure {
    pub(crate) fn io(doing: &'static str, error: io::Error) -> Self {
        Self::Io { doing, error }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// A table: its first column has names, unless all are numbers.
#[derive(Clone, Debug)]
pub struct Table {
    /// The header.
    pub header: Vec<&'static str>,
    /// The rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
    /// The columns before this one are text, the others numbers.
    pub numbers_from: usize,
}

/// The terminal, files and signals of a program that tortures. Errors are those of the system.
#[expect(clippy::missing_errors_doc, reason = "said once, above")]
pub trait Screen {
    /// Writes a line.
    fn line(&mut self, text: &str) -> io::Result<()>;
    /// Writes a heading.
    fn heading(&mut self, text: &str) -> io::Result<()>;
    /// Writes a paragraph.
    fn paragraph(&mut self, text: &str) -> io::Result<()>;
    /// Writes a label, and beside it its text.
    fn entry(&mut self, label: &str, text: &str) -> io::Result<()>;
    /// Writes a table.
    fn table(&mut self, table: Table) -> io::Result<()>;
    /// A count as people read it.
    fn count(&self, count: u64) -> String {
        count.to_string()
    }
    /// Writes the whole result as JSON, if that is asked for.
    fn json(&mut self, report: &Report<'_>) -> io::Result<()>;
    /// Fails if the results have no reader any more.
    fn check_reader(&mut self) -> io::Result<()>;
    /// Whether the user asked the run to stop.
    fn interrupt(&self) -> std::sync::Arc<AtomicBool>;
    /// A run of about this length begins; the box is dropped when it has ended.
    fn progress(&self, total: Duration) -> Box<dyn Progress>;
}

/// The progress of a run.
pub trait Progress {
    /// Says what is being done now.
    fn announce(&mut self, what: &str);
    /// Says that the run has got on.
    fn advance(&mut self, by: Duration);
}

/// No progress is shown.
impl Progress for () {
    fn announce(&mut self, _what: &str) {}
    fn advance(&mut self, _by: Duration) {}
}

pub(crate) const CANNOT_WRITE: &str = "cannot write to standard output";
