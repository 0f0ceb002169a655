//! What if: engines on machines that one does not have, and every combination of what is varied.

use std::cell::LazyCell;

use bench::units;
use serde_json::{Value, json};
use simulate::{Report, run_with_progress};

use super::options::WhatIfArgs;
use super::pool::{self, Job};
use super::product::{self, Run};
use super::shape::{self, Setting, Shape};
use super::{costs, curves, metric, picture};
use crate::exit::{Exit, Failure, Result};
use crate::html;
use crate::output::{Output, SchemaId};

/// The JSON that is written, and its version; see `docs/JSON.md`.
const SCHEMA: SchemaId = SchemaId("quiescence/simulate", 1);

fn name(Run { setup, engine, workload, .. }: &Run) -> String {
    format!("{} on {} CPUs, {}", engine.name(), setup.cpus, workload.name())
}

pub(super) fn job(run: &Run) -> Job<Report> {
    let Run { setup, engine, workload, .. } = run.clone();
    Job {
        name: name(run),
        about: product::about(&setup, &engine, &workload),
        run: Box::new(move |at| {
            let progress = &mut |now| at(now, setup.end());
            // What is impossible was refused before anything ran.
            run_with_progress(&setup, &engine, &workload, progress).ok().flatten()
        }),
    }
}

/// Every combination of what was typed.
pub(super) fn runs(args: &WhatIfArgs, output: &mut Output) -> Result<Vec<Run>> {
    if !args.variant.is_empty() {
        return Err(Failure::usage(format!(
            "--variant is of --engine {}, which runs alone",
            super::srcu::NAME
        )));
    }
    // Everything but the costs is checked before they are measured, which takes seconds.
    product::runs(args, &[])?;
    let costs = args.costs.iter().map(|name| costs::by_name(name, output));
    product::runs(args, &costs.collect::<Result<Vec<_>>>()?)
}

/// Runs every combination and tells.
pub(super) fn run(args: &WhatIfArgs, output: &mut Output) -> Result<Exit> {
    let runs = runs(args, output)?;
    let mut svg = output.open("--svg", args.svg.as_deref())?;
    let reports = pool::run(runs.iter().map(job), output);
    let done: Vec<(&Run, &Report)> = pool::ended(&runs, &reports).collect();
    let shape = Shape::of(&runs.iter().map(settings).collect::<Vec<_>>());
    let panel =
        |(run, report): &(&Run, &Report)| (shape.words(&settings(run)), report.timeline.clone());
    let panels = || done.iter().map(panel).collect::<Vec<_>>();
    let drawn = LazyCell::new(|| picture::draw(&panels(), &shape.shared));
    // If nothing was simulated to its end, there is none, and an older one stays.
    if let Some(svg) = &mut svg
        && let Some((_, picture)) = html::picture(&drawn)
    {
        svg.write(&picture)?;
    }
    let all: Vec<_> = runs.iter().zip(&reports).map(run_out).collect();
    output.findings(SCHEMA, json!({ "runs": all }));
    print(&shape, &done, output);
    curves::add(&done, settings, output);
    if !done.is_empty() {
        let title = "Who held the grace periods up, when";
        output.picture(|| html::titled(title, |part| part.append(&drawn)));
    }
    let faults = faults(&done);
    for fault in &faults {
        output.note(fault);
    }
    Ok(super::exit(output, !faults.is_empty()))
}

/// Engines at fault: those that wanted callbacks run too early, or that no thread had queued.
fn faults(done: &[(&Run, &Report)]) -> Vec<String> {
    let of = |(run, report): &(&Run, &Report)| {
        let seen = &report.callbacks;
        let faults = [
            (seen.invoked_beyond_queue, "callbacks were to run that nobody had queued"),
            (seen.early_batches, "batches were run before every CPU had been quiescent"),
        ];
        let name = name(run);
        let found = faults.into_iter().filter(|(count, _)| *count > 0);
        found.map(|(count, what)| format!("{name}: {count} {what}")).collect::<Vec<_>>()
    };
    done.iter().flat_map(of).collect()
}

pub(super) fn settings(Run { engine, workload, setup, costs, sets }: &Run) -> Vec<Setting> {
    let machine = [
        shape::plain("workload", workload.name()),
        shape::count("CPUs", setup.cpus as u64),
        shape::count("Hz", setup.hz.into()),
        shape::switch("tickless", setup.tickless, ["tickless", "ticks always on"]),
        shape::switch("preemptible", setup.preemptible, ["preemptible", "not preemptible"]),
        shape::named("costs", costs),
        shape::named("seed", setup.seed),
    ];
    let sets = sets.iter().map(|(name, value)| shape::named(name, value));
    machine.into_iter().chain(sets).chain([shape::plain("engine", engine.name())]).collect()
}

/// Prints what all share, and the tables.
fn print(shape: &Shape, done: &[(&Run, &Report)], output: &mut Output) {
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
    ));
    let told = done.iter().map(|(run, report)| (settings(run), metric::groups(report).to_vec()));
    shape.print(&told.collect::<Vec<_>>(), output);
}

/// A run and its report, which it has unless it was interrupted.
fn run_out((Run { setup, costs, .. }, report): (&Run, &Option<Report>)) -> Value {
    json!({
        "costs": costs,
        "costs_ps": setup.costs,
        "budget_ppm": setup.budget_ppm,
        "slice_ns": setup.slice,
        "softirq_runs": setup.softirq_runs,
        "ksoftirqd_percent": setup.ksoftirqd_percent,
        "idle_look_every_ns": setup.idle_look_every,
        "background_every_ns": setup.background_every,
        "report": report,
    })
}

#[cfg(test)]
mod tests {
    use super::product::tests::resolve;
    use super::*;

    /// The settings of each run of this line, and what they share.
    fn swept(line: &str) -> (Vec<Vec<Setting>>, Shape) {
        let all: Vec<_> = resolve(line).iter().map(settings).collect();
        let shape = Shape::of(&all);
        (all, shape)
    }

    #[test]
    fn what_differs_is_told_apart_and_the_rest_is_said_once() {
        let (all, shape) = swept("--engine poll,tick --cpus 2 --hz 100,1000");
        assert_eq!(shape.varies, ["Hz", "engine"]);
        assert_eq!(shape.values(&all[1]), ["100", "tick"]);
        assert_eq!(shape.words(&all[1]), "100 Hz, tick");
        assert!(shape.shared.contains(&"2 CPUs".to_owned()), "{shape:?}");
        assert!(!shape.shared.iter().any(|words| words.contains("Hz")), "{shape:?}");
    }

    #[test]
    fn a_number_that_only_some_have_is_told_apart() {
        let (all, shape) = swept("--engine tick --cpus 2 --set busy_us=100 --workload idle,dbench");
        assert_eq!(shape.varies, ["workload", "busy_us"]);
        assert_eq!(shape.values(&all[0]), ["idle", "–"]);
        assert_eq!(shape.values(&all[1]), ["dbench", "100"]);
    }
}
