//! What `rcu advise` ranks: the designs that solve a workload, and their race.
//!
//! A design is a rival that solves a [`Workload`], by one of the traits of `shapes`. `designs.toml`
//! says of each why a read costs what it costs there, and when not to use it; `rcu advise` prints
//! these sentences as the reasons for its ranking.
//!
//! - `paste`: a program of ten lines for each design.
//! - `race`: all of them on the same operations.
//! - `tree`: which of them for which need.

mod paste;
mod race;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::data::read_toml;
use crate::rivals::{self, Rival};
use crate::shapes::{COPIED_BYTES_MAX, Make};

pub use crate::shapes::{Operation, Plan, Workload};
pub use race::{Contender, Series, race, race_duration};
pub use tree::{Leaf, Need, Question, Race, Tree, tree};

/// A synchronisation design, as the user of a ranking sees it.
#[derive(Debug)]
pub struct Design {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// What is said of it.
    pub about: &'static About,
    /// Whether it is this project's own.
    pub ours: bool,
    /// How it finds a key, if the workload has keys.
    pub index: Option<KeyIndex>,
    /// Bytes of the largest value that it can hold, if there is one.
    pub value_bytes_max: Option<usize>,
    /// A program of some ten lines that uses it: code to paste.
    pub program: &'static str,
    make: Make,
}

/// What `designs.toml` says of the designs.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct Known {
    /// In the order in which a ranking introduces them.
    families: Vec<&'static str>,
    /// By the names of the rivals.
    designs: BTreeMap<&'static str, About>,
    /// By the kinds of shared state that have one.
    trees: BTreeMap<&'static str, Tree>,
}

/// What `designs.toml` says of one of them.
#[derive(Debug, Deserialize)]
pub struct About {
    /// What it has in common with others: one of `families` there.
    pub family: &'static str,
    /// What it is, in one line.
    pub idea: &'static str,
    /// Why a read costs what it costs, in one line that begins with a capital letter.
    pub reader_cost: &'static str,
    /// When not to use it.
    pub limits: &'static str,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| read_toml(include_str!("../../designs.toml")));

/// How a design finds the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyIndex {
    /// By an index of its own, in which keys could come and go.
    Own,
    /// By an index that is filled before the first round and never changes, so that finding a key
    /// costs no synchronisation. The design protects the values only.
    Fixed,
    /// By buckets with a lock for updaters and a list that they copy: see `buckets`.
    Buckets,
}

/// The designs that solve a workload, in the order of their families: locks, atomic words,
/// reference counts, deferred reclamation, ours.
pub fn designs(workload: Workload) -> &'static [Design] {
    static ALL: LazyLock<Vec<Vec<Design>>> =
        LazyLock::new(|| Workload::ALL.iter().map(|&workload| solving(workload)).collect());
    // The list of all has them in the order of their declaration.
    &ALL[workload as usize]
}

/// The designs that solve `workload` only if keys stay: their names.
pub fn left_out_by_churn() -> Vec<&'static str> {
    let needs_fixed_keys = |rival: &&Rival| {
        rival.design(Workload::Table).is_some() && rival.design(Workload::Churn).is_none()
    };
    rivals::all().filter(needs_fixed_keys).map(|rival| rival.name).collect()
}

fn solving(workload: Workload) -> Vec<Design> {
    let design = |rival: &Rival| {
        let (make, index) = rival.design(workload)?;
        Some(Design {
            name: rival.name,
            about: KNOWN.designs.get(rival.name)?,
            ours: rival.ours,
            index,
            value_bytes_max: rival.is_copied.then_some(COPIED_BYTES_MAX),
            program: paste::program(workload, rival.name, index).unwrap_or_default(),
            make,
        })
    };
    let mut designs: Vec<Design> = rivals::all().filter_map(design).collect();
    // Stable: within a family the order is that of the registry.
    let family = |one: &Design| KNOWN.families.iter().position(|known| *known == one.about.family);
    designs.sort_by_key(family);
    designs
}
