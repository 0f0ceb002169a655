//! `rcu costs`: what synchronisation costs on this machine, beside the table of 2005.
//!
//! Paul McKenney's talk at linux.conf.au 2005 put instructions, caches, atomics and locks into one
//! table, and the choice of a tool follows from it. This is that table again, measured here by
//! [`bench::costs`], with what has become possible since: readers that execute no atomic
//! instruction, and `membarrier`. And what such a price means for a critical section, as he put it
//! there: its efficiency, `Tc / (Tc + Ta + Tr)`.

pub(crate) mod table;

use ::bench::costs::{self, Costs};
use serde::Serialize;

use crate::exit::{Exit, Failure, Result};
use crate::json::{self, object};
use crate::machine::Machine;
use crate::output::{Output, SchemaId};

/// The JSON that this command writes, and its version; see `docs/JSON.md`.
pub(crate) const SCHEMA: SchemaId = SchemaId("quiescence/costs", 1);

/// The arguments of `rcu costs`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CostsArgs {
    /// Measure for a shorter time: coarser figures within a second or two
    #[arg(long)]
    quick: bool,
    /// The critical section of the column "efficiency": how long its own work takes, in nanoseconds
    #[arg(long, value_name = "NS", default_value = "100", value_parser = section_ns)]
    section: f64,
    /// Keep each thread on a CPU of its own while it measures
    #[arg(long)]
    pin: bool,
}

/// The length of a critical section, in nanoseconds.
fn section_ns(text: &str) -> Result<f64, String> {
    let ns = text.parse().ok().filter(|ns| *ns > 0.0 && *ns <= 1e9);
    let wrong = "give a number of nanoseconds: more than 0, at most 1000000000";
    ns.ok_or_else(|| wrong.to_owned())
}

/// The table in JSON.
pub(crate) fn table_out(costs: &Costs) -> impl Serialize {
    let published = costs.published;
    let row = |row: &costs::Cost| {
        object! {
            "id": row.id,
            "name": row.name.clone(),
            "threads": row.threads,
            "ns": row.ns,
            "missing": row.missing.as_ref().map(ToString::to_string),
            "published_ns": row.published_ns,
            "efficiency": row.efficiency(costs.section_ns),
        }
    };
    object! {
        "run": json::run(&costs.run),
        "published": object! {
            "machine": published.machine,
            "year": published.year,
            "source": published.source,
        },
        "section_ns": costs.section_ns,
        "rows": costs.rows.iter().map(row).collect::<Vec<_>>(),
    }
}

/// Runs `rcu costs`.
pub(crate) fn run(args: &CostsArgs, output: &mut Output) -> Result<Exit> {
    let machine = Machine::detect();
    machine.print(output)?;
    output.progress.begin(costs::duration(args.quick));
    let mut costs = measure(&machine, (args.quick, args.pin), output)?;
    costs.section_ns = args.section;
    output.progress.end();
    table::print(&costs, output)?;
    let interrupted = output.interrupt().requested();
    let document = object! {
        "interrupted": interrupted,
        "machine": &machine,
        "costs": table_out(&costs),
    };
    output.json(SCHEMA, &document)?;
    Ok(if interrupted { Exit::Interrupted } else { Exit::Ok })
}

/// Measures every figure. After Ctrl-C the rest is missing, and says so.
pub(crate) fn measure(
    machine: &Machine,
    (quick, pin): (bool, bool),
    output: &mut Output,
) -> Result<Costs> {
    let machine = costs::Machine {
        cpus: machine.cpus.clone(),
        cache_bytes: [machine.cache_bytes(1), machine.cache_bytes(2), machine.last_cache_bytes()],
        memory_available_bytes: machine.memory_available_bytes,
    };
    costs::measure(&machine, quick, pin, output)
        .map_err(|error| Failure::io("cannot write to standard output", error))
}
