//! The synchronisation designs that `rcu advise` and `rcu bench` compare.
//!
//! Every design solves the same two workloads (`Workload`) behind one small trait each, one
//! file per design under `designs/`, and is run by the same loop on the same operations. The loop
//! is compiled once per design, so that no design pays for a call that another one saves.
//!
//! In reading order:
//! - `plan`: what to run, and what came out.
//! - `value`: the objects that are read and replaced; they notice when they are torn or freed.
//! - `ledger`: how many of them have been replaced, and how many freed.
//! - `workload`: the two traits, and the index that all keyed designs share.
//! - `designs`: the designs and their descriptions.
//! - `run`: the timed loop.
//! - `bench`: single operations of our library and of its rivals, liburcu among them.

pub mod bench;
mod designs;
mod ledger;
mod plan;
mod run;
mod value;
mod workload;

pub use designs::{Design, UnknownDesign, build, designs};
pub use plan::{Operation, Outcome, Plan, Workload};
pub use run::Prepared;
