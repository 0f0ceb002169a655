//! The library in virtual time: its grace periods, its callbacks and its worker, over virtual
//! threads on virtual CPUs.
//!
//! # What is modelled
//! - *Threads* on *CPUs*, under the fair scheduler that SRCU's model has (one run queue a CPU),
//!   with the times of Linux 5.18 or those of today
//!   ([`SchedulerTimes`](crate::srcu::SchedulerTimes)). A thread that wakes goes to the CPU it ran
//!   on, or to an idle one if that is busy; a CPU without work takes a waiting thread from the CPU
//!   where most wait. A thread computes, sleeps, reads, and updates, as its [`Role`] says.
//! - *Readers* ([`Role::Reads`], [`Role::Qsbr`], ...): sections and the time between them are
//!   exponentially distributed in the thread's own running time, and so are the times between
//!   quiescent states of a QSBR reader. They are *drawn lazily*: no section is an event. What a
//!   reader's word shows is drawn when something looks at it: a scan, a preemption, the end of the
//!   run. The distribution has no memory, so that is the same process. A section that blocks
//!   ([`Role::Blocks`]) is simulated step by step.
//! - *Updaters* that wait ([`Role::Waits`]), retire objects ([`Role::Retires`]) or queue closures
//!   ([`Role::Calls`]): requests, the one driver at a time and those who sleep behind it; streams
//!   of callbacks with their segments; local stocks, the limit, and what a thread does at it; the
//!   worker, its tick, its turns and its budget.
//! - *liburcu* beside them ([`Algorithm::Liburcu`]): two phases, two fences, and a `call_rcu`
//!   thread that naps 10 ms between two batches. It is its published algorithm, written anew.
//!
//! # What `grace` decides
//! All that the library decides, by the same functions: [`grace::Machine`] with the policy of the
//! engine (what comes next, when to scan, when to sleep); [`grace::driver`] (which fence, what
//! becomes of a wait where the driver may not wait, the tick); [`grace::handover`] (when a waiter
//! takes the place of a driver that makes no progress); [`grace::Segments`] (which callbacks
//! are ready); [`grace::batch`] (when callbacks are closed, how many run in one go);
//! [`grace::limit`] (what is admitted, and what happens where nothing is); [`grace::worker`] and
//! [`grace::policy::Budget`] (when the worker comes by, what it does, how long it rests);
//! [`grace::word`] (which reader is a holdout). Here is what a driver *does*, never what it
//! decides: a test reads these files and finds no number of the library's in them.
//!
//! # What things cost
//! [`Costs`]: the memory, locks, interrupts and switches of [`crate::cost::Costs`], and what only
//! user space has. Each step of the library costs what it is made of:
//!
//! - A request: the machine's lock, as taken from another CPU. A step of the machine: entering and
//!   leaving it.
//! - The beginning of a grace period: the registry's lock.
//! - `membarrier`: a system call; an interrupt sent to each *other CPU that runs the process*, and
//!   the time until the last has come back. Each of those CPUs loses an interrupt's time.
//! - An announcement: a store to a line that all readers have.
//! - A scan: for each reader two instructions and its line, which comes from another cache if the
//!   reader has run since it was looked at last, and from the own one if not.
//! - A scan of the holdouts: the same for each of them, two locks and a `pause`.
//! - A sleep: a store to each holdout's line, another `membarrier`, a context switch.
//! - A wake-up: the waker's system call; on an idle CPU also the time until that runs.
//! - A nap, a tick of the worker: as long as asked for, and the kernel's timer slack (50 us).
//! - A callback: as in [`crate::cost::Costs`], with a transfer where the worker runs it.
//!
//! # What is left out
//! - That the machine's lock is held at the beginning of a grace period, where its number is
//!   announced, and at its end: a driver can be replaced there, in the library all wait for it.
//! - The relay of the engine `token`: QSBR readers are scanned one by one under it.
//! - Contention for the machine's lock, and for the registry's but by threads that register.
//! - Frequencies, caches that fill up, NUMA, the memory allocator. A CPU is as fast as any other.
//! - Updates inside sections (which go over the limit, to be settled later), tasks, sleepable
//!   domains, stall reports.
//! - The looks of a driver that spins are taken up to 64 at a time while no holdout can leave: a
//!   request that makes the machine less patient in between is noticed at the end of those.
//!
//! # Deterministic
//! Integers only. The same options give the same report on any machine.
//!
//! Reading order: [`options`], `costs`, `readers`, `cpus`, `world` (events and threads), `roles`
//! (what threads do), `driving` (grace periods) and `handover`, `callbacks`, `limit`, `worker`,
//! `liburcu`, [`report`].

mod callbacks;
mod costs;
mod cpus;
mod driving;
mod handover;
mod liburcu;
mod limit;
pub mod options;
mod readers;
pub mod report;
mod roles;
pub mod suite;
#[cfg(test)]
mod tests;
mod worker;
pub mod workloads;
mod world;

use std::ops::ControlFlow;

pub use costs::Costs;
pub use options::{Algorithm, Group, Options, Role};
pub use report::Report;

use crate::events::Time;
use crate::setup::Impossible;

/// Runs a simulation. The same options give the same report.
///
/// Cost: about a microsecond for each step of a grace period and each batch of updates, and some
/// ten nanoseconds for each reader that is scanned.
///
/// # Errors
/// If the options cannot be simulated, with the reason ([`Options::check`]).
pub fn run(options: &Options) -> Result<Report, Impossible> {
    let report = run_with_progress(options, &mut |_| ControlFlow::Continue(()))?;
    Ok(report.unwrap_or_else(|| unreachable!("nothing breaks it off")))
}

/// The same; `progress` gets the virtual time now and then, and can break the run off, after which
/// there is no report.
///
/// # Errors
/// As [`run`].
pub fn run_with_progress(
    options: &Options,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Result<Option<Report>, Impossible> {
    options.check()?;
    let mut world = world::World::new(options);
    Ok(match world.run(progress) {
        ControlFlow::Continue(()) => Some(world.report()),
        ControlFlow::Break(()) => None,
    })
}
