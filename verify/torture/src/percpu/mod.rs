//! What stands on per-CPU words, under torture: sleepable domains, restartable reads, and tools.
//! And hazard pointers, whose guards may end on another CPU and in another thread, too.
//!
//! [`shuffler`](crate::shuffler) moves their threads from CPU to CPU and interrupts them.
//! [`sleepable`] has readers and updaters of domains whose sections move, [`tasks`] such in tasks,
//! [`growing`] small domains that grow meanwhile; [`words`] reads what no updater waits for,
//! [`cells`] and [`hazards`] what guards protect (each a [`canary`](crate::canary)), and [`tools`]
//! counts, refers ([`references`]) and locks.
//! Cells with exact counts, [`epoch`], sequence locks, [`ids`] and [`lists`] have no such words,
//! but the same threads.

mod cells;
mod epoch;
mod growing;
mod hazards;
mod ids;
mod lists;
mod references;
mod sleepable;
mod tasks;
mod tools;
mod words;

use super::canary::{Canary, Live, end};
use super::context::ThreadContext;
use super::deferral::tuning;
use super::delays::spin;
use super::fixture::Fixture;
use super::kinds::{FaultKind, Operation};
use super::pool::lock;
use super::themes::Theme;

/// Threads for each CPU that read, or use a tool.
const THREADS_PER_CPU: usize = 2;

/// The threads of a theme.
pub(crate) fn cast(fixture: &mut Fixture, theme: Theme, cpus: usize) {
    let threads = THREADS_PER_CPU * cpus;
    match theme {
        Theme::Sleepable => sleepable::cast(fixture, cpus),
        Theme::RseqRead => words::cast_snapshots(fixture, threads),
        Theme::Sequences => words::cast_sequences(fixture, threads),
        Theme::Hazards => {
            cells::cast_hazards(fixture, threads);
            hazards::cast(fixture, threads);
        }
        Theme::Exact => cells::cast_exact(fixture, threads),
        Theme::Epoch => epoch::cast(fixture, threads),
        Theme::Tools => tools::cast(fixture, threads),
        Theme::Lists => lists::cast(fixture, threads),
        Theme::Ids => ids::cast(fixture, threads),
        _ => {}
    }
}
