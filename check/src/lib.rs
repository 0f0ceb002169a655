//! Being written.
#![forbid(unsafe_code)]

mod choice;
mod explore;
mod memory;
mod mutant;
mod scenario;
pub mod scenarios;
mod world;

pub use explore::{Model, Verdict, explore};
pub use mutant::{Fault, Kind, MUTANTS, Models, Mutant};
pub use scenario::{Flavour, Op, Outcome, Scenario, Thread};
