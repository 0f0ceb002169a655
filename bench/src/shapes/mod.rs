//! The shapes of shared data that `rcu advise` knows, and what its timed loop sees of them.
//!
//! A workload ([`Workload`]) is solved behind one small trait by every design that can, and all are
//! run by the same loop on the same operations. The loop is compiled once per design, so that no
//! design pays for a call that another one saves.
//!
//! In reading order:
//! - `plan`: what to run.
//! - `value`: the objects that are read and replaced; they notice when they are torn or freed, and
//!   how many of them have been.
//! - `table`: the index that keyed designs share; `buckets`: the index of
//!   those without one, where keys come and go.
//! - `copied`: a value that is copied for each reader.
//! - `counter`, `queue`, `ids`: the traits of the other shapes.
//! - `locked`: what the designs with one lock have in common.
//! - `subject`: what the loop sees of all that; `prepared`: the loop.

mod buckets;
mod copied;
mod counter;
mod ids;
mod locked;
mod plan;
mod prepared;
mod queue;
mod subject;
mod table;
mod value;

pub(crate) use buckets::Buckets;
pub(crate) use copied::{BYTES_MAX as COPIED_BYTES_MAX, Copies, WORDS};
pub(crate) use counter::{Bounded, Counted, Counting, Limiting, counting};
pub(crate) use ids::{CountedUp, Ids, Numbered};
pub use plan::{Operation, Plan, Workload};
pub(crate) use prepared::{Make, Prepared, Ready, Seat};
pub(crate) use queue::{Queued, Queueing, queueing};
pub(crate) use subject::Keyed;
pub(crate) use table::{Hash, Key, PerKey, Whole};
pub(crate) use value::Value;
