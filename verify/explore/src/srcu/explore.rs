//! SRCU as a world.

use super::fault::Mutant;
use super::scenario::Scenario;
use crate::harness;
use crate::program;

harness::world! {
    /// SRCU, as a world.
    SrcuProtocol of "srcu";
    explore: |scenario, model, mutant, limit| {
        program::explore(scenario.clone(), model, mutant, limit)
    };

    fn mutant_name(mutant: Mutant) -> String {
        mutant.name()
    }
}
