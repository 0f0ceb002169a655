//! What a read costs in the tasks of a tokio runtime: with `quiescence::tokio`, with an ordinary
//! section, with `tokio_rcu` and with `arc-swap`.
//!
//! Each has a runtime of its own, with the hooks that it asks for. A round is one measurement of
//! each, one after the other, so that what disturbs the machine disturbs all. A task reads so many
//! times in a poll, and yields: the time is that of the whole, polls and hooks too, for one read.
//!
//!     cd facades && cargo bench -p axum-reload

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use quiescence::Rcu;
use quiescence::tokio::BuilderExt;
use tokio::runtime::{Builder, Runtime};
use tokio_rcu::TokioRuntimeBuilderExt;
use tokio_rcu::primitives::rcu_box::RcuBox;

const ROUNDS: usize = 15;
const WORKERS: usize = 2;

/// Reads of each task in a round.
const READS: u32 = 400_000;

/// A way to read, and the runtime that it needs.
struct Rival {
    name: &'static str,
    runtime: Runtime,
    /// Runs a task that reads so many times in each of so many polls.
    task: fn(&Runtime, Polls) -> tokio::task::JoinHandle<u64>,
    /// Nanoseconds for a read, of each round.
    rounds: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Polls {
    count: u32,
    reads: u32,
}

/// What is read.
fn value() -> u64 {
    black_box(7)
}

/// Spawns a task that calls `read` so often.
fn reading<R>(runtime: &Runtime, polls: Polls, read: R) -> tokio::task::JoinHandle<u64>
where
    R: Fn() -> u64 + Send + 'static,
{
    runtime.spawn(async move {
        let mut sum = 0_u64;
        for _ in 0..polls.count {
            for _ in 0..polls.reads {
                sum = sum.wrapping_add(read());
            }
            tokio::task::yield_now().await;
        }
        sum
    })
}

fn of_a_worker(runtime: &Runtime, polls: Polls) -> tokio::task::JoinHandle<u64> {
    let cell = Rcu::new(value());
    reading(runtime, polls, move || quiescence::tokio::read(|section| *cell.load(section)))
}

fn in_a_section(runtime: &Runtime, polls: Polls) -> tokio::task::JoinHandle<u64> {
    let cell = Rcu::new(value());
    reading(runtime, polls, move || *cell.load(&quiescence::read()))
}

fn of_tokio_rcu(runtime: &Runtime, polls: Polls) -> tokio::task::JoinHandle<u64> {
    let cell = RcuBox::new(Box::new(value()));
    reading(runtime, polls, move || tokio_rcu::rcu_read_lock(|guard| *cell.read(guard)))
}

fn of_arc_swap(runtime: &Runtime, polls: Polls) -> tokio::task::JoinHandle<u64> {
    let cell = ArcSwap::new(Arc::new(value()));
    reading(runtime, polls, move || **cell.load())
}

fn builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS);
    builder
}

fn rivals() -> std::io::Result<Vec<Rival>> {
    let rival =
        |name, runtime, task| Rival { name, runtime, task, rounds: Vec::with_capacity(ROUNDS) };
    let mut of_theirs = builder();
    // SAFETY: no hook of ours is set, and what reads are tasks; `block_on` waits for them, and does
    // not read.
    let of_theirs = unsafe { TokioRuntimeBuilderExt::enable_rcu(&mut of_theirs) };
    Ok(vec![
        rival(
            "quiescence::tokio::read",
            BuilderExt::enable_rcu(&mut builder()).build()?,
            of_a_worker,
        ),
        rival("quiescence::read", builder().build()?, in_a_section),
        rival("tokio_rcu", of_theirs.build()?, of_tokio_rcu),
        rival("arc-swap", builder().build()?, of_arc_swap),
    ])
}

impl Rival {
    /// Nanoseconds for a read.
    fn measure(&self, polls: Polls) -> f64 {
        let began = Instant::now();
        let tasks: Vec<_> = (0..WORKERS).map(|_| (self.task)(&self.runtime, polls)).collect();
        for task in tasks {
            let sum = self.runtime.block_on(task).expect("no task panics");
            assert_eq!(sum, u64::from(polls.count * polls.reads) * value());
        }
        let reads = f64::from(polls.count * polls.reads) * WORKERS as f64;
        began.elapsed().as_nanos() as f64 / reads * WORKERS as f64
    }
}

/// The median and the quartiles.
fn quartiles(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| sorted[(sorted.len() - 1) * quarter / 4])
}

fn main() -> std::io::Result<()> {
    let mut rivals = rivals()?;
    for reads in [1, 64] {
        let polls = Polls { count: READS / reads, reads };
        rivals.iter_mut().for_each(|rival| rival.rounds.clear());
        for round in 0..=ROUNDS {
            for rival in &mut rivals {
                let time = rival.measure(polls);
                // The first round warms.
                if round > 0 {
                    rival.rounds.push(time);
                }
            }
        }
        println!("{WORKERS} workers, {reads} reads a poll, ns a read of a task ({ROUNDS} rounds)");
        let base = rivals[0].rounds.clone();
        for rival in &rivals {
            let [low, median, high] = quartiles(&rival.rounds);
            let ratios: Vec<f64> = rival.rounds.iter().zip(&base).map(|(a, b)| a / b).collect();
            let [_, ratio, _] = quartiles(&ratios);
            println!(
                "  {:<24} {median:7.2} ({low:.2} to {high:.2})  {ratio:5.2} times",
                rival.name
            );
        }
    }
    Ok(())
}
