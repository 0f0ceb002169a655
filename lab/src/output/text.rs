//! What is said as the text of a terminal: how wide it may be, and where its lines break.

use std::io;

use anstyle::Style;

use super::table;
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
        Block::Picture(_) => String::new(),
    }
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

    #[test]
    fn text_wraps_between_words_under_its_own_start() {
        assert_eq!(wrap("", "one two three", 0, 8), "one two\nthree\n");
        assert_eq!(wrap("key", "one two three", 5, 12), "key  one two\n     three\n");
    }

    #[test]
    fn a_word_wider_than_the_window_stays_whole() {
        assert_eq!(wrap("", "a incomprehensible b", 0, 6), "a\nincomprehensible\nb\n");
        assert_eq!(wrap("", "", 0, 6), "\n");
    }
}
