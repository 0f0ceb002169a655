//! SRCU on a small virtual machine: a caller that waits for one expedited grace period after the
//! other, the worker that drives them, and the scheduler that runs both on one CPU.
//!
//! Here the protocol matters less than which task runs when. The caller enqueues its callback
//! inside a read-side section of the same domain (so that sequence numbers cannot wrap meanwhile):
//! it is the *self-reader*. There it wakes the worker, which on a preemptible kernel may take the
//! CPU at once; then the worker waits for the very task that it keeps from running. The fair
//! scheduler decides by virtual runtime whether that happens, and the delay function and the timer
//! wheel decide how long it takes. The load balancer limits that: at a tick, an idle CPU pulls the
//! preempted caller over, which then ends its section. So the machine has ticks, a wheel that
//! rounds up, a fair scheduler with its latency and granularities, and idle CPUs. Grace periods are
//! driven by [`grace::srcu::SrcuMachine`], the code that the explorer explores.
//!
//! Times are integers, in nanoseconds. The same options give the same bytes.
//!
//! Reading order: `options`, `scheduler` (one CPU), `world` (the tasks) and its `balancer`,
//! `report`.

mod options;
mod report;
pub(crate) mod scheduler;
mod world;

/// Any of the delay functions.
pub use grace::srcu::AnyDelay as DelayFunction;
pub use options::{Blocked, Options, Placement, Readers, SchedulerTimes, VARIANTS, variant};
pub use report::Report;

use std::ops::ControlFlow;

use crate::setup::Impossible;

/// Runs a simulation.
///
/// Deterministic: the same options give the same report on any machine. Cost: some 20 ms for a
/// second in which the worker does nothing but spin, or for 10,000 calls. The memory of each call's
/// latency.
///
/// # Errors
/// [`Impossible`] if the options are impossible; it says which and why.
pub fn run(options: &Options) -> Result<Report, Impossible> {
    let report = run_with_progress(options, &mut |_| ControlFlow::Continue(()))?;
    Ok(report.unwrap_or_else(|| unreachable!("nothing breaks it off")))
}

/// The same; `progress` gets the number of calls that have returned at each tick, and can break the
/// run off, after which there is no report.
///
/// # Errors
/// As [`run`].
pub fn run_with_progress(
    options: &Options,
    progress: &mut dyn FnMut(u32) -> ControlFlow<()>,
) -> Result<Option<Report>, Impossible> {
    options.check()?;
    Ok(world::World::new(options).run(progress))
}
