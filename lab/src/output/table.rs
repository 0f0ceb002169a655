//! Tables of text: the house's style, and columns wide enough for whole words and numbers.

use std::fmt::Display;

use comfy_table::{
    Cell, CellAlignment, Column, ColumnConstraint, ContentArrangement, Row, Table, TableStyle,
    Width,
};

/// One line under the header and no other rules: the columns carry the table.
const TABLE_STYLE: TableStyle = comfy_table::presets::NOTHING
    .header_separator(comfy_table::LineStyle::none().fill('─').junction('─'));

/// A table in the house's style with this header and these rows. `numbers` are the columns, of
/// those that there are, that are aligned to the right, as numbers are read.
pub(crate) fn table<R: Into<Row>>(
    header: &[impl Display],
    numbers: impl IntoIterator<Item = usize>,
    rows: impl IntoIterator<Item = R>,
) -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(Cell::new).collect::<Vec<_>>());
    // Names are not broken; the other columns make room.
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    for column in numbers {
        let Some(column) = table.column_mut(column) else { break };
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.add_rows(rows);
    table
}

/// The table's text, fitted to this width.
pub(super) fn fitted(mut table: Table, width: u16) -> String {
    table.set_width(width);
    keep_words_whole(&mut table, width);
    // Colours are taken out where they do not belong when the text is written.
    table.enforce_styling();
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Cells of at most so many characters are one word.
const SHORT: usize = 9;

/// Whether the text is a number, and its unit if it has one: one word.
fn is_figure(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.next().is_some_and(|word| word.contains(|character: char| character.is_ascii_digit()))
        && words.nth(1).is_none()
}

/// Makes every column wide enough for its words, and for a number with its unit: half a number on a
/// line is another number.
fn keep_words_whole(table: &mut Table, width: u16) {
    // Narrow windows lose blanks between columns first; then names are broken, between words. What
    // has no room even so is wider than the window.
    let attempts = [(true, (1, 1)), (true, (0, 1)), (false, (0, 1)), (false, (0, 0))];
    for (names_are_whole, padding) in attempts {
        table.column_iter_mut().for_each(|column| {
            column.set_padding(padding);
            if !names_are_whole {
                column.remove_constraint();
            }
        });
        // Between two columns there is a line, which is blank in our tables.
        let least = least_widths(table);
        let total = least.iter().map(|&width| usize::from(width) + 1).sum::<usize>();
        let total = u16::try_from(total.saturating_sub(1)).unwrap_or(u16::MAX);
        if total > width && padding != (0, 0) {
            continue;
        }
        table.set_width(width.max(total));
        for (column, width) in table.column_iter_mut().zip(least) {
            if column.constraint().is_none() {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
            }
        }
        return;
    }
}

/// How wide each column has to be, with its padding.
fn least_widths(table: &Table) -> Vec<u16> {
    let characters = |text: &str| text.chars().count();
    let words = |text: &str| text.split_whitespace().map(characters).max().unwrap_or(0);
    let lines = |text: &str| text.lines().map(characters).max().unwrap_or(0);
    let least = |column: &Column, number: usize| {
        let is_whole = column.constraint() == Some(&ColumnConstraint::ContentWidth);
        let head = table.header().and_then(|header| header.cell_iter().nth(number));
        let head = head.map(Cell::content).unwrap_or_default();
        let part = |text: &str| match lines(text) {
            length if is_whole || length <= SHORT || is_figure(text) => length,
            _ => words(text),
        };
        let cell = |text: String| match text.split_once(" ± ") {
            Some((figure, spread)) => part(figure).max("± ".chars().count() + part(spread)),
            None => part(&text),
        };
        let body = table.column_cells_iter(number).flatten().map(|each| cell(each.content())).max();
        let head = if is_whole { lines(&head) } else { words(&head) };
        let width = u16::try_from(head.max(body.unwrap_or(0))).unwrap_or(u16::MAX);
        width.saturating_add(column.padding_width())
    };
    table.column_iter().enumerate().map(|(number, column)| least(column, number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a table with a long name in each row, as they are in a window of this width.
    fn lines(width: u16) -> Vec<String> {
        let rows = [
            ["adaptive", "1,612,571", "48,084", "19.73 µs"],
            ["a name that is long", "a sentence of some length", "0", "–"],
        ];
        let table = table(&["", "locks taken", "of them contended", "p50"], [], rows);
        fitted(table, width).lines().map(str::to_owned).collect()
    }

    fn is_in(lines: &[String], whole: &str) -> bool {
        lines.iter().any(|line| line.contains(whole))
    }

    #[test]
    fn neither_words_nor_numbers_are_broken_while_there_is_room() {
        for width in [53, 56, 60, 80] {
            let lines = lines(width);
            assert!(lines.iter().all(|line| line.chars().count() <= width.into()), "{lines:?}");
            for whole in ["1,612,571", "contended", "sentence", "19.73 µs", "a name that is long"]
            {
                assert!(is_in(&lines, whole), "{whole} in {lines:?}");
            }
        }
    }

    #[test]
    fn a_number_is_never_split_from_its_unit_names_give_way() {
        for width in [40, 45, 50] {
            let lines = lines(width);
            for whole in ["1,612,571", "contended", "sentence", "19.73 µs", "adaptive"] {
                assert!(is_in(&lines, whole), "{whole} in {lines:?}");
            }
            assert!(!is_in(&lines, "a name that is long"), "{lines:?}");
        }
        assert!(lines(45).iter().all(|line| line.chars().count() <= 45), "{:?}", lines(45));
    }

    #[test]
    fn a_figure_of_eleven_characters_was_split() {
        let rows = [["a name", "1,612,571 B ± 10 %", "a sentence of some length"]];
        let lines = fitted(table(&["", "memory", "remark"], [], rows), 30);
        assert!(lines.contains("1,612,571 B ") && lines.contains("± 10 % "), "{lines}");
    }

    #[test]
    fn a_name_of_65535_characters_overflowed() {
        let name = "x".repeat(65_535);
        assert!(fitted(table(&["", "memory"], [], [[&*name, "1 B"]]), 80).contains("1 B"));
    }
}
