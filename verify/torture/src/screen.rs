//! Where a run writes what it finds.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

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

/// A table: its first column has names, unless all are numbers.
pub(crate) struct Table {
    pub(crate) header: Vec<&'static str>,
    /// Each as long as the header.
    pub(crate) rows: Vec<Vec<String>>,
    /// The columns before this one are text, the others numbers.
    pub(crate) numbers_from: usize,
}

/// Plain text on standard output, and JSON in a file. Where the file is `-` there is JSON alone.
#[derive(Debug)]
pub struct Screen {
    json: Option<PathBuf>,
    /// What `rcu torture` says of where and by what the run was made.
    provenance: Option<serde_json::Value>,
}

impl Screen {
    /// Writes JSON to this file, if one is named.
    pub fn new(json: Option<PathBuf>) -> Self {
        let provenance = std::env::var("RCU_PROVENANCE").ok();
        Self { json, provenance: provenance.and_then(|text| serde_json::from_str(&text).ok()) }
    }

    fn is_muted(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        if self.is_muted() { Ok(()) } else { writeln!(io::stdout(), "{text}") }
    }

    pub(crate) fn heading(&self, text: &str) -> io::Result<()> {
        self.line(&format!("\n{text}"))
    }

    /// A label, and beside it its text.
    pub(crate) fn entry(&self, label: &str, text: &str) -> io::Result<()> {
        self.line(&format!("{label:<12}{text}"))
    }

    pub(crate) fn table(&self, table: Table) -> io::Result<()> {
        let header = table.header.iter().map(|name| (*name).to_owned()).collect();
        let rows: Vec<Vec<String>> = [vec![header], table.rows].concat();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..table.header.len()).filter_map(width).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column < table.numbers_from {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            self.line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }

    /// The whole result, if it is asked for.
    pub(crate) fn json(&self, report: &Report<'_>) -> io::Result<()> {
        #[derive(serde::Serialize)]
        struct Document<'a> {
            #[serde(flatten)]
            report: &'a Report<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            provenance: &'a Option<serde_json::Value>,
        }

        let Some(path) = &self.json else { return Ok(()) };
        let document = Document { report, provenance: &self.provenance };
        let text = serde_json::to_string_pretty(&document)?;
        if self.is_muted() {
            writeln!(io::stdout(), "{text}")
        } else {
            writeln!(File::create(path)?, "{text}")
        }
    }
}
