//! Counts, per prepared design, the values that were replaced and those that were freed.
//!
//! What a design has not reclaimed yet is measured the same way for all of them: by what the
//! values themselves report when they are dropped, not by what a library says of itself. Each CPU
//! counts in a word of its own, so that counting does not become the contention that is being
//! measured.

use quiescence::sync::Counter;

/// The counts of one prepared design.
///
/// Made by [`Ledger::leak`] and never freed: values that a design has not freed when it is dropped
/// still report to it.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) replaced: Counter,
    /// All that were ever freed, replaced or not.
    pub(crate) freed: Counter,
}

impl Ledger {
    pub(crate) fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    /// Values replaced and not yet freed. While others count, this may be too small by what they
    /// free between the two sums, and never invents garbage for a design that frees at once.
    pub(crate) fn unreclaimed(&self) -> u64 {
        let replaced = self.replaced.sum();
        (replaced - self.freed.sum()).max(0).cast_unsigned()
    }
}
