//! A counter that is cheap to add to, and fuzzy to read.

use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::os::percpu;
use crate::percpu::counters::PerCpuCounters;

/// Additions to the shared word between two attempts to get a word for every CPU.
const GROWS_EVERY: u32 = 64;

/// A statistical counter: adding is cheaper than one uncontended atomic addition, also where many
/// threads do.
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
/// A sum has every addition that happened before it; of those that go on meanwhile it may have any,
/// in any order: a counter that one thread increments and another decrements afterwards may be seen
/// at -1. Nothing is lost or counted twice. Sums wrap at 64 bits. Where that is not enough:
/// [`ExactCounter`](super::ExactCounter).
///
/// # Cost
/// 24 bytes, and 8 for each CPU once it has been used 64 times. An addition is wait-free, but for
/// that growth, and may be made in a signal handler. A sum looks at each CPU's word. It does not
/// allocate from the heap. The first one in the process that needs words of the CPUs makes the
/// choice: see [`per_cpu_path`](crate::tuning::per_cpu_path).
pub struct Counter {
    counters: PerCpuCounters<1>,
    /// Additions to the shared word. (The word itself need not get anywhere: it goes up and down.)
    uses: AtomicU32,
}

impl Counter {
    /// A counter at zero.
    pub const fn new() -> Self {
        Self { counters: PerCpuCounters::new(), uses: AtomicU32::new(0) }
    }

    /// Adds `amount`, which may be less than nothing.
    #[inline]
    pub fn add(&self, amount: i64) {
        // SAFETY: null, or the word of CPU 0, and every other one has one, as long as `self`.
        if !unsafe { percpu::add_at::<0>(&self.counters.first, amount.cast_unsigned()) } {
            self.add_slow(amount);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_slow(&self, amount: i64) {
        self.counters.add_slow(0, amount.cast_unsigned());
        // Relaxed: it is a count.
        if self.counters.first().is_null()
            && self.uses.fetch_add(1, Relaxed) % GROWS_EVERY == GROWS_EVERY - 1
        {
            self.counters.grow();
        }
    }

    /// What has been added so far.
    pub fn sum(&self) -> i64 {
        self.counters.sum(0).cast_signed()
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("sum", &self.sum()).finish()
    }
}
