//! The two workloads of `rcu advise`, and the designs that solve them.
//!
//! Every design solves the same two workloads ([`Workload`]) behind one small trait each, and is
//! run by the same loop on the same operations. The loop is compiled once per design, so that no
//! design pays for a call that another one saves.
//!
//! In reading order:
//! - `plan`: what to run, and what came out.
//! - `value`: the objects that are read and replaced; they notice when they are torn or freed.
//! - `ledger`: how many of them have been replaced, and how many freed.
//! - `workload`: the two traits, and the index that all keyed designs share.
//! - `locked`: what the designs with one lock have in common.
//! - `run`: the timed loop.
//!
//! A design is a rival that says something about itself: why a read costs what it costs there, and
//! when not to use it. `rcu advise` prints these sentences as the reasons for its ranking.

mod ledger;
mod locked;
mod plan;
mod run;
#[cfg(test)]
mod tests;
mod value;
mod workload;
#[cfg(test)]
mod wrong;

use std::fmt;
use std::sync::LazyLock;

pub(crate) use locked::{Lock, Locked};
pub use plan::{Operation, Outcome, Plan, Workload};
pub use run::Prepared;
pub(crate) use run::{Ready, cpu_time};
pub(crate) use value::Value;
pub(crate) use workload::{Config, Hash, Index, PerKey, Placed, Table, Whole, hash};

use crate::rivals::{self, Family, Make, Rival};

/// A synchronisation design, as the user of a ranking sees it.
#[derive(Debug)]
pub struct Design {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// What it has in common with others: "lock", "sharded lock", "reference count", "epoch",
    /// "lock-free map", "rcu".
    pub family: &'static str,
    /// What it is, in one line.
    pub idea: &'static str,
    /// Why a read costs what it costs, in one line.
    pub reader_cost: &'static str,
    /// When not to use it.
    pub limits: &'static str,
    /// Whether it is this project's own.
    pub ours: bool,
    make: Make<Plan, dyn Prepared>,
}

/// The designs that solve a workload, in the order of their families: locks, reference counts,
/// deferred reclamation, ours.
pub fn designs(workload: Workload) -> &'static [Design] {
    static TABLES: LazyLock<Vec<Design>> = LazyLock::new(|| solving(|rival| rival.table));
    static CONFIGS: LazyLock<Vec<Design>> = LazyLock::new(|| solving(|rival| rival.config));
    match workload {
        Workload::Table => &TABLES,
        Workload::Config => &CONFIGS,
    }
}

fn solving(make: fn(&Rival) -> Option<Make<Plan, dyn Prepared>>) -> Vec<Design> {
    let design = |rival: &Rival| {
        let (about, make) = rival.about.zip(make(rival))?;
        let design = Design {
            name: rival.name,
            family: about.family.name(),
            idea: about.idea,
            reader_cost: about.reader_cost,
            limits: about.limits,
            ours: rival.ours,
            make,
        };
        Some((about.family, design))
    };
    let mut designs: Vec<(Family, Design)> = rivals::all().filter_map(design).collect();
    // Stable: within a family the order is that of the registry.
    designs.sort_by_key(|(family, _)| *family);
    designs.into_iter().map(|(_, design)| design).collect()
}

/// Fills a design with the plan's keys and values. Built once, it runs any number of rounds of
/// this plan, or of plans that differ in their operations only.
///
/// # Errors
/// When no design of this name solves the workload.
pub fn build(
    workload: Workload,
    name: &str,
    plan: &Plan,
) -> Result<Box<dyn Prepared>, UnknownDesign> {
    match designs(workload).iter().find(|design| design.name == name) {
        Some(design) => Ok((design.make)(plan)),
        None => Err(UnknownDesign { name: name.to_owned(), workload }),
    }
}

/// There is no design of this name; the message lists those that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDesign {
    name: String,
    workload: Workload,
}

impl fmt::Display for UnknownDesign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no design is called {:?}; there are: ", self.name)?;
        for (i, design) in designs(self.workload).iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}", design.name)?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownDesign {}
