//! The Markdown of `rcu bench readme`, and its place in a file: between two markers that name the
//! CPU, so that the figures of another one stay.

use std::fmt::Write as _;
use std::path::Path;

use ::bench::suites::SUITES;
use ::bench::suites::readme::{Column, Row};
use ::bench::suites::rounds::Case;
use ::bench::units;

use super::report::half_spread;
use crate::exit::{Failure, Result, text_of};
use crate::machine::Machine;

/// What stands where there is no figure.
const NONE: &str = "–";

/// The tables, between their markers.
pub(super) fn block(cases: &[Case], machine: &Machine) -> String {
    let cpu = cpu(machine);
    let mut text = format!("{}\n", begin(&cpu));
    let guest = if machine.virtual_machine == Some(true) { ", virtual machine" } else { "" };
    let _ = writeln!(
        text,
        "{cpu}{guest}, {} CPUs; medians of interleaved slices,\n± half the interquartile range.",
        machine.cpus.len()
    );
    for table in &SUITES.readme {
        let headings: Vec<&str> = table.columns.iter().map(|column| column.heading).collect();
        let _ = writeln!(text, "\n| {} | {} |", table.heading, headings.join(" | "));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(headings.len()));
        for row in &table.rows {
            let cells: Vec<String> =
                table.columns.iter().map(|column| cell(cases, row, column)).collect();
            let _ = writeln!(text, "| {} | {} |", row.label, cells.join(" | "));
        }
    }
    text + &end(&cpu)
}

/// A figure with its spread.
fn cell(cases: &[Case], row: &Row, column: &Column) -> String {
    let figure = || {
        let case = cases.iter().find(|case| case.id == column.case)?;
        let metric = case.metrics.iter().position(|metric| metric.name == column.metric)?;
        let spread = case.rival(row.rival(column)?)?.spread(metric)?;
        Some(format!("{} ± {}", units::figures(spread.median), half_spread(&spread)))
    };
    figure().unwrap_or_else(|| NONE.to_owned())
}

fn cpu(machine: &Machine) -> String {
    machine.model.clone().unwrap_or_else(|| "unknown CPU".to_owned())
}

fn begin(cpu: &str) -> String {
    format!("<!-- rcu bench readme: {cpu} -->")
}

fn end(cpu: &str) -> String {
    format!("<!-- end of rcu bench readme: {cpu} -->")
}

/// The text of the file with the block: in the place of this CPU's last one, or after the last one
/// of another CPU. Fails if the file has no place for it.
pub(super) fn with_block(path: &Path, block: &str, machine: &Machine) -> Result<String> {
    let cpu = cpu(machine);
    replaced(&text_of(path)?, block, &cpu).ok_or_else(|| {
        Failure::usage(format!(
            "{} has no place for the tables: write the lines {} and {} where they belong",
            path.display(),
            begin(&cpu),
            end(&cpu)
        ))
    })
}

fn replaced(text: &str, block: &str, cpu: &str) -> Option<String> {
    if let Some(from) = text.find(&begin(cpu)) {
        let to = from + text[from..].find(&end(cpu))? + end(cpu).len();
        return Some(format!("{}{block}{}", &text[..from], &text[to..]));
    }
    let last = text.rfind("<!-- end of rcu bench readme: ")?;
    let to = last + text[last..].find("-->")? + "-->".len();
    Some(format!("{}\n\n{block}{}", &text[..to], &text[to..]))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ::bench::suites::rounds::{Metric, Unit};

    use super::*;
    use crate::output::Output;

    const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];

    fn machine() -> Machine {
        Machine { model: Some("A CPU".to_owned()), ..Machine::detect() }
    }

    #[test]
    fn a_figure_has_its_spread_and_what_was_not_measured_has_none() {
        let mut case = Case::new("read/1-thread", "x", METRICS, [("seize", false)]);
        case.rivals[0].values = vec![vec![5.0, 6.0, 7.0]];
        let block = block(&[case], &machine());
        assert!(block.contains("| seize | 6.00 ± 8 % | – | – | – |"), "{block}");
        assert!(block.contains("medians of interleaved slices"), "{block}");
        assert!(block.lines().all(|line| line.chars().count() <= 100), "{block}");
        assert!(block.starts_with(&begin("A CPU")) && block.ends_with(&end("A CPU")), "{block}");
    }

    #[test]
    fn a_block_takes_the_place_of_its_cpu_s_and_of_no_other() {
        let block = |cpu: &str, body: &str| format!("{}\n{body}\n{}", begin(cpu), end(cpu));
        let text = format!("before\n{}\nafter\n", block("A CPU", "old"));
        let new = replaced(&text, &block("A CPU", "new"), "A CPU").unwrap();
        assert_eq!(new, format!("before\n{}\nafter\n", block("A CPU", "new")));
        let both = replaced(&new, &block("B", "more"), "B").unwrap();
        let (a, b) = (block("A CPU", "new"), block("B", "more"));
        assert_eq!(both, format!("before\n{a}\n\n{b}\nafter\n"));
        assert_eq!(replaced("no markers", "x", "A CPU"), None);
        assert_eq!(replaced(&begin("A CPU"), "x", "A CPU"), None, "no end");
    }

    #[test]
    fn a_file_without_markers_is_told_which_lines_it_needs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("README.md");
        fs::write(&path, "nothing").unwrap();
        let message = with_block(&path, "", &machine()).unwrap_err().to_string();
        assert!(message.contains("<!-- rcu bench readme: A CPU -->"), "{message}");
        fs::write(&path, format!("{}\n{}", begin("A CPU"), end("A CPU"))).unwrap();
        let text = with_block(&path, "new", &machine()).unwrap();
        // A file took the place of the link, and what it led to stayed as it was.
        let link = directory.path().join("link.md");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut output = Output::new(&Default::default()).unwrap();
        let mut file = output.open("--into", Some(&link)).unwrap().expect("it is named");
        file.write(&text).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(link.is_symlink());
    }
}
