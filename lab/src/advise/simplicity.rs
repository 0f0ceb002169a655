//! What is simplest: one table, `simplicity.toml`, from what asks least of its users to what asks
//! most.
//!
//! Among designs of one set the first in this table is recommended, and of one step the first in
//! the list of designs: equals are always in the same order.

use std::sync::LazyLock;

use bench::advise::Design;
use bench::data;
use serde::{Deserialize, Serialize};

/// A step of the table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Step {
    what: String,
    because: String,
    defers: bool,
}

/// The families that the table does not name.
const OTHERS: &str = "any other";

/// The table.
pub(super) static TABLE: LazyLock<Vec<Step>> =
    LazyLock::new(|| data::rows(include_str!("simplicity.toml")));

/// How much a design asks of its users: its place in the table.
pub(super) fn demands(design: &Design) -> usize {
    let place = |what: &str| TABLE.iter().position(|step| step.what == what);
    place(design.name)
        .or_else(|| place(design.about.family))
        .or_else(|| place(OTHERS))
        .unwrap_or(TABLE.len())
}

/// Whether readers of a design may still use a value after it has been replaced.
pub(super) fn defers(design: &Design) -> bool {
    TABLE.get(demands(design)).is_none_or(|step| step.defers)
}

/// The table for the help.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "Of the designs that are equal to the best, the simplest is recommended: the first in this \
         list, and within a line the first in the list of designs:\n",
    );
    for step in &*TABLE {
        text.push_str(&format!("  {}: {}\n", step.what, step.because));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_has_a_place_and_every_lock_is_simpler_than_what_defers() {
        let designs = bench::advise::designs(bench::advise::Workload::Table);
        let find = |name: &str| designs.iter().find(|design| design.name == name).expect(name);
        assert!(designs.iter().all(|design| demands(design) < TABLE.len()));
        assert!(demands(find("std-mutex")) < demands(find("sharded-rwlock")));
        assert!(demands(find("sharded-rwlock")) < demands(find("quiescence")));
        assert!(demands(find("quiescence")) < demands(find("quiescence-qsbr")));
        assert!(defers(find("quiescence")) && !defers(find("sharded-rwlock")));
    }
}
