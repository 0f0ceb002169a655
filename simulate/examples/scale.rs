//! 4,096 CPUs for ten virtual seconds, with ticks and without; how long that takes.
//!
//! `cargo run --release -p quiescence-simulate --example scale [WORKLOAD [ENGINE...]]`

use std::time::Instant;

use simulate::setup::SECOND;
use simulate::{EngineKind, Setup, Workload, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let workload = Workload::named(arguments.next().as_deref().unwrap_or("dbench"))?;
    let mut engines: Vec<String> = arguments.collect();
    if engines.is_empty() {
        engines = ["tick", "token-relay", "tree-today", "on-demand"].map(str::to_owned).to_vec();
    }
    for engine in engines {
        let engine = EngineKind::named(&engine)?;
        for tickless in [false, true] {
            let setup = Setup { cpus: 4_096, tickless, duration: 10 * SECOND, ..Setup::default() };
            let began = Instant::now();
            let report = run(&setup, &engine, &workload)?;
            println!(
                "{:12} {:12} tickless {:5}: {:6.1} s for {} events and {} ticks; {} grace periods",
                workload.name(),
                engine.name(),
                tickless,
                began.elapsed().as_secs_f64(),
                report.machinery.events,
                report.machinery.ticks,
                report.grace_period_ns.count,
            );
        }
    }
    Ok(())
}
