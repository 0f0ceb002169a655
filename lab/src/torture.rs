//! `rcu torture`: the package `quiescence-torture`, which writes to this command's output.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) use quiescence_torture::TortureArgs;
use quiescence_torture::screen::{self, Screen, Table};
use quiescence_torture::{Report, Verdict};

use crate::exit::{Exit, Failure};
use crate::output::{self, Output, Progress};

/// Tortures the library and reports.
pub(crate) fn run(args: &TortureArgs, output: &mut Output) -> Result<Exit, Failure> {
    let verdict = quiescence_torture::run(args, output).map_err(|failure| match failure {
        screen::Failure::Usage(message) => Failure::Usage(message),
        screen::Failure::Io { doing, error } => Failure::io(doing, error),
    })?;
    Ok(match verdict {
        None | Some(Verdict::Clean | Verdict::Caught) => Exit::Ok,
        Some(Verdict::Faulty | Verdict::Missed) => Exit::Violation,
        Some(Verdict::Interrupted) => Exit::Interrupted,
    })
}

/// What the system said.
fn cause(failure: Failure) -> io::Error {
    match failure {
        Failure::Io { error, .. } => error,
        Failure::BrokenPipe => io::ErrorKind::BrokenPipe.into(),
        Failure::Interrupted => io::ErrorKind::Interrupted.into(),
        Failure::Usage(message)
        | Failure::Unsupported(message)
        | Failure::Noisy(message)
        | Failure::Undecided(message) => io::Error::other(message),
    }
}

impl Screen for Output {
    fn line(&mut self, text: &str) -> io::Result<()> {
        self.line(text).map_err(cause)
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        self.heading(text).map_err(cause)
    }

    fn paragraph(&mut self, text: &str) -> io::Result<()> {
        self.paragraph(text).map_err(cause)
    }

    fn entry(&mut self, label: &str, text: &str) -> io::Result<()> {
        self.entry(label, text).map_err(cause)
    }

    fn table(&mut self, table: Table) -> io::Result<()> {
        let mut ours = output::table(&table.header);
        output::numeric(&mut ours, table.numbers_from..table.header.len());
        for row in table.rows {
            ours.add_row(row);
        }
        self.table(ours).map_err(cause)
    }

    fn count(&self, count: u64) -> String {
        bench::units::count(count)
    }

    fn json(&mut self, report: &Report<'_>) -> io::Result<()> {
        self.json(None, report).map_err(cause)
    }

    fn check_reader(&mut self) -> io::Result<()> {
        self.check_reader().map_err(cause)
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        self.interrupt().flag()
    }

    fn progress(&self, total: Duration) -> Box<dyn screen::Progress> {
        Box::new(self.progress(total))
    }
}

impl screen::Progress for Progress {
    fn announce(&mut self, what: &str) {
        Progress::announce(self, what);
    }

    fn advance(&mut self, by: Duration) {
        Progress::advance(self, by);
    }
}
