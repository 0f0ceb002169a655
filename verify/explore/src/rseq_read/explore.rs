//! Restartable sequences as a world.

use super::assemble;
use super::fault::Mutant;
use super::scenario::Scenario;
use super::world::Plan;
use crate::explore::Model;
use crate::harness;
use crate::program;

harness::world! {
    /// Restartable sequences, as a world.
    Restart of "rseq_read";
    explore: |scenario, model, mutant, limit| {
        // Views count what each CPU has touched, so there are as many states as disturbances.
        let disturbances_max = (model == Model::Weak).then_some(scenario.aborts_max);
        let plan = Plan { disturbances_max, ..assemble::plan(scenario, mutant) };
        program::explore(plan, model, mutant, limit)
    };

    fn mutant_name(mutant: Mutant) -> String {
        mutant.name()
    }
}
