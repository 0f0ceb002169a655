//! `rcu costs`: what synchronisation costs on this machine, beside the table of 2005.
//!
//! Paul McKenney's talk at linux.conf.au 2005 put instructions, caches, atomics and locks into one
//! table, and the choice of a tool follows from it. This is that table again, measured here by
//! [`bench::costs`], with what has become possible since: readers that execute no atomic
//! instruction, and `membarrier`. And what such a price means for a critical section, as he put it
//! there: its efficiency, `Tc / (Tc + Ta + Tr)`.

use ::bench::costs::{self, Cost, Costs};
use ::bench::units;
use serde_json::{Value, json};

use crate::distinct::no_figure;
use crate::exit::Exit;
use crate::machine::{Machine, geometry};
use crate::number::{ABOVE_0, real_within};
use crate::output::{self, Output, SchemaId, run_out};
use crate::plot::{self, Axis, Interval, Scale};

/// The JSON that this command writes, and its version; see `docs/JSON.md`.
pub(crate) const SCHEMA: SchemaId = SchemaId("quiescence/costs", 1);

/// The arguments of `rcu costs`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CostsArgs {
    /// Measure for a shorter time: coarser figures within a second or two
    #[arg(long)]
    quick: bool,
    /// The critical section for the column "efficiency": how long its own work takes, in
    /// nanoseconds, as 100 or 100ns
    #[arg(long, value_name = "NS", default_value = "100", value_parser = section_ns)]
    section: f64,
    /// Pin each thread to a CPU of its own while it measures
    #[arg(long)]
    pin: bool,
}

/// The length of a critical section, in nanoseconds.
fn section_ns(text: &str) -> Result<f64, String> {
    real_within(ABOVE_0, 1e9)(text.strip_suffix("ns").unwrap_or(text))
}

/// The table in JSON.
pub(crate) fn table_out(costs: &Costs) -> Value {
    let row = |row: &Cost| {
        json!({
            "id": row.id,
            "name": row.name,
            "threads": row.threads,
            "ns": row.ns,
            "missing": row.missing.as_ref().map(ToString::to_string),
            "published_ns": row.published_ns,
            "efficiency": row.efficiency(costs.section_ns),
        })
    };
    json!({
        "run": run_out(&costs.run),
        "published": costs.published,
        "section_ns": costs.section_ns,
        "rows": costs.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Runs `rcu costs`.
pub(crate) fn run(args: &CostsArgs, output: &mut Output) -> Exit {
    let machine = Machine::detect();
    machine.print(output);
    output.progress.begin(costs::duration(args.quick));
    let mut costs = measure(&machine, (args.quick, args.pin), output);
    costs.section_ns = args.section;
    output.progress.end();
    print(&costs, output);
    output.findings(SCHEMA, json!({ "machine": machine, "costs": table_out(&costs) }));
    output.exit(Exit::Ok)
}

/// Measures every figure. After Ctrl-C the rest is missing, and says so.
pub(crate) fn measure(machine: &Machine, (quick, pin): (bool, bool), output: &mut Output) -> Costs {
    let machine = costs::Machine {
        cpus: machine.cpus.clone(),
        caches: geometry(&machine.caches),
        memory_available_bytes: machine.memory_available_bytes,
    };
    costs::measure(&machine, quick, pin, output)
}

/// Prints the table.
pub(crate) fn print(costs: &Costs, output: &mut Output) {
    output.heading("What synchronisation costs here");
    output.paragraph(costs.run.to_string());
    let year = costs.published.year.to_string();
    let cycle = costs.rows.iter().find(|row| row.id == "clock_cycle");
    let cycle = cycle.and_then(|row| row.ns).map(|ns| ns.median);
    let rows = costs.rows.iter().map(|row| cells(costs, row, cycle));
    let header = ["operation", "here", "cycles", &year, "efficiency"];
    if costs.rows.iter().all(|row| row.ns.is_none()) {
        return output.paragraph(&remarks(costs)[0]);
    }
    output.table(output::table(&header, 1.., rows));
    // The figures that were measured.
    let interval = |row: &Cost| {
        let ns = row.ns?;
        Some(Interval {
            published: row.published_ns,
            ..Interval::of(&*row.name, true, ns, units::nanoseconds(ns.median))
        })
    };
    let title = format!(
        "Median here, whiskers at the quartiles; hollow: published in {year}; logarithmic."
    );
    let axis = Axis::new("time of one operation", Scale::Logarithmic, units::nanoseconds);
    let rows = costs.rows.iter().filter_map(interval).collect();
    output.picture(|| plot::intervals(&title, axis, rows));
    remarks(costs).iter().for_each(|remark| output.paragraph(remark));
}

/// What there is to say below the table. What has no figure, and why, is too long for a cell.
fn remarks<'a>(costs: &'a Costs) -> Vec<String> {
    let missing = |row: &'a Cost| Some((&*row.name, row.missing.as_ref()?.to_string()));
    let published = costs.published;
    let mut remarks: Vec<String> =
        no_figure(costs.rows.iter().filter_map(missing), "rows").into_iter().collect();
    remarks.push(format!("{}: {} ({}).", published.year, published.machine, published.source));
    remarks.push(format!(
        "efficiency: the share of the useful work, Tc / (Tc + Ta + Tr), of a critical section \
         whose own work takes Tc = {} (--section of rcu costs), with Ta to enter it and Tr to \
         leave it. If sections run one at a time, every further CPU lowers it.",
        units::nanoseconds(costs.section_ns)
    ));
    remarks
}

/// The cells of its line: name, here, in cycles, then, and the efficiency of a section.
fn cells(costs: &Costs, row: &Cost, cycle_ns: Option<f64>) -> [String; 5] {
    let known = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let ns = row.ns.map(|ns| ns.median);
    let cycle_ns = cycle_ns.filter(|cycle| *cycle > 0.0);
    let cycles = ns.zip(cycle_ns).map(|(ns, cycle)| units::figures(ns / cycle));
    let percent = |share: f64| format!("{} %", units::figures(100.0 * share));
    let efficiency = row.efficiency(costs.section_ns).map(percent);
    let [here, then] = [ns, row.published_ns].map(|ns| known(ns.map(units::nanoseconds)));
    let [cycles, efficiency] = [cycles, efficiency].map(known);
    [row.name.clone(), here, cycles, then, efficiency]
}

#[cfg(test)]
mod tests {
    use bench::slices::Missing;

    use super::*;

    #[test]
    fn a_section_may_have_its_unit() {
        assert_eq!((section_ns("100"), section_ns("2.5ns")), (Ok(100.0), Ok(2.5)));
    }

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
        let two = || Missing::NeedsCpus(2);
        let rows = vec![row("one", two()), row("two", Missing::NoMembarrier), row("three", two())];
        let run = bench::slices::RunVerdict::default();
        let costs = Costs { published: bench::costs::published(), rows, run, section_ns: 100.0 };
        assert_eq!(cells(&costs, &costs.rows[0], None), ["one", "–", "–", "–", "–"]);
        let remarks = remarks(&costs);
        let expected = "No figure: one, three (needs 2 CPUs); two (the kernel has no membarrier).";
        assert_eq!(remarks[0], expected);
        assert_eq!(remarks.len(), 3, "the source of the other column, and what efficiency is");
        let many = (0..31).map(|_| ("a", "interrupted".to_owned()));
        assert_eq!(no_figure(many, "rows").unwrap(), "No figure: 31 rows (interrupted).");
        assert_eq!(no_figure([], "rows"), None);
    }
}
