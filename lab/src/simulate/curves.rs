//! What runs of several numbers of CPUs look like as curves: a line for each engine, and for what
//! else tells the runs apart.

use bench::units;
use simulate::Report;

use super::product::Run;
use super::shape::{Setting, Shape};
use crate::distinct::distinct;
use crate::output::Output;
use crate::plot::{self, Axis, Line, Scale};

/// A figure: its axis, and its value of a run.
type Figure = (Axis, fn(&Report) -> u64);

/// Adds the curves of these runs, if they differ in their CPUs; of means, where there are any.
pub(super) fn add(
    done: &[(&Run, &Report)],
    settings: impl Fn(&Run) -> Vec<Setting>,
    output: &mut Output,
) {
    let mut cpus = distinct(done.iter().map(|(run, _)| run.setup.cpus));
    cpus.sort_unstable();
    if cpus.len() < 2 || !output.has_pictures() {
        return;
    }
    let apart = |run: &Run| -> Vec<Setting> {
        settings(run).into_iter().filter(|(name, ..)| name != "CPUs").collect()
    };
    let shape = Shape::of(&done.iter().map(|(run, _)| apart(run)).collect::<Vec<_>>());
    let name = |run: &Run| shape.words(&apart(run));
    let names = distinct(done.iter().map(|(run, _)| name(run)));
    let heads: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let time = |title| Axis::new(title, Scale::Logarithmic, units::nanoseconds);
    let share = |ppm: f64| format!("{} %", units::figures(ppm / 1e4));
    let figures: [Figure; 4] = [
        (time("latency of callbacks"), |report| report.callback_latency_ns.mean),
        (time("length of grace periods"), |report| report.grace_period_ns.mean),
        (time("time of an iteration"), |report| report.iteration_ns.mean),
        (Axis::new("CPUs busy", Scale::Bars, share), |report| report.time.busy_ppm()),
    ];
    for (axis, of) in figures {
        let line = |own: &String| {
            let value = |cpus: &usize| {
                let is_it =
                    |(run, _): &&(&Run, &Report)| run.setup.cpus == *cpus && name(run) == *own;
                done.iter().find(is_it).map(|(_, report)| of(report) as f64)
            };
            Line { name: own.clone(), values: cpus.iter().map(value).collect(), ours: false }
        };
        let lines: Vec<Line> = names.iter().map(line).collect();
        if lines.iter().flat_map(|line| &line.values).flatten().any(|value| *value > 0.0) {
            output.picture(|| plot::lines("CPUs", &axis, &heads, &lines));
        }
    }
}
