//! The table as it is printed: our figures, in nanoseconds and in cycles, beside the published
//! ones.

use ::bench::costs::{Cost, Costs};
use ::bench::units;

use crate::exit::Result;
use crate::output::{self, Output};
use crate::plot::{Axis, Interval, Scale};
use crate::record::Block;

/// Prints the table.
pub(crate) fn print(costs: &Costs, output: &mut Output) -> Result<()> {
    output.heading("What synchronisation costs here")?;
    output.paragraph(costs.run.to_string())?;
    let year = costs.published.year.to_string();
    let cycle = costs.rows.iter().find(|row| row.id == "clock_cycle");
    let cycle = cycle.and_then(|row| row.ns).map(|ns| ns.median);
    let rows = costs.rows.iter().map(|row| cells(costs, row, cycle));
    let header = ["operation", "here", "cycles", &year, "efficiency"];
    output.table(output::table(&header, 1.., rows))?;
    // The figures that were measured.
    let interval = |row: &Cost| {
        let ns = row.ns?;
        let figures = [ns.median, ns.low, ns.high];
        Some(Interval {
            published: row.published_ns,
            ours: true,
            ..Interval::of(&*row.name, figures, units::nanoseconds(ns.median))
        })
    };
    output.plot(|| Block::Intervals {
        title: format!(
            "Median here, whiskers at the quartiles; hollow: published in {year}; logarithmic."
        ),
        axis: Axis::new("time of one operation", Scale::Logarithmic, units::nanoseconds),
        rows: costs.rows.iter().filter_map(interval).collect(),
    });
    for remark in remarks(costs) {
        output.paragraph(remark)?;
    }
    Ok(())
}

/// What there is to say below the table. What has no figure, and why, is too long for a cell.
fn remarks(costs: &Costs) -> Vec<String> {
    let one = |row: &Cost| Some(format!("{} ({})", row.name, row.missing.as_ref()?));
    let missing: Vec<String> = costs.rows.iter().filter_map(one).collect();
    let published = costs.published;
    let mut remarks = Vec::new();
    if !missing.is_empty() {
        remarks.push(format!("No figure: {}.", missing.join("; ")));
    }
    remarks.push(format!("{}: {} ({}).", published.year, published.machine, published.source));
    remarks.push(format!(
        "efficiency: the share of the useful work, Tc / (Tc + Ta + Tr), of a critical section \
         whose own work takes Tc = {} (--section of rcu costs), with Ta to enter it and Tr to \
         leave it. Sections of which one at a time runs have less, with every CPU more.",
        units::nanoseconds(costs.section_ns)
    ));
    remarks
}

/// The cells of its line: name, here, in cycles, then, and the efficiency of a section.
fn cells(costs: &Costs, row: &Cost, cycle_ns: Option<f64>) -> [String; 5] {
    let here = row.ns.map_or_else(|| "–".to_owned(), |ns| units::nanoseconds(ns.median));
    let cycles = match (&row.ns, cycle_ns) {
        (Some(ns), Some(cycle)) if cycle > 0.0 => units::figures(ns.median / cycle),
        _ => "–".to_owned(),
    };
    let then = row.published_ns.map_or_else(|| "–".to_owned(), units::nanoseconds);
    let efficiency = row
        .efficiency(costs.section_ns)
        .map_or_else(|| "–".to_owned(), |share| format!("{} %", units::figures(100.0 * share)));
    [row.name.clone(), here, cycles, then, efficiency]
}

#[cfg(test)]
mod tests {
    use bench::slices::Missing;

    use super::*;

    #[test]
    fn what_is_missing_is_said_below_the_table_once_for_each_reason() {
        let row = |name: &str, missing| Cost {
            id: "membarrier",
            name: name.to_owned(),
            threads: 0,
            ns: None,
            missing: Some(missing),
            published_ns: None,
        };
        let rows = vec![row("one", Missing::NeedsCpus(2)), row("two", Missing::NoMembarrier)];
        let run = bench::slices::RunVerdict::default();
        let costs = Costs { published: bench::costs::published(), rows, run, section_ns: 100.0 };
        assert_eq!(cells(&costs, &costs.rows[0], None), ["one", "–", "–", "–", "–"]);
        let remarks = remarks(&costs);
        let expected = "No figure: one (needs 2 CPUs); two (the kernel has no membarrier).";
        assert_eq!(remarks[0], expected);
        assert_eq!(remarks.len(), 3, "the source of the other column, and what efficiency is");
    }
}
