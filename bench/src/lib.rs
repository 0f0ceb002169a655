//! What `rcu advise`, `rcu bench` and `rcu costs` measure: rivals, cases and costs.
//!
//! - [`suites`]: the cases of `rcu bench`, which rounds are run in which order, and what the
//!   project has promised of them.
//! - [`advise`]: the workloads of `rcu advise`, and the designs that solve them.
//! - `rivals`: the designs that are compared, one file each, which says what it can serve, and a
//!   registry with a line for each.
//! - `cases`: what is measured of a rival, and how; all unsafe code that measuring takes stays
//!   there and with the rivals.
//! - `serve` and `shapes`: the traits that rivals serve cases by, and those of `rcu advise`;
//!   `locks`: what those with a lock have in common.
//! - [`slices`]: the one way in which loops are timed, and when a figure counts.
//! - `clock`: the clocks; [`data`]: files that list things; `freed`: what is not freed yet.
//! - [`costs`]: what single operations cost on this machine.
//! - [`paths`]: the library's own hot paths, for those who count instructions.
//! - [`threads`]: threads that use a domain, for `rcu simulate --validate`.
//! - [`sampling`]: stacks of this process, for `rcu diff`.
//! - [`statistics`] and [`units`]: what figures mean, and how they are written.
//!
//! The command parses options and prints. While it measures, it is a [`Host`].

pub mod advise;
mod cases;
mod clock;
#[cfg(test)]
#[path = "../../quiescence/tests/common"]
mod common {
    pub(crate) mod again;
    mod expect;
    mod limited;
    pub(crate) mod threads;
}
pub mod costs;
pub mod data;
mod freed;
mod host;
mod locks;
pub mod paths;
mod rivals;
mod sample;
pub mod sampling;
mod serve;
mod shapes;
pub mod slices;
pub mod statistics;
pub mod suites;
pub mod threads;
pub mod units;

pub use host::{Error, Host};

/// What programs on the rivals change for this library: their code and ours, which is to compile.
#[cfg(doctest)]
#[doc = include_str!("../MIGRATING.md")]
struct Migrating;
