//! `rcu torture`: the package `quiescence-torture`, which writes to this command's output.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) use quiescence_torture::TortureArgs;
use quiescence_torture::screen::{self, Screen, Table};
use quiescence_torture::{Report, Verdict};

use crate::exit::{Exit, Failure, Result};
use crate::output::{self, Output, Progress};

/// Tortures the library and reports.
pub(crate) fn run(args: &TortureArgs, output: &mut Output) -> Result<Exit> {
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

impl Screen for Output {
    fn line(&mut self, text: &str) -> io::Result<()> {
        Ok(self.line(text)?)
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        Ok(self.heading(text)?)
    }

    fn paragraph(&mut self, text: &str) -> io::Result<()> {
        Ok(self.paragraph(text)?)
    }

    fn entry(&mut self, label: &str, text: &str) -> io::Result<()> {
        Ok(self.entry(label, text)?)
    }

    fn table(&mut self, table: Table) -> io::Result<()> {
        let Table { header, numbers_from, rows } = table;
        Ok(self.table(output::table(&header, numbers_from.., rows))?)
    }

    fn count(&self, count: u64) -> String {
        bench::units::count(count)
    }

    fn json(&mut self, report: &Report<'_>) -> io::Result<()> {
        Ok(self.json(None, report)?)
    }

    fn check_reader(&mut self) -> io::Result<()> {
        Ok(self.check_reader()?)
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        self.interrupt().flag()
    }

    fn progress(&self, total: Duration) -> Box<dyn screen::Progress> {
        Box::new(Progress::new(total))
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
