//! The report as JSON. The schema is described in `docs/JSON.md`; the thread that changes a field
//! here describes it there, and raises the version when a reader of the old one would go wrong.

use bench::statistics::{Ratio, Spread};
use serde::Serialize;

use super::decide::Standing;
use super::rank::{By, Latency, Place, Ranking};
use super::report::{Report, reason};
use super::simplicity::{Step, TABLE};
use super::sweep::{Flip, Over, Point, Sweep};
use super::tree;
use crate::costs::CostsOut;
use crate::json::{self, RunOut};
use crate::keys::Census;
use crate::machine::Machine;
use crate::output::SchemaId;
use crate::workload::{Kind, Popularity, Workload};

pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/advise", 2);

/// The whole document.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    rcu: &'static str,
    seed: u64,
    interrupted: bool,
    run: RunOut,
    too_noisy: Option<String>,
    checksum_errors: u64,
    machine: &'a Machine,
    costs: Option<CostsOut<'a>>,
    keys: &'a Census,
    workload: WorkloadObject<'a>,
    ranked_by: By,
    designs: Vec<DesignObject>,
    unranked: Vec<Unranked>,
    small: Option<TableObject>,
    equal: Vec<&'static str>,
    lost_percent_at_most: Option<f64>,
    sweeps: Vec<SweepObject>,
    flips: Vec<Flip>,
    simplicity: &'static [Step],
    recommended: Option<&'static str>,
    program: Option<&'static str>,
    recommendation: Vec<String>,
    decision: Option<tree::Path>,
    disclosures: Vec<String>,
}

#[derive(Debug, Serialize)]
struct WorkloadObject<'a> {
    name: &'a str,
    kind: Kind,
    threads: u32,
    reads_percent: f64,
    churn_percent: f64,
    exact: bool,
    limit: Option<u32>,
    popularity: Popularity,
    value_bytes: u32,
    work: u32,
    keys_max: u32,
    run_ms: u64,
    rounds: u32,
}

/// The table that fits the caches.
#[derive(Debug, Serialize)]
struct TableObject {
    keys: u64,
    ranked_by: By,
    designs: Vec<DesignObject>,
    unranked: Vec<Unranked>,
    recommended: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Unranked {
    name: &'static str,
    missing: String,
}

#[derive(Debug, Serialize)]
struct DesignObject {
    rank: usize,
    name: &'static str,
    family: &'static str,
    ours: bool,
    index: Option<&'static str>,
    slices: usize,
    operations_per_second_of_slices: Vec<f64>,
    #[serde(serialize_with = "json::spread")]
    operations_per_second: Option<Spread>,
    #[serde(serialize_with = "json::ratio")]
    best_is_faster: Ratio,
    standing: Standing,
    lost_percent_at_most: Option<f64>,
    #[serde(serialize_with = "json::spread")]
    cpu_ns_per_operation: Option<Spread>,
    update_latency_ns: Option<Latency>,
    unreclaimed_peak: u64,
    checksum_errors: u64,
    idea: &'static str,
    reason: String,
}

#[derive(Debug, Serialize)]
struct SweepObject {
    over: Over,
    own: f64,
    points: Vec<PointObject>,
}

#[derive(Debug, Serialize)]
struct PointObject {
    value: f64,
    designs: Vec<DesignObject>,
}

/// The document of a report.
pub(super) fn document(report: &Report) -> Document<'_> {
    let advice = report.advice();
    let (last, first) = (advice.last(), advice.first());
    let table = report.tables.last();
    let small = report.tables.split_last().and_then(|(_, others)| others.first());
    Document {
        rcu: env!("CARGO_PKG_VERSION"),
        seed: report.seed,
        interrupted: report.interrupted,
        run: (&report.run).into(),
        too_noisy: report.too_noisy(),
        checksum_errors: report.checksum_errors(),
        machine: &report.machine,
        costs: report.costs.as_ref().map(CostsOut::from),
        keys: &report.keys,
        workload: workload(&report.workload),
        ranked_by: table.map_or(By::Wall, |table| table.by),
        designs: report.places().iter().map(design).collect(),
        unranked: table.map_or(Vec::new(), unranked),
        small: small.map(|table| TableObject {
            keys: table.keys,
            ranked_by: table.by,
            designs: table.places.iter().map(design).collect(),
            unranked: unranked(table),
            recommended: first.map(|one| one.choice.design.name),
        }),
        equal: last.map_or(Vec::new(), |one| one.set.iter().map(|it| it.design.name).collect()),
        lost_percent_at_most: last.and_then(|one| one.lost_percent_at_most),
        sweeps: report.sweeps.iter().map(sweep).collect(),
        flips: report.flips(),
        simplicity: &TABLE,
        recommended: last.map(|one| one.choice.design.name),
        program: last.map(|one| one.choice.design.program),
        recommendation: report.recommendation(),
        decision: report.decision(),
        disclosures: report.disclosures(),
    }
}

fn unranked(table: &Ranking) -> Vec<Unranked> {
    let one =
        |(name, missing): &(&'static str, String)| Unranked { name, missing: missing.clone() };
    table.unranked.iter().map(one).collect()
}

fn workload(workload: &Workload) -> WorkloadObject<'_> {
    WorkloadObject {
        name: &workload.name,
        kind: workload.kind,
        threads: workload.threads,
        reads_percent: workload.reads_percent,
        churn_percent: workload.churn_percent,
        exact: workload.exact,
        limit: workload.limit,
        popularity: workload.popularity,
        value_bytes: workload.value_bytes,
        work: workload.work,
        keys_max: workload.keys_max,
        run_ms: workload.run_for.as_millis() as u64,
        rounds: workload.rounds,
    }
}

fn design(place: &Place) -> DesignObject {
    DesignObject {
        rank: place.rank,
        name: place.design.name,
        family: place.design.family,
        ours: place.design.ours,
        index: place.design.index.map(bench::advise::KeyIndex::name),
        slices: place.slices.len(),
        operations_per_second_of_slices: place.slices.clone(),
        operations_per_second: Some(place.throughput),
        best_is_faster: place.best_is_faster,
        standing: place.standing,
        lost_percent_at_most: place.lost_percent_at_most,
        cpu_ns_per_operation: Some(place.cpu_ns),
        update_latency_ns: place.update_ns,
        unreclaimed_peak: place.unreclaimed_peak,
        checksum_errors: place.checksum_errors,
        idea: place.design.idea,
        reason: reason(place),
    }
}

fn sweep(sweep: &Sweep) -> SweepObject {
    let point = |point: &Point| PointObject {
        value: point.value,
        designs: point.places.iter().map(design).collect(),
    };
    SweepObject {
        over: sweep.over,
        own: sweep.own,
        points: sweep.points.iter().map(point).collect(),
    }
}
