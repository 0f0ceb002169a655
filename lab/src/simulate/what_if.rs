//! What if: engines on machines that one does not have, and every combination of what is varied.

use std::ops::ControlFlow;
use std::time::Duration;

use bench::units;
use comfy_table::Table;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use simulate::{EngineKind, Report, Setup, Workload, run_with_progress};

use super::options::WhatIfArgs;
use super::picture::{self, Panel};
use super::pool::{self, Job, Watch};
use super::product::{self, Base, Run, or_default};
use super::{costs, metric};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, SchemaId};
use crate::record::Block;

/// The JSON that is written, and its version; see `docs/JSON.md`.
const SCHEMA: SchemaId = SchemaId("quiescence/simulate", 1);

/// So many runs still stand side by side, each in a column of its own.
const COLUMNS_MAX: usize = 4;

impl Job for Run {
    type Result = Report;

    fn name(&self) -> String {
        let cpus = self.setup.cpus;
        format!("{} on {cpus} CPUs, {}", self.engine.name(), self.workload.name())
    }

    fn about(&self) -> Duration {
        product::about(&self.setup, &self.engine, &self.workload)
    }

    fn run(&self, watch: &Watch<'_>) -> Option<Report> {
        simulate(&self.setup, &self.engine, &self.workload, watch)
    }
}

/// Runs a simulation that tells how far it is; `None` if it was asked to stop.
pub(super) fn simulate(
    setup: &Setup,
    engine: &EngineKind,
    workload: &Workload,
    watch: &Watch<'_>,
) -> Option<Report> {
    let end = setup.end().max(1);
    let mut told = 0;
    let mut progress = |now: u64| {
        let permille = (u128::from(now) * 1_000 / u128::from(end)) as u16;
        // A bar of 30 places need not hear of everything.
        let is_news = permille >= told + 10;
        told = if is_news { permille } else { told };
        let goes_on = if is_news { watch.reached(permille) } else { !watch.should_stop() };
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    // What is impossible was refused before anything ran.
    run_with_progress(setup, engine, workload, &mut progress).ok().flatten()
}

/// Runs every combination and tells.
pub(super) fn run(args: &WhatIfArgs, output: &mut Output) -> Result<Exit, Failure> {
    let mut base = Base::of(args)?;
    if !args.variant.is_empty() {
        return Err(Failure::Usage(format!(
            "--variant is of --engine {}, which runs alone",
            super::srcu::NAME
        )));
    }
    // Everything but the costs is checked before they are measured, which takes seconds.
    product::runs(args, &base)?;
    let mut svg = output.open("--svg", args.svg.as_deref())?;
    for name in or_default(&args.costs, "modern") {
        base.costs.push(costs::by_name(&name, output)?);
    }
    let runs = product::runs(args, &base)?;
    let reports = pool::run(&runs, output)?;
    let done: Vec<(&Run, &Report)> = runs
        .iter()
        .zip(&reports)
        .filter_map(|(run, report)| Some((run, report.as_ref()?)))
        .collect();
    let shape = Shape::of(&runs);
    let panels =
        || -> Vec<Panel> { done.iter().map(|(run, report)| panel(run, report, &shape)).collect() };
    if let Some(svg) = &mut svg {
        svg.write(&picture::draw(&panels()))?;
    }
    let interrupted = output.interrupt().requested();
    let all = runs.iter().zip(&reports);
    let all = all.map(|(run, report)| RunOut(run, report.as_ref())).collect();
    output.json(SCHEMA, &super::Runs { interrupted, runs: all })?;
    print(&shape, &done, output)?;
    if !done.is_empty() {
        output.plot(|| Block::Picture {
            title: "Who held the grace periods up, when",
            picture: picture::part(&panels()),
        });
    }
    for fault in faults(&done) {
        output.note(fault);
    }
    if interrupted {
        return Ok(Exit::Interrupted);
    }
    Ok(if faults(&done).is_empty() { Exit::Ok } else { Exit::Violation })
}

/// Engines at fault: those that wanted callbacks run too early, or that no thread had queued.
fn faults(done: &[(&Run, &Report)]) -> Vec<String> {
    let of = |(run, report): &(&Run, &Report)| {
        let seen = &report.callbacks;
        let faults = [
            (seen.invoked_beyond_queue, "callbacks were to run that nobody had queued"),
            (seen.early_batches, "batches were run before every CPU had been quiescent"),
        ];
        let name = Job::name(*run);
        let found = faults.into_iter().filter(|(count, _)| *count > 0);
        found.map(|(count, what)| format!("{name}: {count} {what}")).collect::<Vec<_>>()
    };
    done.iter().flat_map(of).collect()
}

/// What all runs share, and what tells them apart.
#[derive(Clone, Debug)]
struct Shape {
    /// Names of what varies, in the order of the columns.
    varies: Vec<String>,
    /// The rest, in words.
    shared: Vec<String>,
}

/// A setting's name, its value in words, and how both together read in a sentence.
type Setting = (String, String, String);

impl Shape {
    fn of(runs: &[Run]) -> Self {
        let all: Vec<Vec<Setting>> = runs.iter().map(settings).collect();
        let mut shape = Self { varies: Vec::new(), shared: Vec::new() };
        let names = all.iter().flatten().map(|(name, ..)| name);
        let mut seen: Vec<&String> = Vec::new();
        for name in names {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let values: Vec<Option<&Setting>> =
                all.iter().map(|settings| settings.iter().find(|(own, ..)| own == name)).collect();
            match values[0] {
                Some((_, _, words)) if values.iter().all(|value| *value == values[0]) => {
                    shape.shared.push(words.clone());
                }
                _ => shape.varies.push(name.clone()),
            }
        }
        shape
    }

    /// The same in words: `4 CPUs, poll`.
    fn words(&self, run: &Run) -> String {
        let settings = settings(run).into_iter();
        let varying = settings.filter(|(name, ..)| self.varies.contains(name));
        varying.map(|(_, _, words)| words).collect::<Vec<_>>().join(", ")
    }

    /// The values of what varies, of this run.
    fn values(&self, run: &Run) -> Vec<String> {
        let settings = settings(run);
        let value = |name: &String| {
            settings
                .iter()
                .find(|(own, ..)| own == name)
                .map_or("–".to_owned(), |(_, v, _)| v.clone())
        };
        self.varies.iter().map(value).collect()
    }
}

fn settings(run: &Run) -> Vec<Setting> {
    let setup = &run.setup;
    let plain = |name: &str, value: String, words: String| (name.to_owned(), value, words);
    let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
    let mut settings = vec![
        plain("workload", run.workload.name().to_owned(), run.workload.name().to_owned()),
        plain("CPUs", setup.cpus.to_string(), format!("{} CPUs", setup.cpus)),
        plain("Hz", setup.hz.to_string(), format!("{} Hz", setup.hz)),
        plain(
            "tickless",
            switch(setup.tickless),
            if setup.tickless { "tickless" } else { "ticks always on" }.to_owned(),
        ),
        plain(
            "preemptible",
            switch(setup.preemptible),
            if setup.preemptible { "preemptible" } else { "not preemptible" }.to_owned(),
        ),
        plain("costs", run.costs.clone(), format!("costs {}", run.costs)),
        plain("seed", setup.seed.to_string(), format!("seed {}", setup.seed)),
    ];
    for (name, value) in &run.sets {
        settings.push(plain(name, value.to_string(), format!("{name} {value}")));
    }
    settings.push(plain("engine", run.engine.name().to_owned(), run.engine.name().to_owned()));
    settings
}

fn panel(run: &Run, report: &Report, shape: &Shape) -> Panel {
    let words = settings(run).into_iter().map(|(name, _, words)| (name, words));
    let engine = run.engine.name();
    // What tells the panels apart comes first.
    let (apart, shared): (Vec<_>, Vec<_>) = words
        .filter(|(name, _)| name != "engine")
        .partition(|(name, _)| shape.varies.contains(name));
    let rest = apart.into_iter().chain(shared).map(|(_, words)| words);
    let title = std::iter::once(engine.to_owned()).chain(rest).collect::<Vec<_>>().join(", ");
    let of_cpus = report.timeline.iter().any(|grace_period| grace_period.of != 0);
    Panel { title, grace_periods: report.timeline.clone(), of_cpus }
}

/// Prints the tables: a column for each run if there are few, else a line.
fn print(shape: &Shape, done: &[(&Run, &Report)], output: &mut Output) -> Result<(), Failure> {
    let Some((first, _)) = done.first() else {
        return output.line("Nothing was simulated to its end.");
    };
    let setup = &first.setup;
    output.paragraph(format!(
        "{}; {} of virtual time{}.",
        shape.shared.join(", "),
        units::nanoseconds(setup.duration as f64),
        match setup.warm_up {
            0 => String::new(),
            warm_up => format!(", after {} to warm up", units::nanoseconds(warm_up as f64)),
        }
    ))?;
    for group in metric::GROUPS {
        output.heading(group.title)?;
        output.table(if done.len() <= COLUMNS_MAX {
            columns(shape, done, group)
        } else {
            lines(shape, done, group)
        })?;
    }
    Ok(())
}

fn columns(shape: &Shape, done: &[(&Run, &Report)], group: &metric::Group) -> Table {
    let names: Vec<String> = done
        .iter()
        .map(|(run, _)| match shape.varies.is_empty() {
            true => run.engine.name().to_owned(),
            false => shape.words(run),
        })
        .collect();
    let header: Vec<&str> = std::iter::once("").chain(names.iter().map(String::as_str)).collect();
    let mut table = output::table(&header);
    output::numeric(&mut table, 1..header.len());
    for metric in group.metrics {
        let cells = done.iter().map(|(_, report)| (metric.cell)(report));
        table.add_row(std::iter::once(metric.name.to_owned()).chain(cells));
    }
    table
}

fn lines(shape: &Shape, done: &[(&Run, &Report)], group: &metric::Group) -> Table {
    let metrics = group.metrics.iter().map(|metric| metric.name);
    let header: Vec<&str> = shape.varies.iter().map(String::as_str).chain(metrics).collect();
    let mut table = output::table(&header);
    output::numeric(&mut table, shape.varies.len()..header.len());
    for (run, report) in done {
        let cells = group.metrics.iter().map(|metric| (metric.cell)(report));
        table.add_row(shape.values(run).into_iter().chain(cells));
    }
    table
}

/// A run and its report, which it has unless it was interrupted.
#[derive(Debug)]
struct RunOut<'a>(&'a Run, Option<&'a Report>);

impl Serialize for RunOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RunOut(Run { setup, costs, .. }, report) = self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("costs", costs)?;
        object.serialize_entry("costs_ps", &setup.costs)?;
        object.serialize_entry("budget_ppm", &setup.budget_ppm)?;
        object.serialize_entry("slice_ns", &setup.slice)?;
        object.serialize_entry("softirq_runs", &setup.softirq_runs)?;
        object.serialize_entry("ksoftirqd_percent", &setup.ksoftirqd_percent)?;
        object.serialize_entry("idle_look_every_ns", &setup.idle_look_every)?;
        object.serialize_entry("background_every_ns", &setup.background_every)?;
        object.serialize_entry("report", report)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Set;
    use super::*;

    fn resolve(args: &WhatIfArgs) -> Vec<Run> {
        let base = Base::of(args).unwrap();
        product::runs(args, &base).unwrap()
    }

    fn args(engines: &[&str]) -> WhatIfArgs {
        let engine = engines.iter().map(|&name| name.to_owned()).collect();
        WhatIfArgs { engine, cpus: vec![2], ..WhatIfArgs::default() }
    }

    #[test]
    fn what_differs_is_told_apart_and_the_rest_is_said_once() {
        let runs = resolve(&WhatIfArgs { hz: vec![100, 1000], ..args(&["poll", "tick"]) });
        let shape = Shape::of(&runs);
        assert_eq!(shape.varies, ["Hz", "engine"]);
        assert_eq!(shape.values(&runs[1]), ["100", "tick"]);
        assert_eq!(shape.words(&runs[1]), "100 Hz, tick");
        assert!(shape.shared.contains(&"2 CPUs".to_owned()), "{shape:?}");
        assert!(!shape.shared.iter().any(|words| words.contains("Hz")), "{shape:?}");
    }

    #[test]
    fn a_number_that_only_some_have_is_told_apart() {
        let set: Set = "busy_us=100".parse().unwrap();
        let workload = ["idle", "dbench"].map(str::to_owned).to_vec();
        let runs = resolve(&WhatIfArgs { set: vec![set], workload, ..args(&["tick"]) });
        let shape = Shape::of(&runs);
        assert_eq!(shape.varies, ["workload", "busy_us"]);
        assert_eq!(shape.values(&runs[0]), ["idle", "–"]);
        assert_eq!(shape.values(&runs[1]), ["dbench", "100"]);
    }

    #[test]
    fn the_title_of_a_panel_begins_with_what_differs() {
        let runs = resolve(&WhatIfArgs {
            cpus: vec![2, 3],
            duration: Some("5ms".parse().unwrap()),
            warm_up: Some("1ms".parse().unwrap()),
            ..args(&["tick"])
        });
        let report = simulate::run(&runs[1].setup, &runs[1].engine, &runs[1].workload).unwrap();
        let panel = panel(&runs[1], &report, &Shape::of(&runs));
        assert!(panel.title.starts_with("tick, 3 CPUs, dbench"), "{}", panel.title);
        assert_eq!(panel.grace_periods, report.timeline);
    }
}
