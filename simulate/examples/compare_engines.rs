//! Every engine on every workload, or on those that are named: `cargo run --release -p
//! quiescence-simulate --example compare_engines [CPUS [MILLISECONDS [WORKLOAD [ENGINE]]]]`.

use std::time::Instant;

use simulate::setup::MILLISECOND;
use simulate::{EngineKind, Setup, Workload, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().map_or(Ok(usual), |argument| argument.parse::<u64>());
    let (cpus, milliseconds) = (number(8)? as usize, number(1_000)?);
    let (only_workload, only_engine) = (arguments.next(), arguments.next());
    let setup = Setup { cpus, duration: milliseconds * MILLISECOND, ..Setup::default() };
    println!(
        "{:12} {:12} {:>9} {:>9} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>9} {:>8} {:>7}",
        "workload",
        "engine",
        "gp/s",
        "calls",
        "p50 us",
        "p99 us",
        "waiter us",
        "engine%",
        "callb. %",
        "idle %",
        "op/s",
        "events",
        "real s"
    );
    for workload in Workload::all() {
        if only_workload.as_ref().is_some_and(|name| name != workload.name()) {
            continue;
        }
        for engine in EngineKind::all() {
            if only_engine.as_ref().is_some_and(|name| name != engine.name()) {
                continue;
            }
            let began = Instant::now();
            let report = run(&setup, &engine, &workload)?;
            println!(
                "{:12} {:12} {:>9} {:>9} {:>10} {:>10} {:>10} {:>8.3} {:>8.3} {:>8.3} {:>9} {:>8} {:>7.2}",
                workload.name(),
                engine.name(),
                report.per_second_milli(report.grace_period_ns.count) / 1_000,
                report.callbacks.queued,
                report.callback_latency_ns.p50 / 1_000,
                report.callback_latency_ns.p99 / 1_000,
                report.waiter_latency_ns.p50 / 1_000,
                report.time.engine_ppm() as f64 / 10_000.0,
                report.time.callback_ppm() as f64 / 10_000.0,
                report.time.share_ppm(report.time.idle_ns) as f64 / 10_000.0,
                report.per_second_milli(report.operations) / 1_000,
                report.machinery.events,
                began.elapsed().as_secs_f64(),
            );
        }
    }
    Ok(())
}
