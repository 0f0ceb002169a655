//! SRCU on a small virtual machine: a caller that waits for one expedited grace period after the
//! other, the worker that drives them, and the scheduler that has both on one CPU.
//!
//! What decides here is not the protocol but which task runs when. The caller enqueues its callback
//! inside a read-side section of the same domain (so that sequence numbers cannot wrap under it):
//! the *self-reader*. It wakes the worker there, and on a preemptible kernel the worker may take
//! the CPU at once: then it waits for the very task that it keeps from running. Whether it does is
//! the fair scheduler's choice by virtual runtime, how long it takes is the delay function's and
//! the timer wheel's. And how long it *can* take is the load balancer's: at a tick, an idle CPU
//! pulls the preempted caller over, which ends its section there. So the machine has those: ticks,
//! a wheel that rounds up, a fair scheduler with its latency and granularities, idle CPUs. The
//! grace periods are driven by [`grace::srcu::SrcuMachine`], the code that the explorer explores.
//!
//! Times are integers, in nanoseconds; same options, same bytes.
//!
//! Reading order: `options` (what can be asked), `scheduler` (one CPU), `world` (the tasks) and its
//! `balancer`, `report`.

mod options;
mod report;
pub(crate) mod scheduler;
mod world;

/// Any of the delay functions.
pub use grace::srcu::AnyDelay as DelayFunction;
pub use options::{
    Blocked, Invalid, Options, Placement, Readers, SchedulerTimes, VARIANTS, variant,
};
pub use report::Report;

/// Runs a simulation.
///
/// Deterministic: the same options give the same report on any machine. Cost: some 20 ms for a
/// second in which the worker does nothing but spin, or for 10,000 calls. The memory of each call's
/// latency.
///
/// # Errors
/// [`Invalid`] if the options are impossible; it says which and why.
pub fn run(options: &Options) -> Result<Report, Invalid> {
    options.check()?;
    Ok(world::World::new(options).run())
}
