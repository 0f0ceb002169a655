//! Running a simulation.

use std::ops::ControlFlow;

use crate::kernel::Engine;

use crate::driver::Driver;
use crate::engines::EngineKind;
use crate::events::Time;
use crate::memory::Memory;
use crate::parameter::Parameter;
use crate::program::Program;
use crate::report::Report;
use crate::setup::{Impossible, Setup};
use crate::workload::Workload;

/// Runs a workload on a machine with an engine. The same arguments give the same report.
///
/// # Errors
/// If the machine cannot be simulated, with the reason ([`Setup::check`]).
pub fn run(setup: &Setup, engine: &EngineKind, workload: &Workload) -> Result<Report, Impossible> {
    // Nothing breaks it off.
    run_with_progress(setup, engine, workload, &mut |_| ControlFlow::Continue(()))
        .map(|report| report.unwrap_or_else(|| unreachable!("broken off by nobody")))
}

/// The same; `progress` gets the virtual time several times a jiffy, and can break the run off,
/// after which there is no report.
///
/// # Errors
/// As [`run`].
pub fn run_with_progress(
    setup: &Setup,
    engine: &EngineKind,
    workload: &Workload,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Result<Option<Report>, Impossible> {
    setup.check()?;
    let named = (engine.name(), engine.parameters());
    Ok(drive(setup, engine.build(setup), named, workload, progress))
}

/// Runs a workload with any engine, which is called `name` in the report.
///
/// # Errors
/// As [`run`].
pub fn run_engine(
    setup: &Setup,
    engine: Box<dyn Engine>,
    name: &str,
    workload: &Workload,
) -> Result<Report, Impossible> {
    setup.check()?;
    let never = &mut |_| ControlFlow::Continue(());
    let report = drive(setup, engine, (name, &[]), workload, never);
    Ok(report.unwrap_or_else(|| unreachable!("broken off by nobody")))
}

fn drive(
    setup: &Setup,
    engine: Box<dyn Engine>,
    name: (&str, &[Parameter]),
    workload: &Workload,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Option<Report> {
    let programs = (0..setup.cpus).map(|cpu| Program::new(workload, cpu, setup.cpus)).collect();
    let memory = Memory::new(workload.parameters(), setup.cpus);
    let mut driver = Driver::new(setup, engine, programs, memory);
    match driver.run(progress) {
        ControlFlow::Continue(()) => {
            let workload = (workload.name(), workload.parameters());
            Some(Report::of(driver, setup, name, workload))
        }
        ControlFlow::Break(()) => None,
    }
}
