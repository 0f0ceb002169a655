//! Measures what a replaceable filter costs an event: none to replace, `reload::Layer`'s, and ours.
//! In turns, in one run: the median of 11 rounds, and the least and the most.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use tracing::{Dispatch, dispatcher};
use tracing_reload::Reload;
use tracing_subscriber::filter::{DynFilterFn, dynamic_filter_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Layer, Registry, reload};

const ROUNDS: usize = 11;
const EVENTS: u32 = 400_000;

/// A filter that is asked for each event: no callsite may remember what it said. It refuses all, so
/// that the question is what costs.
fn filter() -> DynFilterFn<Registry> {
    dynamic_filter_fn(|meta, _| black_box(meta.is_event()) && black_box(false))
}

/// What gets the events that pass: nothing is done with them.
struct Nothing;

impl Layer<Registry> for Nothing {}

fn nanoseconds_an_event(dispatch: &Dispatch, threads: usize) -> f64 {
    let start = Barrier::new(threads);
    let times: Vec<f64> = thread::scope(|scope| {
        let measured = (0..threads).map(|_| {
            scope.spawn(|| {
                dispatcher::with_default(dispatch, || {
                    start.wait();
                    let began = Instant::now();
                    (0..EVENTS).for_each(|number| tracing::info!(number));
                    began.elapsed().as_secs_f64() * 1e9 / f64::from(EVENTS)
                })
            })
        });
        let measured: Vec<_> = measured.collect();
        measured.into_iter().map(|thread| thread.join().expect("it only counts")).collect()
    });
    times.iter().sum::<f64>() / threads as f64
}

fn main() {
    let (locked, _locked) = reload::Layer::new(filter());
    let (ours, _ours) = Reload::new(filter());
    let designs: [(&str, Dispatch); 3] = [
        ("not replaceable", Registry::default().with(Nothing.with_filter(filter())).into()),
        ("reload::Layer", Registry::default().with(Nothing.with_filter(locked)).into()),
        ("ArcCell", Registry::default().with(Nothing.with_filter(ours)).into()),
    ];
    for threads in [1, 2] {
        let mut rounds: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            for ((_, dispatch), times) in designs.iter().zip(&mut rounds) {
                times.push(nanoseconds_an_event(dispatch, threads));
            }
        }
        rounds.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        let plain = rounds[0][ROUNDS / 2];
        for ((name, _), times) in designs.iter().zip(&rounds) {
            let (least, median, most) = (times[0], times[ROUNDS / 2], times[ROUNDS - 1]);
            println!(
                "{threads} thread(s), {name:15} {median:5.1} ns an event \
                 ({least:.1} to {most:.1}), {:.2} of what is not replaceable",
                median / plain
            );
        }
    }
}
