//! `rcu advise`: runs a workload on every design, ranks them, and says where the answer flips.
//!
//! Reading order: [`run`] says what is measured when; [`race`] runs designs against each other,
//! [`rank`] compares them by the rule of [`decide`] and the table of [`simplicity`], [`sweep`]
//! changes one thing at a time, [`curves`] the threads for all designs, [`verdict`] puts it into
//! words, with what [`tree`] says of counters and references, for which [`leaves`] has the figures,
//! and [`remarks`] of indexes, large values and code to paste; [`report`] shows it and writes it as
//! JSON; sentences are in [`TEXTS`].

mod curves;
mod decide;
mod leaves;
mod race;
mod rank;
mod remarks;
mod report;
mod run;
mod simplicity;
mod sweep;
mod tree;
mod verdict;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Instant;

use bench::{data, units};

use crate::exit::{Exit, Failure, Result};
use crate::keys::{self, Keys};
use crate::machine::Machine;
use crate::number::within;
use crate::output::Output;
use crate::workload::{Kind, Workload};
use report::Report;
use run::Run;
pub(crate) use simplicity::help as simplest;

/// What is said in whole sentences that stay the same, by name.
static TEXTS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| data::read_toml(include_str!("texts.toml")));

/// The arguments of `rcu advise`, as typed.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AdviseArgs {
    /// Finish within 15 seconds, on a busy machine 25: fewer keys, fewer slices, coarser verdicts
    #[arg(long)]
    quick: bool,
    /// Use this seed for the operations and the order of the slices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Leave a part out; may be given twice
    #[arg(long, value_name = "PART", value_enum)]
    skip: Vec<Part>,
    /// Measure for this many minutes, or until it is clear which designs are equal
    #[arg(long, value_name = "N", value_parser = within(1..=1440))]
    minutes: Option<u32>,
    /// Read the workload from a TOML file; the flags below override it
    #[arg(long = "workload", value_name = "FILE", help_heading = "Workload")]
    workload_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) workload: Workload,
}

/// What can be left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Part {
    /// The table of what synchronisation costs
    Costs,
    /// The search for where the answer flips, or the curves in its place
    Sweep,
}

/// Runs `rcu advise`.
pub(crate) fn run(args: &AdviseArgs, output: &mut Output) -> Result<Exit> {
    let start = Instant::now();
    let machine = Machine::detect();
    // A control group may allow less time than its CPUs have: then more threads never run at once.
    let cpus = available_parallelism().map_or(1, NonZero::get);
    let workload = args.workload.clone().resolve(cpus, args.quick)?;
    let is_stopped = || output.interrupt.requested();
    let keys = keys::read(workload.keys.as_deref(), workload.keys_max, is_stopped)?;
    check_memory(&machine, &workload, &keys)?;
    machine.print(output);
    let run = Run { start, args, machine: &machine, cpus: cpus as u32, workload, keys };
    let report = run.measure(output);
    report.print(output);
    output.findings(report::SCHEMA, report.document());
    Ok(verdict_of(&report))
}

fn verdict_of(report: &Report<'_>) -> Exit {
    if report.checksum_errors > 0 {
        Exit::Violation
    } else if report.interrupted {
        Exit::Interrupted
    } else if report.too_noisy().is_some() {
        Exit::Noisy
    } else {
        Exit::Ok
    }
}

/// All designs are filled at once, since their slices are interleaved. Says beforehand when that
/// does not fit, and what would.
fn check_memory(machine: &Machine, workload: &Workload, keys: &Keys) -> Result<()> {
    /// What a design keeps for a key besides its value, generously: buckets, counts, pointers.
    const BYTES_BESIDE_VALUE: u64 = 256;
    let designs = bench::advise::designs(workload.measured()).len() as u64;
    let values = if Kind::KEYED.contains(&workload.kind) { keys.census.count } else { 1 };
    let needed = designs * values * (u64::from(workload.value_bytes) + BYTES_BESIDE_VALUE);
    match machine.memory_available_bytes {
        Some(available) if needed > available / 2 => Err(Failure::usage(format!(
            "this workload needs about {} for {designs} designs, and {} are available; take fewer \
             keys (--max-keys) or smaller values (--value-bytes)",
            units::bytes(needed),
            units::bytes(available)
        ))),
        _ => Ok(()),
    }
}
