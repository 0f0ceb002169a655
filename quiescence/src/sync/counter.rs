//! A counter with cheap additions and fuzzy sums.

use std::fmt;

use crate::domain::impls::default_by;
use crate::os::percpu;
use crate::percpu::counters::PerCpuCounters;

/// A statistical counter. An addition costs less than an uncontended atomic addition, even when
/// many threads add.
///
/// ```
/// use quiescence::sync::Counter;
///
/// static PACKETS: Counter = Counter::new();
/// PACKETS.add(1);
/// PACKETS.add(41);
/// assert_eq!(PACKETS.sum(), 42);
/// ```
///
/// # Promise
/// A sum includes every addition that happened before it. It may include any of the additions made
/// during it, in any order: a counter that one thread increments and another one decrements
/// afterwards may read -1. Nothing is lost or counted twice. Sums wrap at 64 bits. If that is not
/// enough, use [`ExactCounter`](super::ExactCounter).
///
/// # Cost
/// 24 bytes, and 8 bytes for each CPU once it has been used 64 times. An addition is wait-free,
/// except during that growth, and may be made in a signal handler. A sum loads each CPU's word.
/// Nothing is allocated from the heap. The first counter in the process that needs per-CPU words
/// makes the choice: see [`per_cpu_path`](crate::tuning::per_cpu_path).
pub struct Counter {
    counters: PerCpuCounters<1>,
}

impl Counter {
    /// Creates a counter at zero.
    pub const fn new() -> Self {
        Self { counters: PerCpuCounters::new() }
    }

    /// Adds `amount`, which may be negative.
    #[inline]
    pub fn add(&self, amount: i64) {
        // SAFETY: null, or the word of CPU 0, and every other one has one, as long as `self`.
        if !unsafe { percpu::add_at::<0>(&self.counters.first, amount.cast_unsigned()) } {
            self.counters.add_slow(0, amount.cast_unsigned());
        }
    }

    /// Returns the sum of the additions so far.
    pub fn sum(&self) -> i64 {
        self.counters.sum(0).cast_signed()
    }
}

default_by!(new, impl Default for Counter);

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("sum", &self.sum()).finish()
    }
}
