//! The published figures beside which ours are printed, from `data/figures.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const TEXT: &str = include_str!("../../data/figures.toml");

/// What others measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    /// The table of 2005.
    pub(crate) lca2005: Table,
}

/// One published table of costs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// The machine it was measured on.
    pub(crate) machine: String,
    /// When.
    pub(crate) year: u32,
    /// Where it is written.
    pub(crate) source: String,
    /// The costs by name, in nanoseconds.
    #[serde(skip_serializing)]
    pub(crate) costs_ns: BTreeMap<String, f64>,
}

/// The figures that ship with the command.
pub(crate) fn figures() -> Figures {
    toml::from_str(TEXT).expect("the shipped figures are well formed: a test reads them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_figures_are_well_formed() {
        let table = figures().lca2005;
        assert_eq!(table.year, 2005);
        assert_eq!(table.costs_ns["cpu_local_lock"], 163.7);
    }

    #[test]
    fn every_published_figure_has_a_row_of_ours_beside_it() {
        for id in figures().lca2005.costs_ns.keys() {
            assert!(crate::costs::ids().any(|ours| ours == id), "{id} has no row");
        }
    }
}
