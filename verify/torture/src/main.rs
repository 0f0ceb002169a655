//! The program `rcu-torture`: what `rcu torture` is, with few dependencies, so that a build of the
//! copy in which steps can be removed takes little time.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Parser;
use quiescence_torture::screen::{Progress, Screen, Table};
use quiescence_torture::{HELP, Report, TortureArgs, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Tries to catch the library freeing what is still read.
#[derive(Debug, Parser)]
#[command(name = "rcu-torture", version, after_help = HELP)]
struct Cli {
    #[command(flatten)]
    torture: TortureArgs,
    /// Also write the results as JSON to FILE; `-` is standard output, which then carries only that
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Plain text, and a file.
struct Plain {
    json: Option<PathBuf>,
    interrupt: Arc<AtomicBool>,
}

impl Plain {
    fn is_muted(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }
}

impl Screen for Plain {
    fn line(&mut self, text: &str) -> io::Result<()> {
        if self.is_muted() { Ok(()) } else { writeln!(io::stdout(), "{text}") }
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        self.line(&format!("\n{text}"))
    }

    fn paragraph(&mut self, text: &str) -> io::Result<()> {
        self.line(text)
    }

    fn entry(&mut self, label: &str, text: &str) -> io::Result<()> {
        self.line(&format!("{label:<12}{text}"))
    }

    fn table(&mut self, table: Table) -> io::Result<()> {
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

    fn json(&mut self, report: &Report<'_>) -> io::Result<()> {
        let Some(path) = &self.json else { return Ok(()) };
        let text = serde_json::to_string_pretty(report)?;
        if self.is_muted() {
            writeln!(io::stdout(), "{text}")
        } else {
            writeln!(File::create(path)?, "{text}")
        }
    }

    fn check_reader(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt)
    }

    fn progress(&self, _total: Duration) -> Box<dyn Progress> {
        Box::new(())
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match tortured(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn tortured(cli: Cli) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Handlers run in the order of registration, so the second signal ends the process.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupt))?;
        flag::register(signal, Arc::clone(&interrupt))?;
    }
    let verdict = run(&cli.torture, &mut Plain { json: cli.json, interrupt })?;
    Ok(verdict.map_or(ExitCode::SUCCESS, |verdict| ExitCode::from(verdict.exit_code())))
}
