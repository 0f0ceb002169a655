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

/// The threads of a theme.
pub(crate) fn cast(fixture: &mut Fixture, theme: Theme, cpus: usize) {
    match theme {
        Theme::Sleepable => sleepable::cast(fixture, cpus),
        Theme::RseqRead => words::cast_snapshots(fixture, cpus),
        Theme::Sequences => words::cast_sequences(fixture, cpus),
        Theme::Hazards => {
            cells::cast_hazards(fixture, cpus);
            hazards::cast(fixture, cpus);
        }
        Theme::Exact => cells::cast_exact(fixture, cpus),
        Theme::Epoch => epoch::cast(fixture, cpus),
        Theme::Tools => tools::cast(fixture, cpus),
        Theme::Lists => lists::cast(fixture, cpus),
        Theme::Ids => ids::cast(fixture, cpus),
        _ => {}
    }
}
