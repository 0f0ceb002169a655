//! Other published figures: the set-up of experiments, and how much their runs differ.
//!
//! Set-ups are inputs of the models. Differences between runs are not modelled: with the same seed
//! a model always runs the same way, and it has none of what differs on a machine, such as the
//! placement of pages and other programs.

use super::Row;
use super::published::Publication;

/// Settings and spreads, of all publications.
pub(super) fn published() -> Publication {
    Publication::read(include_str!("settings.toml"))
}

/// The rows of them.
pub fn rows() -> Vec<Row> {
    published().rows()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::EngineKind;
    use crate::srcu::{Options, variant};

    fn value(name: &str) -> u64 {
        published().value(name) as u64
    }

    #[test]
    fn the_models_are_set_up_as_is_said() {
        let engine = EngineKind::named("tree-v0").unwrap();
        assert_eq!(engine.get("period"), value("cond_resched_period"));
        let options = Options::reports_of_2022(variant("5.18", 250).unwrap());
        assert_eq!(u64::from(options.calls), value("loop_to") - value("loop_from"));
    }
}
