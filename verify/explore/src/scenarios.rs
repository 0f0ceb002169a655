//! The scenarios of grace periods, with the outcomes that litmus tests forbid.

use crate::harness::World;
use crate::litmus;
use crate::scenario::Scenario;
use crate::world::GracePeriods;

/// All of them, the bigger ones too.
pub fn all() -> Vec<Scenario> {
    let table = GracePeriods::table();
    let litmus = litmus::forbidden().into_iter().chain(litmus::forbidden_exhaustive());
    table.scenario.iter().chain(&table.big).cloned().chain(litmus).collect()
}

/// Finds a scenario by its name.
pub fn named(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}
