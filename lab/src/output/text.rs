//! What is said as the text of a terminal: how wide it may be, and where its lines break.

use std::io::{self, IsTerminal};

use anstyle::Style;

use super::table;
use crate::plot::{Chart, Interval, Scale};
use crate::record::Block;

/// The widest text when nothing says how wide the reader's window is, as in a pipe.
const WIDTH_DEFAULT: u16 = 100;
/// Tables wider than this are harder to read, not easier.
const WIDTH_MAX: u16 = 140;

/// A part of what there is to say as it stands in a window of this width.
pub(super) fn of(block: &Block, width: u16) -> String {
    let bold = Style::new().bold();
    let heading =
        |text: &str| format!("{bold}{}{bold:#}\n", wrap("", text, 0, width.into()).trim_end());
    let paragraph = |text: &String| wrap("", text, 0, width.into());
    match block {
        Block::Heading(text) => heading(text),
        Block::Paragraph(text) => paragraph(text),
        Block::Code(text) => format!("{text}\n"),
        Block::Conclusion { heading: text, paragraphs, .. } => {
            heading(text) + &paragraphs.iter().map(paragraph).collect::<String>()
        }
        Block::Entries(entries) => {
            let longest = entries.iter().map(|(label, _)| label.chars().count()).max();
            let indent = longest.unwrap_or(0) + 2;
            entries.iter().map(|(label, text)| wrap(label, text, indent, width.into())).collect()
        }
        Block::Table(table) => table::fitted(table.clone(), width),
        Block::Picture(part) => {
            part.chart.as_ref().map(|chart| drawn(chart, width.into())).unwrap_or_default()
        }
    }
}

/// A plot in block characters: its title up to the first semicolon, since the rest is about marks
/// that a terminal does not show; names, bars, figures, and below them the axis.
fn drawn(chart: &Chart, width: usize) -> String {
    let Chart { title, axis, marks, rows, .. } = chart;
    let [name, text] = chart.letters().map(|letters| letters.min(width / 3));
    let cells = width.saturating_sub(name + text + 4).max(8);
    let row = |row: &Interval| {
        let shares = [row.low, row.value, row.high].map(|at| chart.share(at));
        let drawn = match axis.scale {
            Scale::Bars => bar(shares[1], cells),
            _ => interval(shares.map(|share| ((share * cells as f64) as usize).min(cells - 1))),
        };
        let (own, figure) = (shortened(&row.name, name), shortened(&row.text, text));
        let line = format!("{own:<name$}  {drawn:<cells$}  {figure}");
        format!("{}\n", line.trim_end())
    };
    let [from, to] = [marks[0], marks[marks.len() - 1]].map(axis.label);
    let kind = if axis.scale == Scale::Logarithmic { ", logarithmic" } else { "" };
    let axis = format!("{}{kind}, from {from} to {to}", axis.title);
    let title = wrap("", title.split(';').next().unwrap_or_default(), 0, width);
    let rows: String = rows.iter().map(row).collect();
    format!("{title}{rows}{}", wrap("", &axis, name + 2, width))
}

/// A bar up to the eighth of a cell.
fn bar(share: f64, cells: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = ((share * cells as f64 * 8.0).round() as usize).max(1);
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// A value between its ends.
fn interval([low, value, high]: [usize; 3]) -> String {
    let cell = |at: usize| match at {
        _ if at == value => '█',
        _ if (low..=high).contains(&at) => '─',
        _ => ' ',
    };
    (0..=value.max(high)).map(cell).collect()
}

/// Whether standard output is a terminal that shows block characters.
pub(super) fn draws() -> bool {
    let name = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|locale| !locale.is_empty()));
    let is_utf8 = |locale: String| locale.to_lowercase().replace('-', "").contains("utf8");
    io::stdout().is_terminal() && name.is_some_and(is_utf8)
}

/// Breaks `text` between words so that no line is wider than `width`. The first line begins with
/// `label`; every line's text begins at column `indent`.
pub(crate) fn wrap(label: &str, text: &str, indent: usize, width: usize) -> String {
    let mut wrapped = format!("{label:<indent$}");
    let mut column = wrapped.chars().count();
    for (number, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if number > 0 && column + 1 + length > width {
            wrapped += &format!("\n{:indent$}", "");
            column = indent;
        } else if number > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped += word;
        column += length;
    }
    wrapped + "\n"
}

/// As much of a text as so many characters have room for.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters - 1).chain(['…']).collect()
}

/// How wide text may be: the window's width, else `COLUMNS`, else [`WIDTH_DEFAULT`].
pub(super) fn width() -> u16 {
    let window = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col);
    let columns = || std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    window
        .filter(|&width| width > 0)
        .or_else(columns)
        .map_or(WIDTH_DEFAULT, |width| width.clamp(40, WIDTH_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Axis;

    #[test]
    fn text_wraps_between_words_under_its_own_start() {
        assert_eq!(wrap("", "one two three", 0, 8), "one two\nthree\n");
        assert_eq!(wrap("key", "one two three", 5, 12), "key  one two\n     three\n");
    }

    #[test]
    fn bars_have_their_shares_and_fit() {
        assert_eq!((bar(0.5, 10).as_str(), bar(0.0, 10).as_str()), ("█████", "▏"));
        assert_eq!(bar(0.3125, 10), "███▏");
        assert_eq!(interval([1, 3, 4]), " ──█─");
        let row = |name, value| Interval::of(name, true, [value; 3], "1.00 ns".to_owned());
        let rows = vec![row("a", 1.0), row("a longer name", 0.5)];
        let axis = Axis::new("time", Scale::Bars, |value| value.to_string());
        let chart = Chart::new("Reads; hollow: published", axis, rows).unwrap();
        let text = drawn(&chart, 40);
        let expected = [
            "Reads",
            "a              ████████████████  1.00 ns",
            "a longer name  ████████          1.00 ns",
            "               time, from 0 to 1",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_word_wider_than_the_window_stays_whole() {
        assert_eq!(wrap("", "a incomprehensible b", 0, 6), "a\nincomprehensible\nb\n");
        assert_eq!(wrap("", "", 0, 6), "\n");
    }
}
