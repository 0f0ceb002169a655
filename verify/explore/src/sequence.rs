//! Sequence locks and latches: what is read is one value; and the lock among their writers.
//!
//! The programs are `worlds/programs/sequence.txt` and `writers.txt`.

use crate::{harness, machine};

pub use crate::machine::{Mutant, Scenario};

harness::world! {
    /// Sequence locks, latches and the lock among their writers, as a world.
    Sequence of "sequence";
    explore: |scenario, model, mutant, limit| {
        machine::explore("", scenario, model, mutant, limit)
    };
}
