//! A counter with cheap additions and exact sums.

use std::sync::atomic::Ordering::Relaxed;

use super::folding::Folding;
use crate::domain::impls::{default_by, shown_in_part};
use crate::os::sync::const_unless_loom;

/// A counter whose sum is the value it had at one moment.
///
/// ```
/// use quiescence::sync::ExactCounter;
///
/// static OPEN: ExactCounter = ExactCounter::new();
/// OPEN.add(2);
/// OPEN.add(-1);
/// assert_eq!(OPEN.sum(), 1);
/// ```
///
/// # Promise
/// During each call of [`sum`](Self::sum) there is a moment at which the counter had the returned
/// value. So a counter that is incremented before it is decremented is never seen below zero, and
/// two successive sums never contradict what happened in between.
///
/// # Cost
/// An addition is wait-free with restartable sequences, and lock-free on the portable path, where
/// it may retry a compare-and-swap of the CPU's word. It is a plain addition to the CPU's word or,
/// while a thread sums, an atomic one to a word that all share. In the textbook updaters are
/// stalled during a sum; here they use that word instead, and no thread waits. A sum costs one
/// `membarrier(2)`; sums wait for each other. Additions may be made in a signal handler, sums may
/// not.
///
/// 8 bytes for each CPU once it has been used 64 times. The first counter in the process that needs
/// per-CPU words makes the choice: see [`per_cpu_path`](crate::tuning::per_cpu_path).
pub struct ExactCounter {
    count: Folding<1>,
}

impl ExactCounter {
    const_unless_loom! {
        /// Creates a counter at zero.
        pub fn new() -> Self {
            Self { count: Folding::new(0, false) }
        }
    }

    /// Adds `amount`, which may be negative.
    #[inline]
    pub fn add(&self, amount: i64) {
        if !self.count.add(amount.cast_unsigned()) {
            // Relaxed: what a sum has to see before it is ordered by the heavy fence, or is in this
            // word's own order.
            self.count.central.fetch_add(amount.cast_unsigned(), Relaxed);
        }
    }

    /// Returns the value at one moment of the call.
    pub fn sum(&self) -> i64 {
        let turn = self.count.turn();
        self.count.stop(&turn);
        // All is in the one word now: the moment is that of the last addition to it.
        let sum = self.count.gather(0);
        self.count.go_on(&turn);
        sum.cast_signed()
    }
}

default_by!(new, impl Default for ExactCounter);

// Without the value: a sum takes the turn of others, and interrupts all CPUs.
shown_in_part!([] ExactCounter);
