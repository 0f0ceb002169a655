//! Running a simulation.

use std::ops::ControlFlow;

use crate::cost::PICOS;
use crate::cpu::Category;
use crate::driver::Driver;
use crate::engines::EngineKind;
use crate::events::Time;
use crate::memory::Memory;
use crate::parameter::Parameter;
use crate::program::Program;
use crate::report::{Callbacks, CpuTime, Named, Report, VirtualMachine};
use crate::setup::{Impossible, Setup};
use crate::workload::Workload;
use crate::world::World;
use grace::steps::Intact;
use kernel::engine::Engine;

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
    Ok(drive(setup, engine.build_with(setup, Intact), named, workload, progress))
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
    let programs = Program::of_all(workload, setup.cpus);
    let memory = Memory::new(workload, setup);
    let mut driver = Driver::new(setup, engine, programs, memory);
    match driver.run(progress) {
        ControlFlow::Continue(()) => {
            Some(report(driver.world, name, (workload.name(), workload.parameters())))
        }
        ControlFlow::Break(()) => None,
    }
}

fn report(world: World, engine: (&str, &[Parameter]), workload: (&str, &[Parameter])) -> Report {
    let (setup, tally) = (&world.setup, &world.tally);
    let time = |category| world.cpus.iter().map(|cpu| cpu.counted(category)).sum();
    let waiting_milli = tally.waiting_sum * 1_000 / u128::from(tally.samples.max(1));
    Report {
        engine: named(engine),
        workload: named(workload),
        machine: VirtualMachine {
            cpus: setup.cpus,
            hz: setup.hz,
            tickless: setup.tickless,
            preemptible: setup.preemptible,
            seed: setup.seed,
            warm_up_ns: setup.warm_up,
            duration_ns: setup.duration,
        },
        grace_period_ns: tally.grace_period.summary(),
        callback_latency_ns: tally.callback_latency.summary(),
        waiter_latency_ns: tally.waiter_latency.summary(),
        callbacks_per_batch: tally.batches.summary(),
        time: CpuTime {
            user_ns: time(Category::User),
            kernel_ns: time(Category::Kernel),
            idle_ns: time(Category::Idle),
            engine_ns: time(Category::Engine),
            // Rounded on each CPU there, and once here.
            background_ns: (tally.background_picos / PICOS).min(time(Category::Engine)),
            callback_ns: time(Category::Callback),
        },
        callbacks: Callbacks { waiting_mean_milli: waiting_milli as u64, ..tally.callbacks },
        operations: tally.operations,
        iteration_ns: tally.iterations.summary(),
        worker_awake_max_ns: tally.worker_awake_max,
        machinery: tally.machinery,
        lines: world.directory.traffic,
        slab: world.memory.as_ref().map(|memory| memory.seen),
        timeline: world.timeline.shown,
    }
}

fn named((name, parameters): (&str, &[Parameter])) -> Named {
    Named {
        name: name.to_owned(),
        parameters: parameters.iter().map(|each| (each.name.to_owned(), each.value)).collect(),
    }
}
