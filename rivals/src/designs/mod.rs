//! The designs, one file each, and how they are found by name.
//!
//! Each file says what the design is, why a read costs what it costs there, and when not to use
//! it; `rcu advise` prints these sentences as the reasons for its ranking.

use std::fmt;

use crate::plan::{Plan, Workload};
use crate::run::Prepared;

mod arc_swap;
mod crossbeam_epoch;
mod dashmap;
mod locked;
mod papaya;
mod parking_lot_mutex;
mod parking_lot_rwlock;
mod quiescence;
mod quiescence_qsbr;
mod seize;
mod sharded_rwlock;
mod std_mutex;
mod std_rwlock;
#[cfg(test)]
mod wrong;

#[cfg(test)]
mod tests;

/// A synchronisation design, as the user of a ranking sees it.
#[derive(Debug)]
pub struct Design {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// What it has in common with others: "lock", "sharded lock", "reference count", "epoch",
    /// "rcu".
    pub family: &'static str,
    /// What it is, in one line.
    pub idea: &'static str,
    /// Why a read costs what it costs, in one line.
    pub reader_cost: &'static str,
    /// When not to use it.
    pub limits: &'static str,
    /// Whether it is this project's own.
    pub ours: bool,
    make: fn(&Plan) -> Box<dyn Prepared>,
}

/// In the order of the families: locks, reference counts, deferred reclamation, ours.
static TABLES: [Design; 12] = [
    std_mutex::TABLE,
    std_rwlock::TABLE,
    parking_lot_mutex::TABLE,
    parking_lot_rwlock::TABLE,
    sharded_rwlock::TABLE,
    dashmap::TABLE,
    arc_swap::TABLE,
    crossbeam_epoch::TABLE,
    seize::TABLE,
    papaya::TABLE,
    quiescence::TABLE,
    quiescence_qsbr::TABLE,
];

static CONFIGS: [Design; 10] = [
    std_mutex::CONFIG,
    std_rwlock::CONFIG,
    parking_lot_mutex::CONFIG,
    parking_lot_rwlock::CONFIG,
    arc_swap::CONFIG,
    arc_swap::CACHED_CONFIG,
    crossbeam_epoch::CONFIG,
    seize::CONFIG,
    quiescence::CONFIG,
    quiescence_qsbr::CONFIG,
];

/// The designs that solve a workload.
pub fn designs(workload: Workload) -> &'static [Design] {
    match workload {
        Workload::Table => &TABLES,
        Workload::Config => &CONFIGS,
    }
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
