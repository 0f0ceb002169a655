//! Where a run writes what it finds.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::report::Report;

/// Why there is no result.
pub(crate) enum Failure {
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

/// Plain text on standard output, and JSON in a file. Where the file is `-` there is JSON alone.
pub(crate) struct Screen {
    json: Option<Sink>,
}

/// Where the JSON goes.
enum Sink {
    Stdout,
    File(File),
}

impl Screen {
    /// Writes JSON to this file, if one is named. It is opened here, and not emptied yet: a bad
    /// path costs no hour of torture.
    pub(crate) fn new(json: Option<&Path>) -> Result<Self, Failure> {
        let open = |path: &Path| match path.as_os_str() == "-" {
            true => Ok(Sink::Stdout),
            false => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(false).open(path).map(Sink::File)
            }
        };
        let json = json.map(open).transpose();
        let json = json.map_err(|error| Failure::io("cannot write the file of --json", error))?;
        Ok(Self { json })
    }

    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        let is_muted = matches!(self.json, Some(Sink::Stdout));
        if is_muted { Ok(()) } else { writeln!(io::stdout(), "{text}") }
    }

    /// A label, and beside it its text.
    pub(crate) fn entry(&self, label: &str, text: &str) -> io::Result<()> {
        self.line(&format!("{label:<12}{text}"))
    }

    /// What JSON has as a list of objects, as a table, if there is something in it: texts stand
    /// first and begin at the left, numbers end at the right.
    pub(crate) fn table(&self, heading: &str, list: &[impl Serialize]) -> io::Result<()> {
        let rows = list.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
        let Some(first) = rows.first().and_then(Value::as_object) else { return Ok(()) };
        let (texts, numbers): (Vec<_>, Vec<_>) =
            first.keys().partition(|name| first[*name].is_string());
        let mut lines = vec![String::new(); rows.len() + 1];
        for name in texts.iter().chain(&numbers) {
            let cells = rows.iter().map(|row| match &row[*name] {
                Value::String(text) => text.clone(),
                number => number.to_string(),
            });
            let cells: Vec<String> = std::iter::once((*name).clone()).chain(cells).collect();
            let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            for (line, cell) in lines.iter_mut().zip(cells) {
                line.push_str(&match texts.contains(name) {
                    true => format!("{cell:<width$}  "),
                    false => format!("{cell:>width$}  "),
                });
            }
        }
        self.line(&format!("\n{heading}"))?;
        lines.iter().try_for_each(|line| self.line(line.trim_end()))
    }

    /// The whole result, if it is asked for.
    pub(crate) fn json(&self, report: &Report<'_>) -> io::Result<()> {
        let Some(sink) = &self.json else { return Ok(()) };
        let text = serde_json::to_string_pretty(report)?;
        match sink {
            Sink::Stdout => writeln!(io::stdout(), "{text}"),
            Sink::File(file) => {
                let mut file = file;
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                writeln!(file, "{text}")
            }
        }
    }
}
