//! Where results go: text to the terminal or a pipe, JSON to a file, progress to standard error.
//!
//! Every command writes through one [`Output`], so that the same things hold for all of them:
//! colours only on a terminal and never against `NO_COLOR`; nothing but JSON on standard output
//! with `--json -`; a progress bar only when standard error is a terminal; and a closed pipe ends
//! the command quietly, unless a file that the user asked for is still to be written.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use bench::Host;
use comfy_table::{
    Cell, CellAlignment, Column, ColumnConstraint, ContentArrangement, Table, TableStyle, Width,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::exit::Failure;
use crate::html;
use crate::interrupt::Interrupt;
use crate::provenance::Provenance;
use crate::record::{self, Block};

/// The widest text when nothing says how wide the reader's window is, as in a pipe.
const WIDTH_DEFAULT: u16 = 100;
/// Tables wider than this are harder to read, not easier.
const WIDTH_MAX: u16 = 140;

/// One line under the header and no other rules: the columns carry the table.
const TABLE_STYLE: TableStyle = comfy_table::presets::NOTHING
    .header_separator(comfy_table::LineStyle::none().fill('─').junction('─'));

/// The options about output that every command takes.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct OutputArgs {
    /// Also write the results as JSON to FILE; `-` is standard output, which then carries only that
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub(crate) json: Option<PathBuf>,
    /// Also write text and tables as Markdown to FILE
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Also write the tables as comma-separated values to FILE
    #[arg(long, value_name = "FILE", global = true, help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    /// Show more: where the results come from, and the values of rounds
    #[arg(short, long, global = true, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Let reports carry the name of this machine, too
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) host_name: bool,
}

/// A document of any command, with the provenance that all of them carry.
#[derive(Serialize)]
struct WithProvenance<'a, D> {
    #[serde(flatten)]
    document: &'a D,
    provenance: &'a Provenance,
}

/// Where the JSON goes.
#[derive(Debug)]
enum Sink {
    Stdout,
    File { path: PathBuf, file: File },
}

/// A form of the record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Markdown,
    Csv,
    Page,
}

/// A file for results, opened before anything is measured.
#[derive(Debug)]
pub(crate) struct ResultFile {
    path: PathBuf,
    file: File,
}

impl ResultFile {
    /// Opens the file that the option `flag` names; `-` is refused.
    fn open(flag: &str, path: &Path) -> Result<ResultFile, Failure> {
        if path == Path::new("-") {
            return Err(Failure::Usage(format!(
                "{flag} takes a file, not `-`: standard output has the text"
            )));
        }
        Ok(ResultFile { file: open_for_results(path)?, path: path.to_owned() })
    }
}

/// The one way out for everything that a command has to say.
pub(crate) struct Output {
    stdout: AutoStream<io::Stdout>,
    stderr: AutoStream<io::Stderr>,
    json: Option<Sink>,
    /// Files for the record in other forms.
    forms: Vec<(Form, ResultFile)>,
    /// What was said, if it is to be written in other forms.
    record: Vec<Block>,
    is_verbose: bool,
    /// Whether a line has been written: the first one is never empty.
    has_written: bool,
    /// A file outside `Output` is still to be written, so a closed pipe must not end the run.
    other_file: bool,
    /// No process reads standard output, but the run continues for the sake of a file.
    muted: bool,
    width: u16,
    provenance: Provenance,
    interrupt: Interrupt,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("json", &self.json).field("width", &self.width).finish()
    }
}

impl Output {
    /// Opens the sinks. A JSON file is opened now, so that a bad path costs no minute of measuring,
    /// and emptied only when there is something to put in it.
    pub(crate) fn new(args: &OutputArgs, interrupt: Interrupt) -> Result<Output, Failure> {
        let json = match &args.json {
            None => None,
            Some(path) if path == Path::new("-") => Some(Sink::Stdout),
            Some(path) => Some(Sink::File { file: open_for_results(path)?, path: path.clone() }),
        };
        let mut forms = Vec::new();
        for (form, flag, path) in
            [(Form::Markdown, "--markdown", &args.markdown), (Form::Csv, "--csv", &args.csv)]
        {
            if let Some(path) = path {
                forms.push((form, ResultFile::open(flag, path)?));
            }
        }
        let provenance = Provenance::of_this_run();
        let provenance = if args.host_name { provenance.with_host_name() } else { provenance };
        Ok(Output {
            stdout: AutoStream::auto(io::stdout()),
            stderr: AutoStream::auto(io::stderr()),
            muted: matches!(json, Some(Sink::Stdout)),
            json,
            other_file: !forms.is_empty(),
            forms,
            record: Vec::new(),
            is_verbose: args.verbose,
            has_written: false,
            width: width(),
            provenance,
            interrupt,
        })
    }

    /// Where the results of this run come from.
    pub(crate) fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Whether JSON is asked for.
    pub(crate) fn has_json(&self) -> bool {
        self.json.is_some()
    }

    /// The flag of Ctrl-C.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Says that a file besides the JSON is still to be written.
    pub(crate) fn expect_other_file(&mut self) {
        self.other_file = true;
    }

    /// Columns of characters that a line may have.
    pub(crate) fn width(&self) -> usize {
        self.width.into()
    }

    /// Whether the user wants to see more.
    pub(crate) fn is_verbose(&self) -> bool {
        self.is_verbose
    }

    /// Asks for a page with all that is said from now on, at `path`, if there is one.
    pub(crate) fn expect_page(&mut self, path: Option<&Path>) -> Result<(), Failure> {
        if let Some(path) = path {
            self.forms.push((Form::Page, ResultFile::open("--html", path)?));
            self.other_file = true;
        }
        Ok(())
    }

    /// Adds a plot to the page, if there is one.
    pub(crate) fn plot(&mut self, plot: impl FnOnce() -> Block) {
        if self.forms.iter().any(|(form, _)| matches!(form, Form::Page)) {
            self.record.push(plot());
        }
    }

    /// Writes the record in the forms that were asked for. The last call of a command.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.is_verbose {
            self.heading("Where this comes from")?;
            self.entries(self.provenance.rows())?;
        }
        let mut record = std::mem::take(&mut self.record);
        for (form, ResultFile { path, file }) in &mut self.forms {
            let text = match form {
                Form::Csv => record::csv(&record),
                Form::Page => html::page("rcu", &self.provenance, |body| {
                    body.leaf("h1", &[], &self.provenance.command_line);
                    record::write_html(body, &record);
                }),
                Form::Markdown => {
                    if !self.is_verbose {
                        record.push(Block::Heading("Where this comes from".to_owned()));
                        let rows = self.provenance.rows().into_iter();
                        let rows = rows.map(|(name, value)| (name.to_owned(), value));
                        record.push(Block::Entries(rows.collect()));
                    }
                    let text = record::markdown(&record);
                    record.truncate(record.len() - 2 * usize::from(!self.is_verbose));
                    text
                }
            };
            write_results(file, text.as_bytes())
                .map_err(|error| Failure::file("write", path, error))?;
        }
        Ok(())
    }

    /// Keeps a part of what is said, if a form of the record is asked for.
    fn keep(&mut self, block: impl FnOnce() -> Block) {
        if !self.forms.is_empty() {
            self.record.push(block());
        }
    }

    /// Writes one line of text.
    pub(crate) fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        let text = text.to_string();
        if !text.trim().is_empty() {
            self.keep(|| Block::Paragraph(text.trim().to_owned()));
        }
        self.write(&format!("{text}\n"))
    }

    /// Writes a heading, and before it an empty line unless it is the first.
    pub(crate) fn heading(&mut self, text: impl Display) -> Result<(), Failure> {
        self.keep(|| Block::Heading(text.to_string()));
        let bold = Style::new().bold();
        let space = if self.has_written { "\n" } else { "" };
        self.write(&format!("{space}{bold}{text}{bold:#}\n"))
    }

    /// Writes a paragraph, wrapped at the width of the window.
    pub(crate) fn paragraph(&mut self, text: impl Display) -> Result<(), Failure> {
        self.keep(|| Block::Paragraph(text.to_string()));
        let wrapped = wrap("", &text.to_string(), 0, self.width.into());
        self.write(&wrapped)
    }

    /// Writes one label, at most ten letters long, and beside it its text: for entries that are
    /// not known all at once, whose columns nevertheless agree.
    pub(crate) fn entry(&mut self, label: &str, text: impl Display) -> Result<(), Failure> {
        const INDENT: usize = 12;
        self.keep(|| Block::Entries(vec![(label.to_owned(), text.to_string())]));
        let wrapped = wrap(label, &text.to_string(), INDENT, self.width.into());
        self.write(&wrapped)
    }

    /// Writes labels in a column of their own, and beside each its text, wrapped at the width of
    /// the window.
    pub(crate) fn entries<L: AsRef<str>, T: Display>(
        &mut self,
        entries: impl IntoIterator<Item = (L, T)>,
    ) -> Result<(), Failure> {
        let entries: Vec<(L, T)> = entries.into_iter().collect();
        self.keep(|| {
            let texts = |(label, text): &(L, T)| (label.as_ref().to_owned(), text.to_string());
            Block::Entries(entries.iter().map(texts).collect())
        });
        let longest = entries.iter().map(|(label, _)| label.as_ref().chars().count()).max();
        let indent = longest.unwrap_or(0) + 2;
        for (label, text) in entries {
            let wrapped = wrap(label.as_ref(), &text.to_string(), indent, self.width.into());
            self.write(&wrapped)?;
        }
        Ok(())
    }

    /// Writes a table, fitted to the width of the window.
    pub(crate) fn table(&mut self, mut table: Table) -> Result<(), Failure> {
        self.keep(|| Block::of_table(&table));
        table.set_width(self.width);
        keep_words_whole(&mut table, self.width);
        // Colours are taken out where they do not belong when the text is written.
        table.enforce_styling();
        let text: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        self.write(&text)
    }

    /// Tells the user about something odd that stops nothing, on standard error.
    pub(crate) fn note(&mut self, text: impl Display) {
        let style = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
        // A note that cannot be written has no thread to read it.
        let _ = writeln!(self.stderr, "{style}note:{style:#} {text}");
    }

    /// A progress bar for a run of about `total`, on standard error and only on a terminal.
    pub(crate) fn progress(&self, total: Duration) -> Progress {
        Progress::new(total)
    }

    /// Writes `document` to the JSON sink, if there is one, with the member `"provenance"`.
    pub(crate) fn json(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        let Some(sink) = &mut self.json else {
            return Ok(());
        };
        let document = WithProvenance { document, provenance: &self.provenance };
        let mut text = serde_json::to_string_pretty(&document)
            .map_err(|error| Failure::io("cannot write JSON", error.into()))?;
        text.push('\n');
        match sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout
                    .write_all(text.as_bytes())
                    .and_then(|()| stdout.flush())
                    .map_err(|error| Failure::io("cannot write to standard output", error))
            }
            Sink::File { path, file } => write_results(file, text.as_bytes())
                .map_err(|error| Failure::file("write", path, error)),
        }
    }

    /// Fails with [`Failure::BrokenPipe`] when no thread reads the results any more, so that
    /// `rcu advise | head -1` does not go on measuring for a minute.
    pub(crate) fn check_reader(&mut self) -> Result<(), Failure> {
        let stdout = io::stdout();
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let gone = poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
            && fds[0].revents().contains(PollFlags::ERR);
        if gone { self.reader_gone() } else { Ok(()) }
    }

    fn reader_gone(&mut self) -> Result<(), Failure> {
        if self.other_file || matches!(self.json, Some(Sink::File { .. })) {
            self.muted = true;
            return Ok(());
        }
        Err(Failure::BrokenPipe)
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.has_written = true;
        if self.muted {
            return Ok(());
        }
        let written = self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush());
        match written.map_err(|error| Failure::io("cannot write to standard output", error)) {
            Err(Failure::BrokenPipe) => self.reader_gone(),
            other => other,
        }
    }
}

/// Writes an error message to standard error.
pub(crate) fn print_error(text: impl Display) {
    let style = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    // An error that cannot be written has no thread to read it; the exit code still tells.
    let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {text}");
}

/// Opens a file for results that come later, without emptying it yet.
pub(crate) fn open_for_results(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| Failure::file("write", path, error))?;
    refuse_twice(path, &file)?;
    Ok(file)
}

/// Refuses a file that has been opened for other results of this process, under whatever name:
/// the last ones would silently replace the others. Devices and pipes can be shared.
fn refuse_twice(path: &Path, file: &File) -> Result<(), Failure> {
    static OPENED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
    let metadata = file.metadata().map_err(|error| Failure::file("write", path, error))?;
    let identity = (metadata.dev(), metadata.ino());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if metadata.is_file() && opened.contains(&identity) {
        return Err(Failure::Usage(format!(
            "{} is named for two kinds of results; give each a file of its own",
            path.display()
        )));
    }
    opened.push(identity);
    Ok(())
}

/// Empties the file if it is one, not a pipe or a device, and writes the results.
pub(crate) fn write_results(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

/// A table in the house's style with this header. Call [`numeric`] for columns of numbers.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(Cell::new).collect::<Vec<_>>());
    // Names are not broken; the other columns make room.
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}

/// Aligns these columns to the right, as numbers are read.
pub(crate) fn numeric(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Cells of at most so many characters are a number with its unit: one word.
const FIGURE_CHARACTERS: usize = 9;

/// Makes every column wide enough for its words, and for a number beside its unit, as long as the
/// window has room for that: half a number on a line is another number.
fn keep_words_whole(table: &mut Table, width: u16) {
    // Narrow windows lose blanks between columns first, then units beside numbers.
    let attempts = [(FIGURE_CHARACTERS, 1), (FIGURE_CHARACTERS, 0), (0, 1), (0, 0)];
    for (figure_characters, left) in attempts {
        table.column_iter_mut().for_each(|column| {
            column.set_padding((left, 1));
        });
        let least = least_widths(table, figure_characters);
        // Between two columns there is a line, which is blank in our tables.
        let total: usize = least.iter().map(|(width, padding)| width + padding + 1).sum();
        if total > usize::from(width) + 1 {
            continue;
        }
        for (column, (width, padding)) in table.column_iter_mut().zip(least) {
            if column.constraint().is_none() {
                let width = Width::Fixed(u16::try_from(width + padding).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(width));
            }
        }
        return;
    }
}

/// How wide each column has to be, and the padding beside it.
fn least_widths(table: &Table, figure_characters: usize) -> Vec<(usize, usize)> {
    let characters = |text: &str| text.chars().count();
    let words = |text: &str| text.split_whitespace().map(characters).max().unwrap_or(0);
    let lines = |text: &str| text.lines().map(characters).max().unwrap_or(0);
    let least = |column: &Column, number: usize| {
        let is_whole = column.constraint() == Some(&ColumnConstraint::ContentWidth);
        let head = table.header().and_then(|header| header.cell_iter().nth(number));
        let head = head.map(Cell::content).unwrap_or_default();
        let cell = |text: String| match lines(&text) {
            length if is_whole || length <= figure_characters => length,
            _ => words(&text),
        };
        let body = table.column_cells_iter(number).flatten().map(|each| cell(each.content())).max();
        let head = if is_whole { lines(&head) } else { words(&head) };
        (head.max(body.unwrap_or(0)), usize::from(column.padding_width()))
    };
    table.column_iter().enumerate().map(|(number, column)| least(column, number)).collect()
}

/// Breaks `text` between words so that no line is wider than `width`. The first line begins with
/// `label`; every line's text begins at column `indent`.
fn wrap(label: &str, text: &str, indent: usize, width: usize) -> String {
    let mut wrapped = format!("{label:<indent$}");
    let mut column = wrapped.chars().count();
    let mut line_is_empty = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !line_is_empty && column + 1 + length > width {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            column = indent;
        } else if !line_is_empty {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += length;
        line_is_empty = false;
    }
    wrapped.push('\n');
    wrapped
}

/// How wide text may be: the window's width, else `COLUMNS`, else [`WIDTH_DEFAULT`].
fn width() -> u16 {
    let window = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col);
    let columns = || std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    window
        .filter(|&width| width > 0)
        .or_else(columns)
        .map_or(WIDTH_DEFAULT, |width| width.clamp(40, WIDTH_MAX))
}

/// The output and the progress as those who measure see them.
pub(crate) struct Watched<'a> {
    output: &'a mut Output,
    progress: &'a mut Progress,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(output: &'a mut Output, progress: &'a mut Progress) -> Self {
        Self { output, progress }
    }
}

impl Host for Watched<'_> {
    fn stop(&self) -> &AtomicBool {
        self.output.interrupt.as_ref()
    }

    fn check(&mut self) -> io::Result<()> {
        self.output.check_reader().map_err(|failure| match failure {
            Failure::BrokenPipe => io::ErrorKind::BrokenPipe.into(),
            other => io::Error::other(other),
        })
    }

    fn announce(&mut self, what: &dyn Display) {
        self.progress.announce(what);
    }

    fn advance(&mut self, by: Duration) {
        self.progress.advance(by);
    }

    fn note(&mut self, text: &dyn Display) {
        let output = &mut *self.output;
        self.progress.suspend(|| output.note(text));
    }
}

/// The progress of a long run: a bar with the time left.
///
/// It is drawn only when told to, between measurements: a thread that redraws on a
/// tick would disturb what is being measured.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    total: Duration,
    done: Duration,
}

impl Progress {
    fn new(total: Duration) -> Progress {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total.as_millis() as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {prefix} left  {wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar, start: Instant::now(), total, done: Duration::ZERO }
    }

    /// Says what is being done now.
    pub(crate) fn announce(&mut self, what: impl Display) {
        self.draw();
        self.bar.set_message(what.to_string());
    }

    /// Says that `by` more of the total is done.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.done += by;
        self.draw();
    }

    /// Says that the total is longer by `by` than was known before.
    pub(crate) fn expect_more(&mut self, by: Duration) {
        self.total += by;
        self.bar.set_length(self.total.as_millis() as u64);
    }

    fn draw(&self) {
        // On a busy machine everything takes longer than planned, and what is left will too.
        let planned = self.total.saturating_sub(self.done).as_secs_f64();
        let slower = self.start.elapsed().as_secs_f64() / self.done.as_secs_f64().max(1.0);
        let left = (planned * slower.max(1.0)).ceil();
        self.bar.set_prefix(format!("{left:>3} s"));
        self.bar.set_position(self.done.as_millis() as u64);
    }

    /// Takes the bar off the screen while something else is written.
    pub(crate) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words_under_its_own_start() {
        assert_eq!(wrap("", "one two three", 0, 8), "one two\nthree\n");
        assert_eq!(wrap("key", "one two three", 5, 12), "key  one two\n     three\n");
    }

    #[test]
    fn neither_words_nor_numbers_are_broken_while_there_is_room() {
        let lines = |width: u16| -> Vec<String> {
            let mut table = table(&["", "locks taken", "of them contended", "p50"]);
            table.add_row(["adaptive", "1,612,571", "48,084", "19.73 µs"]);
            table.add_row(["a name that is long", "a sentence of some length", "0", "–"]);
            table.set_width(width);
            keep_words_whole(&mut table, width);
            table.lines().collect()
        };
        for width in [56, 60, 80] {
            let lines = lines(width);
            assert!(lines.iter().all(|line| line.chars().count() <= width.into()), "{lines:?}");
            for whole in ["1,612,571", "contended", "sentence", "19.73 µs", "a name that is long"]
            {
                assert!(lines.iter().any(|line| line.contains(whole)), "{whole} in {lines:?}");
            }
        }
        // Without room for blanks, and then for a unit beside its number, words are still whole.
        assert!(lines(53).iter().any(|line| line.contains("19.73 µs")), "{:?}", lines(53));
        for width in [53, 50, 49] {
            let lines = lines(width);
            assert!(lines.iter().any(|line| line.contains("19.73 ")), "{lines:?}");
            assert!(lines.iter().any(|line| line.contains("contended")), "{lines:?}");
        }
    }

    #[test]
    fn a_word_wider_than_the_window_stays_whole() {
        assert_eq!(wrap("", "a incomprehensible b", 0, 6), "a\nincomprehensible\nb\n");
        assert_eq!(wrap("", "", 0, 6), "\n");
    }
}
