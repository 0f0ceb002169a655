//! The library in virtual time: its grace periods, its callbacks and its worker, over virtual
//! threads on virtual CPUs.
//!
//! # What is modelled
//! - *Threads* on *CPUs*, under the fair scheduler of SRCU's model (one run queue per CPU), with
//!   the times of Linux 5.18 or of current Linux
//!   ([`SchedulerTimes`](crate::srcu::SchedulerTimes)). A thread that wakes goes to the CPU it last
//!   ran on, or to an idle one if that is busy. A CPU without work takes a waiting thread from the
//!   CPU where most threads wait. A thread computes, sleeps, reads and updates, as its [`Role`]
//!   says.
//! - *Readers* ([`Role::Reads`], [`Role::Qsbr`], ...): sections and the gaps between them are
//!   exponentially distributed in the thread's own running time; so are the times between quiescent
//!   states of a QSBR reader. They are *drawn lazily*: no section is an event. What a reader's word
//!   shows is drawn only when it matters: at a scan, at a preemption, at the end of the run. The
//!   distribution has no memory, so the process is the same. A section that blocks
//!   ([`Role::Blocks`]) is simulated step by step.
//! - *Updaters* that wait ([`Role::Waits`]), retire objects ([`Role::Retires`]) or queue closures
//!   ([`Role::Calls`]): requests, the driver and the threads that sleep behind it; streams of
//!   callbacks with their segments; local stocks, the limit, and what a thread does at the limit;
//!   the worker, its tick, its turns and its budget.
//! - *liburcu* for comparison ([`Algorithm::Liburcu`]): two phases, two fences, and a `call_rcu`
//!   thread that naps 10 ms between two batches. It is written from the published algorithm.
//!
//! # What `grace` decides
//! Everything that the library decides, by the same functions: [`grace::Machine`] with the policy
//! of the engine (what comes next, when to scan, when to sleep); [`grace::driver`] (which fence,
//! what a driver does that may not wait, the tick); [`grace::handover`] (when a waiter takes the
//! place of a driver that makes no progress); [`grace::Segments`] (which callbacks are ready);
//! [`grace::batch`] (when callbacks are closed, how many run in one go); [`grace::limit`] (what is
//! admitted, and what happens otherwise); [`grace::worker`] and [`grace::policy::Budget`] (when the
//! worker's turns are, what it does, how long it rests); [`grace::word`] (which reader is a
//! holdout). This folder has what a driver *does*, never what it decides: a test checks that these
//! files contain none of the library's numbers.
//!
//! # Costs
//! [`Costs`]: the memory, locks, interrupts and switches of [`crate::cost::Costs`], and costs that
//! only user space has. Each step of the library costs the sum of its parts:
//!
//! - A request: the machine's lock, as taken from another CPU. A step of the machine: entering and
//!   leaving it.
//! - The beginning of a grace period: the registry's lock.
//! - `membarrier`: a system call; an interrupt sent to each *other CPU that runs the process*, and
//!   the time until the last one has replied. Each of those CPUs loses the time of an interrupt.
//! - An announcement: a store to a line that all readers have.
//! - A scan: for each reader two instructions and its line, which comes from another cache if the
//!   reader has run since the last scan, and from the driver's own cache if not.
//! - A scan of the holdouts: the same for each holdout, two locks and a `pause`.
//! - A sleep: a store to each holdout's line, another `membarrier`, a context switch.
//! - A wake-up: the waker's system call; on an idle CPU also the time until that runs.
//! - A nap, or a tick of the worker: the requested time, and the kernel's timer slack (50 us).
//! - A callback: as in [`crate::cost::Costs`], with a transfer if the worker runs it.
//!
//! # Not modelled
//! - The machine's lock is held at the beginning of a grace period, while its number is announced,
//!   and at its end. Here a driver can be replaced at these moments; in the library all wait for
//!   it.
//! - The relay of the engine `token`: its QSBR readers are scanned one by one.
//! - Contention for the machine's lock; and for the registry's, except by threads that register.
//! - Frequencies, caches that fill up, NUMA, the memory allocator. All CPUs are equally fast.
//! - Updates inside sections (which go over the limit, to be settled later), tasks, sleepable
//!   domains, stall reports.
//! - A spinning driver's checks are taken up to 64 at a time while no holdout can leave: a request
//!   that makes the machine less patient meanwhile is noticed only after these.
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

use std::cell::RefCell;
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
    let world = RefCell::new(world::World::new(options));
    Ok(match world::run(&world, progress) {
        ControlFlow::Continue(()) => Some(world.borrow().report()),
        ControlFlow::Break(()) => None,
    })
}
