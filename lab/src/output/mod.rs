//! Where results go: text to the terminal or a pipe, JSON to a file, progress to standard error.
//!
//! Every command writes through one [`Output`], so that the same things hold for all of them:
//! colours only on a terminal and never against `NO_COLOR`; nothing but JSON on standard output
//! with `--json -`; a progress bar only when standard error is a terminal; and what cannot be
//! written to standard output ends the command, quietly if that is a closed pipe, unless a file
//! that the user asked for is still to be written. No line fails by itself: it is told at the end.

mod document;
mod file;
mod progress;
mod table;
mod text;

use std::fmt::Display;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, mem};

use anstyle::{AnsiColor, Style};
use comfy_table::Table;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::exit::{Exit, Failure, Result};
use crate::html::Markup;
use crate::interrupt::Interrupt;
use crate::provenance::Provenance;
use crate::record::{self, Block};
pub(crate) use document::{SchemaId, merged, run_out};
use file::Opened;
pub(crate) use file::ResultFile;
pub(crate) use progress::Progress;
pub(crate) use table::table;
use text::{draws, width};
pub(crate) use text::{shortened, wrap};

/// The options about output that every command takes.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct OutputArgs {
    /// Also write the results as JSON to FILE; `-` is standard output, which then carries only that
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub(crate) json: Option<PathBuf>,
    /// Also write text, tables and plots as one self-contained page to FILE
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Also write text and tables as Markdown to FILE
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Also write the tables as comma-separated values to FILE
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    /// Also write each plot as an SVG file of its own into the folder DIR; files of other names
    /// stay there
    #[arg(long, value_name = "DIR", global = true, help_heading = "Output")]
    pub(crate) pictures: Option<PathBuf>,
    /// Include the name of this machine in reports
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) host_name: bool,
}

/// Puts the record into another form.
type Form = fn(&[Block], &Provenance) -> String;

/// The one way out for everything that a command has to say.
pub(crate) struct Output {
    /// Where the document goes, if it is asked for: into a file, or to standard output.
    json: Option<Option<ResultFile>>,
    /// Files for the record in other forms.
    forms: Vec<(Form, ResultFile)>,
    /// The page and the folder for pictures.
    page: Option<PathBuf>,
    pictures: Option<PathBuf>,
    /// What was said, if it is to be written in other forms.
    record: Vec<Block>,
    /// Whether a line has been written: the first one is never empty.
    has_written: bool,
    /// Files that are still to be written.
    opened: Opened,
    /// The first thing that could not be written, if any: told at the end, by [`Output::finish`].
    written: Result<()>,
    /// No text goes to standard output: it has the document, or could not be written.
    muted: bool,
    /// Whether standard output is a terminal that shows plots in block characters.
    draws: bool,
    /// Columns of characters that a line may have.
    pub(crate) width: u16,
    /// Where the results come from.
    pub(crate) provenance: Provenance,
    /// The flag of Ctrl-C.
    pub(crate) interrupt: Interrupt,
    /// Whether it cut the run short, once that was asked.
    interrupted: Option<bool>,
    pub(crate) progress: Progress,
}

impl Output {
    /// Opens the sinks, and has Ctrl-C end the run early.
    pub(crate) fn new(args: &OutputArgs) -> Result<Output> {
        let interrupt =
            Interrupt::install().map_err(|error| Failure::io("cannot handle Ctrl-C", error))?;
        let mut opened = Opened::new();
        let json = match &args.json {
            None => None,
            Some(path) if path == Path::new("-") => Some(None),
            Some(path) => Some(Some(ResultFile::open(&mut opened, "--json", path)?)),
        };
        let mut forms = Vec::new();
        for (form, flag, path) in [
            (record::page as Form, "--html", &args.html),
            (record::markdown, "--markdown", &args.markdown),
            (record::csv, "--csv", &args.csv),
        ] {
            if let Some(path) = path {
                forms.push((form, ResultFile::open(&mut opened, flag, path)?));
            }
        }
        if let Some(folder) = &args.pictures {
            prepare(folder)?;
        }
        Ok(Output {
            muted: matches!(json, Some(None)),
            json,
            opened,
            written: Ok(()),
            forms,
            page: args.html.clone(),
            pictures: args.pictures.clone(),
            record: Vec::new(),
            has_written: false,
            draws: draws(),
            width: width(),
            provenance: Provenance::of_this_run(args.host_name),
            interrupt,
            interrupted: None,
            progress: Progress::new(Duration::ZERO),
        })
    }

    /// Whether JSON is asked for.
    pub(crate) fn has_json(&self) -> bool {
        self.json.is_some()
    }

    /// Opens the file for results that the option `flag` names, if it is given.
    pub(crate) fn open(&mut self, flag: &str, path: Option<&Path>) -> Result<Option<ResultFile>> {
        path.map(|path| ResultFile::open(&mut self.opened, flag, path)).transpose()
    }

    /// Whether pictures are asked for, on a page or as files.
    pub(crate) fn has_pictures(&self) -> bool {
        self.pictures.is_some() || self.page.is_some()
    }

    /// Adds a picture to the page and to the files, if there are any, and draws it in a terminal.
    pub(crate) fn picture(&mut self, picture: impl FnOnce() -> Markup) {
        if !self.has_pictures() && !self.draws {
            return;
        }
        let block = Block::Picture(picture());
        if self.draws {
            self.write(&text::of(&block, self.width));
        }
        if self.has_pictures() {
            self.record.push(block);
        }
    }

    /// Writes the record in the forms that were asked for, and says where the page is: not on
    /// standard output, which may be a script or a schema. The last call of a command. A file that
    /// cannot be written does not cost the others.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let mut written = mem::replace(&mut self.written, Ok(()));
        if let Some(folder) = &self.pictures {
            for (name, picture) in record::pictures(&self.record) {
                written = written.and(replace(&folder.join(name), &picture));
            }
        }
        for (form, mut file) in mem::take(&mut self.forms) {
            let text = form(&self.record, &self.provenance);
            // A run that was stopped before it had a table leaves those of an older one.
            if !text.is_empty() || !self.was_interrupted() {
                written = written.and(file.write(&text));
            }
        }
        if let Some(page) = self.page.take().filter(|_| written.is_ok()) {
            self.note(format_args!("the page is in {}", page.display()));
        }
        written
    }

    /// Keeps a part of what is said, if a form of the record is asked for.
    fn keep(&mut self, block: Block) {
        if !self.forms.is_empty() {
            self.record.push(block);
        }
    }

    /// Writes one line of text.
    pub(crate) fn line(&mut self, text: impl Display) {
        let text = text.to_string();
        if !text.trim().is_empty() {
            self.keep(Block::Paragraph(text.trim().to_owned()));
        }
        self.write(&format!("{text}\n"));
    }

    /// Writes a heading, and before it an empty line unless it is the first.
    pub(crate) fn heading(&mut self, text: impl Display) {
        self.say(Block::Heading(text.to_string()));
    }

    /// Writes a paragraph, wrapped at the width of the window.
    pub(crate) fn paragraph(&mut self, text: impl Display) {
        self.say(Block::Paragraph(text.to_string()));
    }

    /// Writes labels in a column of their own, and beside each its text, wrapped at the width of
    /// the window.
    pub(crate) fn entries<L: Display, T: Display>(
        &mut self,
        entries: impl IntoIterator<Item = (L, T)>,
    ) {
        let entries = entries.into_iter();
        self.say(Block::Entries(entries.map(|(l, t)| (l.to_string(), t.to_string())).collect()));
    }

    /// Writes a table, fitted to the width of the window.
    pub(crate) fn table(&mut self, table: Table) {
        self.say(Block::Table(table));
    }

    /// Writes a part of what there is to say, and keeps it for other forms.
    pub(crate) fn say(&mut self, block: Block) {
        let is_apart = matches!(block, Block::Heading(_) | Block::Conclusion { .. });
        let space = if is_apart && self.has_written { "\n" } else { "" };
        self.write(&format!("{space}{}", text::of(&block, self.width)));
        self.keep(block);
    }

    /// Tells the user about something that is no result and stops nothing, on standard error;
    /// unless the run is over, since no process reads the results.
    pub(crate) fn note(&mut self, text: impl Display) {
        if self.written.is_err() && !self.owes_files() {
            return;
        }
        self.progress.suspend(|| tell("note", AnsiColor::Yellow, text));
    }

    /// Writes a document of this schema to the JSON sink, if there is one: the members of these
    /// objects, and where it comes from.
    pub(crate) fn json<const N: usize>(&mut self, schema: SchemaId, parts: [Value; N]) {
        let Some(sink) = &mut self.json else { return };
        let origin = json!({ "provenance": &self.provenance });
        let text = format!("{:#}\n", schema.document(parts.into_iter().chain([origin])));
        match sink {
            None => {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
                self.on_stdout(written);
            }
            Some(file) => {
                self.written = mem::replace(&mut self.written, Ok(())).and(file.write(&text));
            }
        }
    }

    /// Writes the document of a run that Ctrl-C may have cut short, as its member `"interrupted"`
    /// says.
    pub(crate) fn findings(&mut self, schema: SchemaId, document: Value) {
        let interrupted = json!({ "interrupted": self.was_interrupted() });
        self.json(schema, [interrupted, document]);
    }

    /// Whether Ctrl-C cut short what is told: it stays as it is first asked, so that text, document
    /// and exit code agree.
    pub(crate) fn was_interrupted(&mut self) -> bool {
        *self.interrupted.get_or_insert_with(|| self.interrupt.requested())
    }

    /// How such a run ends, if it would end so otherwise.
    pub(crate) fn exit(&mut self, otherwise: Exit) -> Exit {
        if self.was_interrupted() { Exit::Interrupted } else { otherwise }
    }

    /// Whether files are still to be written: then a closed pipe must not end the run.
    fn owes_files(&self) -> bool {
        !self.opened.is_empty() || self.pictures.is_some()
    }

    /// Whether the run is to end early: after Ctrl-C; and when no process reads the results any
    /// more, so that `rcu advise | head -1` does not go on measuring for a minute.
    pub(crate) fn must_stop(&self) -> bool {
        if !self.owes_files() && is_reader_gone() {
            self.interrupt.request();
        }
        self.interrupt.requested()
    }

    /// Waits this long: whether to the end. The run may have to stop, and `goes_on` say no.
    pub(crate) fn wait(&self, time: Duration, mut goes_on: impl FnMut() -> bool) -> bool {
        const MOMENT: Duration = Duration::from_millis(20);
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.must_stop() || !goes_on() {
                return left.is_zero();
            }
            std::thread::sleep(left.min(MOMENT));
        }
    }

    /// Why a run that was stopped has nothing to show.
    pub(crate) fn stopped(&mut self) -> Failure {
        match mem::replace(&mut self.written, Ok(())) {
            Err(failure) => failure,
            Ok(()) if is_reader_gone() && !self.owes_files() => Failure::told(Exit::Ok),
            Ok(()) => Failure::interrupted(),
        }
    }

    fn write(&mut self, text: &str) {
        self.has_written = true;
        if !self.muted {
            let mut stdout = anstream::stdout();
            let write = || stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
            let written = self.progress.suspend(write);
            self.on_stdout(written);
        }
    }

    /// What comes of a write to standard output. One that fails ends the run, unless a file is
    /// still to be written: then a reader that has gone is no failure.
    fn on_stdout(&mut self, written: io::Result<()>) {
        let Err(error) = written else { return };
        self.muted = true;
        let failure = Failure::io("cannot write to standard output", error);
        if !self.owes_files() {
            self.interrupt.request();
        } else if failure.exit == Exit::Ok {
            return;
        }
        self.written = mem::replace(&mut self.written, Ok(())).and(Err(failure));
    }
}

/// Sees to it that files can be written into this folder, before anything is measured for them.
pub(crate) fn prepare(folder: &Path) -> Result<()> {
    let made = match std::fs::create_dir(folder) {
        Err(error) if !folder.is_dir() => Err(error),
        _ => beside(folder).map(drop),
    };
    made.map_err(|error| Failure::file("write", folder, error))
}

/// A new file in this folder, which is removed unless it is kept: with the rights that any file
/// would have.
fn beside(folder: &Path) -> io::Result<NamedTempFile> {
    let rights = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".rcu-").permissions(rights).tempfile_in(folder)
}

/// Writes a file as a whole or not at all: beside its place, and then it is moved there.
pub(crate) fn replace(path: &Path, text: &str) -> Result<()> {
    let write = || {
        let mut file = beside(path.parent().unwrap_or(path))?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|failed| failed.error)
    };
    write().map(drop).map_err(|error| Failure::file("write", path, error))
}

/// Whether standard output is a pipe that no process reads any more.
fn is_reader_gone() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        && fds[0].revents().contains(PollFlags::ERR)
}

/// Writes an error message to standard error.
pub(crate) fn print_error(text: impl Display) {
    tell("error", AnsiColor::Red, text);
}

fn tell(kind: &str, colour: AnsiColor, text: impl Display) {
    let style = Style::new().bold().fg_color(Some(colour.into()));
    // What cannot be written has no thread to read it; of an error the exit code still tells.
    let _ = writeln!(anstream::stderr(), "{style}{kind}:{style:#} {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flag was read for the document, and again for the exit code.
    #[test]
    fn ctrl_c_while_a_finished_run_printed_made_its_exit_code_contradict_its_document() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.json");
        for (is_early, exit) in [(false, Exit::Violation), (true, Exit::Interrupted)] {
            let args = OutputArgs { json: Some(path.clone()), ..OutputArgs::default() };
            let mut output = Output::new(&args).unwrap();
            if is_early {
                output.interrupt.request();
            }
            output.findings(SchemaId("quiescence/costs", 1), json!({}));
            output.interrupt.request();
            let document: Value =
                serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(document["interrupted"], is_early);
            assert_eq!(output.exit(Exit::Violation), exit);
        }
    }
}
