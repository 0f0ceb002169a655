//! The numbers that `--set` takes, from `numbers.toml`: those of the machine that have no option of
//! their own, and those of SRCU's machine. Numbers of engines and workloads are the simulator's.

use std::sync::LazyLock;

use serde::Deserialize;

/// A number that can be set.
#[derive(Debug, Deserialize)]
pub(super) struct Number {
    pub(super) name: String,
    pub(super) what: String,
    /// The largest value, where the simulator does not say what is too much.
    pub(super) max: Option<u64>,
}

/// All of them.
#[derive(Debug, Deserialize)]
pub(super) struct Numbers {
    pub(super) machine: Vec<Number>,
    pub(super) srcu: Vec<Number>,
}

/// The table.
pub(super) static NUMBERS: LazyLock<Numbers> =
    LazyLock::new(|| toml::from_str(include_str!("numbers.toml")).expect("tests read it, too"));
