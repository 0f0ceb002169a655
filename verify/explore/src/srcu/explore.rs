//! SRCU as a world.

use super::fault::Mutant;
use super::scenario::Scenario;
use crate::harness::{self, variant};
use crate::machine::{Given, Plan, Seat, assemble};
use crate::program;

harness::world! {
    /// SRCU, as a world.
    SrcuProtocol of "srcu";
    explore: |scenario, model, mutant, limit| {
        program::explore(plan(scenario, mutant), model, None, limit)
    };

    fn mutant_name(mutant: Mutant) -> String {
        mutant.name()
    }
}

/// CPUs that run readers; the worker's and the other updater's come after them.
const CPUS: u8 = 2;

fn plan(of: &Scenario, mutant: Option<Mutant>) -> Plan {
    let is = |name: &str| match name {
        "other-updater" => Some(of.other_updater),
        _ => variant(name).map(|this| mutant == Some(this)),
    };
    let threads = |role: &str| {
        let own = |rounds, cpu| vec![Seat { rounds, cpu, ..Seat::default() }];
        match role {
            "reader" => of.readers.iter().map(|task| task.seat()).collect(),
            "worker" => own(of.updates, CPUS),
            _ if of.other_updater => own(0, CPUS + 1),
            _ => Vec::new(),
        }
    };
    let text = include_str!("../../worlds/programs/srcu.txt");
    let given = Given { is: &is, constants: Vec::new(), bodies: Vec::new(), threads: &threads };
    let mut plan = assemble(text, &given);
    plan.shared_cpus = usize::from(CPUS);
    plan.delay = of.delay.function();
    if let Some(Mutant::Omitted(step)) = mutant {
        plan.omitted = step;
    }
    plan
}
