//! What a command said, kept as it was said, so that the same text, tables and plots can be
//! written as Markdown, as CSV or as a page.

use comfy_table::{Row, Table};

use crate::html::{self, Markup};
use crate::provenance::{ORIGIN, Provenance};

/// One part of what was said, in its order.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Heading(String),
    Paragraph(String),
    /// Labels, and the text beside each.
    Entries(Vec<(String, String)>),
    Table(Table),
    /// The text of a program.
    Code(String),
    /// What all comes to. On a page it stands first, and in another colour if it is an alarm.
    Conclusion {
        heading: &'static str,
        is_alarm: bool,
        paragraphs: Vec<String>,
    },
    /// A plot, a picture: on a page, and of a plot what a terminal can show.
    Picture(Markup),
}

/// The header and the rows of a table as its cells hold them, not as they are fitted to a window.
pub(crate) fn cells(table: &Table) -> (Vec<String>, Vec<Vec<String>>) {
    let cells = |row: &Row| row.cell_iter().map(|cell| cell.content().replace('\n', " ")).collect();
    (table.header().map(cells).unwrap_or_default(), table.row_iter().map(cells).collect())
}

/// The pictures, each with a name that is made of its number and of what it shows.
pub(crate) fn pictures(blocks: &[Block]) -> Vec<(String, String)> {
    let of_picture = |block: &Block| match block {
        Block::Picture(part) => {
            let (label, picture) = html::picture(part)?;
            let words = label.split(|letter: char| !letter.is_ascii_alphanumeric());
            let words: Vec<_> = words.filter(|word| !word.is_empty()).take(8).collect();
            Some((words.join("-").to_lowercase(), picture))
        }
        _ => None,
    };
    let pictures = blocks.iter().filter_map(of_picture).enumerate();
    pictures.map(|(at, (name, picture))| (format!("{:02}-{name}.svg", at + 1), picture)).collect()
}

/// The record as Markdown: tables in GitHub's form. At its end stands where it comes from.
pub(crate) fn markdown(blocks: &[Block], provenance: &Provenance) -> String {
    let heading = |text: &str| format!("## {text}\n");
    let entries = |entries: &[(String, String)]| -> String {
        entries.iter().map(|(label, text)| format!("- **{}**: {text}\n", label.trim())).collect()
    };
    let part = |block: &Block| match block {
        Block::Heading(text) => Some(heading(text)),
        Block::Paragraph(text) => Some(format!("{text}\n")),
        Block::Code(text) => Some(format!("{}\n", text.trim())),
        Block::Conclusion { heading: text, paragraphs, .. } => {
            let paragraphs = paragraphs.iter().map(|text| format!("\n{text}\n"));
            Some(heading(text) + &paragraphs.collect::<String>())
        }
        Block::Entries(list) => Some(entries(list)),
        Block::Table(table) => {
            let (header, rows) = cells(table);
            let rows: String = rows.iter().map(|row| markdown_row(row)).collect();
            Some(format!("{}|{}\n{rows}", markdown_row(&header), "---|".repeat(header.len())))
        }
        Block::Picture(_) => None,
    };
    let rows = provenance.rows().into_iter().map(|(name, value)| (name.to_owned(), value));
    let origin = [heading(ORIGIN), entries(&rows.collect::<Vec<_>>())];
    blocks.iter().filter_map(part).chain(origin).collect::<Vec<_>>().join("\n")
}

fn markdown_row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The tables as comma-separated values (RFC 4180). Their first column is the heading above them,
/// since tables of several shapes stand in one file; an empty line parts them.
pub(crate) fn csv(blocks: &[Block], _: &Provenance) -> String {
    let (mut tables, mut heading) = (Vec::new(), "");
    for block in blocks {
        match block {
            Block::Heading(words) => heading = words,
            Block::Table(table) => {
                let (header, rows) = cells(table);
                let rows = rows.iter().map(|row| csv_row(heading, row));
                tables.push(csv_row("table", &header) + &rows.collect::<String>());
            }
            _ => {}
        }
    }
    tables.join("\r\n")
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

/// The record as a page.
pub(crate) fn page(blocks: &[Block], provenance: &Provenance) -> String {
    let mut body = Markup::default();
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
            Block::Code(text) => body.leaf("pre", &[], text.trim()),
            Block::Heading(heading) => body.leaf("h2", &[], heading),
            Block::Paragraph(paragraph) => body.leaf("p", &[], paragraph),
            Block::Entries(entries) => html::definitions(&mut body, entries),
            Block::Table(table) => html::figures(&mut body, table),
            Block::Picture(picture) => body.append(picture),
        }
    }
    html::page(provenance, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Block> {
        let mut table = Table::new();
        table.set_header(["", "time"]).add_row(["a|b", "1,612 \"ns\""]);
        vec![
            Block::Heading("Read".to_owned()),
            Block::Entries(vec![("CPU".to_owned(), "a".to_owned())]),
            Block::Table(table),
        ]
    }

    #[test]
    fn markdown_has_the_text_and_tables_with_their_bars_escaped() {
        let expected =
            "## Read\n\n- **CPU**: a\n\n|  | time |\n|---|---|\n| a\\|b | 1,612 \"ns\" |\n";
        let with_origin = markdown(&blocks(), &Provenance::of_this_run(false));
        let rest = with_origin.strip_prefix(expected).expect("what was said");
        assert!(rest.starts_with("\n## Where this comes from\n\n- **date**: "), "{rest}");
    }

    #[test]
    fn csv_has_the_tables_with_their_headings_and_quotes() {
        assert_eq!(
            csv(&blocks(), &Provenance::of_this_run(false)),
            "table,,time\r\nRead,a|b,\"1,612 \"\"ns\"\"\"\r\n"
        );
    }

    #[test]
    fn a_page_has_all_of_it() {
        let page = page(&blocks(), &Provenance::of_this_run(false));
        assert!(!page.contains("{}") && page.contains("<h2>Where this comes from</h2>"), "{page}");
        for part in ["<h2>Read</h2>", "<dt>CPU</dt><dd>a</dd>", "<td class=\"n\">1,612 "] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
