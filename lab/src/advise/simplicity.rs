//! What is simplest: one table, from what asks least of its users to what asks most.
//!
//! Among designs of one set the first in this table is recommended, and of one step the first in
//! the list of designs: equals are always in the same order.

use bench::advise::Design;
use serde::Serialize;

/// A step of the table.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Step {
    /// A family of designs, or the name of one of them.
    pub(super) what: &'static str,
    /// Why it is no simpler than the step before.
    pub(super) because: &'static str,
    /// Whether readers may still use a value after it has been replaced.
    pub(super) defers: bool,
}

/// The table.
pub(super) const TABLE: [Step; 8] = [
    Step {
        what: "lock",
        because: "one rule, known to all; readers see the newest value",
        defers: false,
    },
    Step {
        what: "atomic word",
        because: "nothing to release, but memory orderings, and one word is all it holds",
        defers: false,
    },
    Step {
        what: "sharded lock",
        because: "a lock for each part: to see the whole, all have to be taken in one order",
        defers: false,
    },
    Step {
        what: "word for each CPU or thread",
        because: "a sum takes a pass over all words, and may never have been the count",
        defers: false,
    },
    Step {
        what: "copy for each reader",
        because: "a reader has a copy, which costs more the larger the value is, and may be old",
        defers: false,
    },
    Step {
        what: "reference count",
        because: "a reader may hold a value that has been replaced, for as long as it likes",
        defers: true,
    },
    Step {
        what: OTHERS,
        because: "old values also wait to be freed, and a reader that stays in its section holds \
                  them all up",
        defers: true,
    },
    Step {
        what: "quiescence-qsbr",
        because: "each thread must announce quiescent states, or nothing is ever freed",
        defers: true,
    },
];

/// Families that the table does not name: epochs, hazard pointers, lock-free maps, RCU.
const OTHERS: &str = "any other";

/// How much a design asks of its users: its place in the table.
pub(super) fn demands(design: &Design) -> usize {
    let place = |what: &str| TABLE.iter().position(|step| step.what == what);
    place(design.name)
        .or_else(|| place(design.family))
        .or_else(|| place(OTHERS))
        .unwrap_or(TABLE.len())
}

/// Whether readers of a design may still use a value after it has been replaced.
pub(super) fn defers(design: &Design) -> bool {
    TABLE.get(demands(design)).is_none_or(|step| step.defers)
}

/// The table for the help.
pub(super) fn help() -> String {
    let mut text = String::from(
        "Of the designs that are equal to the best the simplest is taken, in this order, and \
         within a line in that of the list of designs:\n",
    );
    for step in &TABLE {
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
