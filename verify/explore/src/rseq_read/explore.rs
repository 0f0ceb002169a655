//! Restartable sequences as a world.

use super::fault::Mutant;
use super::scenario::{Scenario, Subject};
use crate::explore::Model;
use crate::harness::{self, kebab, variant};
use crate::machine::{Given, Plan, Seat, assemble};
use crate::program;

harness::world! {
    /// Restartable sequences, as a world.
    Restart of "rseq_read";
    explore: |scenario, model, mutant, limit| {
        // Views count what each CPU has touched, so there are as many states as disturbances.
        let mut plan = plan(scenario, mutant);
        plan.disturbances_max = (model == Model::Weak).then_some(scenario.aborts_max);
        let broken = mutant.and_then(|mutant| variant(&kebab(&mutant)));
        program::explore(plan, model, broken, limit)
    };

    fn mutant_name(mutant: Mutant) -> String {
        mutant.name()
    }
}

const fn text(of: Subject) -> &'static str {
    match of {
        Subject::Snapshot => include_str!("../../worlds/programs/snapshot.txt"),
        Subject::Guard => include_str!("../../worlds/programs/guard.txt"),
        Subject::Counts | Subject::TwoStepCounts => {
            include_str!("../../worlds/programs/counts.txt")
        }
        Subject::Growing => include_str!("../../worlds/programs/growing.txt"),
        Subject::LocalGlobal => include_str!("../../worlds/programs/local-global.txt"),
        Subject::ExactCounter => include_str!("../../worlds/programs/exact-counter.txt"),
        Subject::FoldingCounter | Subject::FoldingLock => {
            include_str!("../../worlds/programs/folding.txt")
        }
        Subject::BigRef => include_str!("../../worlds/programs/big-ref.txt"),
    }
}

fn plan(of: &Scenario, mutant: Option<Mutant>) -> Plan {
    let there = |cpu| (0..of.readers).filter(|index| index % of.cpus == cpu).count() as u64;
    let is = |name: &str| match name {
        "portable" => Some(of.is_portable),
        "straggles" => Some(of.straggles),
        "strangers" => Some(of.strangers != 0),
        "two-cpus" => Some(of.cpus == 2),
        _ => {
            let is_mutant = variant(name).map(|this| mutant == Some(this));
            is_mutant.or_else(|| variant(name).map(|this| of.subject == this))
        }
    };
    let threads = |role: &str| {
        let alone = of.cpus + of.writers;
        let (count, rounds, first, moves) = match role {
            "reader" => (of.readers, of.rounds, 0, !of.readers_stay),
            "writer" if of.writer_moves => (of.writers, of.updates, 0, true),
            "writer" => (of.writers, of.updates, of.cpus, false),
            "stranger" => (of.strangers, of.rounds, alone, false),
            _ => (1, 0, alone, false),
        };
        let cpu = |index| if role == "reader" { index % of.cpus } else { first + index };
        (0..count).map(|index| Seat { rounds, cpu: cpu(index), moves, ..Seat::default() }).collect()
    };
    let constants = vec![
        ("aborts-max", of.aborts_max.into()),
        ("strangers", of.strangers.into()),
        ("holders-of-0", there(0)),
        ("holders-of-1", there(1)),
    ];
    let given = Given { is: &is, constants, bodies: Vec::new(), threads: &threads };
    let mut plan = assemble(text(of.subject), &given);
    (plan.shared_cpus, plan.faults) = (usize::from(of.cpus), of.faults);
    plan
}
