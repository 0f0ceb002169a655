//! What a command said, kept as it was said, so that the same text, tables and plots can be
//! written as Markdown, as CSV or as a page.

use comfy_table::Table;

use crate::html::{self, Markup};
use crate::plot::{self, Axis, Interval, Line};

/// One part of what was said, in its order.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Heading(String),
    Paragraph(String),
    /// Labels, and the text beside each.
    Entries(Vec<(String, String)>),
    Table {
        header: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// The text of a program.
    Code(String),
    /// What all comes to. On a page it stands first, and in another colour if it is an alarm.
    Conclusion {
        heading: &'static str,
        is_alarm: bool,
        paragraphs: Vec<String>,
    },
    /// Figures with their intervals, which only a page has.
    Intervals {
        /// What they are, and what the marks mean.
        title: String,
        axis: Axis,
        rows: Vec<Interval>,
    },
    /// Lines over settings, which only a page has.
    Lines {
        title: &'static str,
        unit: &'static str,
        settings: Vec<String>,
        lines: Vec<Line>,
    },
    /// A picture, which only a page has.
    Picture {
        title: &'static str,
        picture: Markup,
    },
}

impl Block {
    fn is_plot(&self) -> bool {
        matches!(self, Block::Intervals { .. } | Block::Lines { .. } | Block::Picture { .. })
    }

    /// A table as its cells hold it, not as it is fitted to a window.
    pub(crate) fn of_table(table: &Table) -> Block {
        let cells = |row: &comfy_table::Row| {
            row.cell_iter().map(|cell| cell.content().replace('\n', " ")).collect::<Vec<_>>()
        };
        Block::Table {
            header: table.header().map(cells).unwrap_or_default(),
            rows: table.row_iter().map(cells).collect(),
        }
    }
}

/// The record as Markdown: tables in GitHub's form.
pub(crate) fn markdown(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks.iter().filter(|block| !block.is_plot()) {
        if !text.is_empty() {
            text.push('\n');
        }
        match block {
            Block::Heading(heading) => text.push_str(&format!("## {heading}\n")),
            Block::Paragraph(words) | Block::Code(words) => text.push_str(&format!("{words}\n")),
            Block::Conclusion { heading, paragraphs, .. } => {
                text.push_str(&format!("## {heading}\n"));
                paragraphs.iter().for_each(|words| text.push_str(&format!("\n{words}\n")));
            }
            Block::Entries(entries) => {
                for (label, entry) in entries {
                    text.push_str(&format!("- **{}**: {entry}\n", label.trim()));
                }
            }
            Block::Table { header, rows } => {
                text.push_str(&markdown_row(header));
                text.push_str(&format!("|{}\n", "---|".repeat(header.len())));
                rows.iter().for_each(|row| text.push_str(&markdown_row(row)));
            }
            // Left out above.
            _ => {}
        }
    }
    text
}

fn markdown_row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The tables as comma-separated values (RFC 4180). Their first column is the heading above them,
/// since tables of several shapes stand in one file; an empty line parts them.
pub(crate) fn csv(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut heading = "";
    for block in blocks {
        match block {
            Block::Heading(words) => heading = words,
            Block::Table { header, rows } => {
                if !text.is_empty() {
                    text.push_str("\r\n");
                }
                text.push_str(&csv_row("table", header));
                rows.iter().for_each(|row| text.push_str(&csv_row(heading, row)));
            }
            _ => {}
        }
    }
    text
}

fn csv_row(first: &str, cells: &[String]) -> String {
    let cells = std::iter::once(first).chain(cells.iter().map(String::as_str));
    let quoted = cells.map(|cell| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

/// The record as parts of a page.
pub(crate) fn write_html(body: &mut Markup, blocks: &[Block]) {
    for block in blocks {
        if let Block::Conclusion { is_alarm, paragraphs, .. } = block {
            let class = if *is_alarm { "verdict alarm" } else { "verdict" };
            body.element("div", &[("class", &class)], |verdict| {
                paragraphs.iter().for_each(|words| verdict.leaf("p", &[], words));
            });
        }
    }
    for block in blocks {
        match block {
            Block::Conclusion { .. } => {}
            Block::Code(text) => body.leaf("pre", &[], text),
            Block::Heading(heading) => body.leaf("h2", &[], heading),
            Block::Paragraph(paragraph) => body.leaf("p", &[], paragraph),
            Block::Entries(entries) => html::definitions(body, entries),
            Block::Table { header, rows } => html::figures(body, header, rows),
            Block::Intervals { title, axis, rows } => {
                body.leaf("p", &[("class", &"soft")], title);
                plot::intervals(body, title, axis, rows);
            }
            Block::Lines { title, unit, settings, lines } => {
                plot::lines(body, title, unit, settings, lines);
            }
            Block::Picture { title, picture } => {
                body.leaf("h2", &[], title);
                body.element("div", &[("class", &"wide")], |wide| wide.append(picture));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Block> {
        vec![
            Block::Heading("Read".to_owned()),
            Block::Entries(vec![("CPU".to_owned(), "a".to_owned())]),
            Block::Table {
                header: vec![String::new(), "time".to_owned()],
                rows: vec![vec!["a|b".to_owned(), "1,612 \"ns\"".to_owned()]],
            },
        ]
    }

    #[test]
    fn markdown_has_the_text_and_tables_with_their_bars_escaped() {
        let expected =
            "## Read\n\n- **CPU**: a\n\n|  | time |\n|---|---|\n| a\\|b | 1,612 \"ns\" |\n";
        assert_eq!(markdown(&blocks()), expected);
    }

    #[test]
    fn csv_has_the_tables_with_their_headings_and_quotes() {
        assert_eq!(csv(&blocks()), "table,,time\r\nRead,a|b,\"1,612 \"\"ns\"\"\"\r\n");
    }

    #[test]
    fn a_page_has_all_of_it() {
        let mut page = Markup::default();
        write_html(&mut page, &blocks());
        let page = page.into_string();
        for part in ["<h2>Read</h2>", "<dt>CPU</dt><dd>a</dd>", "<td class=\"n\">1,612 "] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
