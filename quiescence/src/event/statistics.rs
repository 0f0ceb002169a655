//! Counts of what has happened in a domain: where they are kept, and how they are read.
//!
//! Counting is cheaper than the event that is counted. An event under a lock is counted by a plain
//! load and store. A grace period that needs no heavy fence reads the clock only if it has to wait.

use std::fmt;
use std::hint::black_box;
// The standard library's atomics, in loom's build too: counts order nothing, so loom need not
// explore them.
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The counts of a domain. Each line is a field of [`Statistics`] with its documentation, served to
/// `rcu top` under the same name. A `counted` field also has a plain counter in [`Counters`]. A
/// `found` field is filled in by [`Statistics::of`].
macro_rules! statistics {
    ($($(#[$doc:meta])* $(counted $counted:ident)? $(found $found:ident)?,)*) => {
        /// Counts of what has happened in a domain since it was created, as [`Domain::statistics`]
        /// found them. Each is exact, but together they are not a snapshot of one moment.
        ///
        /// [`Domain::statistics`]: crate::Domain::statistics
        ///
        /// ```
        /// let before = quiescence::Domain::global().statistics();
        /// quiescence::synchronize();
        /// assert!(quiescence::Domain::global().statistics().grace_periods > before.grace_periods);
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Statistics {
            $($(#[$doc])* pub $($counted)? $($found)?: u64,)*
            /// Histogram of how long grace periods took, in nanoseconds.
            pub latency: Latency,
        }

        impl Statistics {
            /// All counts, by the names of their fields.
            #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "none is served"))]
            pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
                // One string: each entry of a table of strings would need a relocation.
                let names = concat!($(stringify!($($counted)? $($found)?), " "),*);
                names.split_ascii_whitespace().zip([$(self.$($counted)? $($found)?),*])
            }
        }

        /// A domain's counters, except those that are kept where they are used.
        #[derive(Debug)]
        pub(crate) struct Counters {
            pub(crate) latency: Buckets,
            $($(pub(crate) $counted: AtomicU64,)?)*
        }

        impl Counters {
            pub(crate) const fn new() -> Self {
                Self {
                    latency: Buckets([const { AtomicU64::new(0) }; BUCKETS]),
                    $($($counted: AtomicU64::new(0),)?)*
                }
            }

            /// The counts that are kept here; all other fields are zero.
            pub(crate) fn get(&self) -> Statistics {
                Statistics {
                    latency: self.latency.get(),
                    // Relaxed: counts; nothing is inferred from them.
                    $($($counted: self.$counted.load(Relaxed),)?)*
                    ..Statistics::default()
                }
            }
        }
    };
}

statistics! {
    /// Grace periods that have ended.
    found grace_periods,
    /// Of these, the grace periods that were expedited: by a thread that wanted them (or the next
    /// one) in a hurry, or because memory was near its limit.
    counted grace_periods_expedited,
    /// Heavy fences executed, for grace periods and before sleeping.
    counted heavy_fences,
    /// Number of times that an updater went to sleep because of holdouts.
    counted sleeps,
    /// CPU time that the worker has spent on this domain's grace periods, in nanoseconds;
    /// callbacks are not counted.
    counted worker_ns,
    /// CPU time that the worker has spent on this domain's callbacks, in nanoseconds.
    counted worker_callbacks_ns,
    /// Readers that are registered now.
    found readers,
    /// Threads that are now waiting for a grace period, or attending to one.
    found waiters,
    /// Callbacks queued (objects retired, closures given to `call`). Pushes to callback queues are
    /// counted in blocks of 64. So up to 126 pushes of each thread are added only by the runner's
    /// next round, and of a thread that alternates between callback queues, as many as it has
    /// counted. That round may also correct the count downwards.
    found callbacks_queued,
    /// Callbacks that have run.
    found callbacks_run,
    /// Callbacks that panicked; they count as run.
    counted callbacks_panicked,
    /// Bytes of retired objects and closures that are queued now. The threads' queues are added up
    /// one after the other, so memory that is freed meanwhile may be counted as well as what takes
    /// its place.
    found bytes_waiting,
    /// Of the queued objects, those whose grace period has ended but which a hazard pointer still
    /// protected at the last scan. Only in a [hazard domain](crate::hazard::HazardDomain).
    found objects_protected,
    /// The bytes of these objects.
    found bytes_protected,
    /// Closed batches of callbacks; a batch waits for one grace period as a whole.
    counted batches,
    /// Number of times that a thread reached the memory limit and waited.
    counted limit_waits,
    /// Number of times that a thread reached the memory limit and did not wait: its object was
    /// returned, or it waits when its section ends.
    counted limit_refusals,
    /// Objects and closures that were queued in excess of the limit: in a sleepable domain after
    /// waiting in vain ([`Srcu`](crate::Srcu) says why), in sections, when a refused object is
    /// dropped, and by operations that cannot be refused (dropping an
    /// [`Unlinked`](crate::Unlinked), [`raw`](crate::raw)).
    counted limit_overruns,
    /// Stall reports that were due: one when a grace period reaches the stall threshold, and one
    /// each time its age doubles.
    counted stalls,
    /// Number of times that the process's only worker thread ended and was restarted; the same in
    /// all domains. The worker survives panics of callbacks, drops, wakers and subscribers, so a
    /// value above 0 reveals a bug in this library.
    found worker_restarts,
}

impl Statistics {
    /// Callbacks that wait for their grace period or to be run. Callbacks that are being run, up to
    /// a batch at a time, are included until they have run. Their room is released earlier, so the
    /// value may exceed [`Tuning::objects_max`](crate::tuning::Tuning::objects_max) for a moment.
    pub const fn callbacks_waiting(&self) -> u64 {
        self.callbacks_queued.saturating_sub(self.callbacks_run)
    }
}

/// The number of buckets of a [`Latency`].
const BUCKETS: usize = 48;

/// A histogram of how long grace periods took, in buckets by powers of two.
///
/// The latency of a grace period runs from its beginning (before its heavy fence; a preceding wait
/// for the tick is not counted) to its end. **Excluded are grace periods that found no other reader
/// registered, or only QSBR readers, none of which they had to wait for**: they take less time than
/// two clock reads would. If all readers are QSBR, the latency runs from the first scan that finds
/// a reader to wait for.
///
/// ```
/// let domain = quiescence::Domain::new();
/// let (entered, leave) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let _reader = domain.reader(); // a reader is registered
///         entered.wait();
///         leave.wait();
///     });
///     entered.wait();
///     domain.synchronize();
///     leave.wait();
/// });
/// let latency = domain.statistics().latency;
/// assert_eq!(latency.count(), 1);
/// let median = latency.quantile(0.5).unwrap();
/// println!("from {} to less than {} ns", median.start, median.end);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    counts: [u64; BUCKETS],
}

impl Latency {
    /// The number of grace periods in the histogram.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The non-empty buckets, shortest first: a range in nanoseconds, and the number of grace
    /// periods that took that long. The last bucket, from 2^46 ns (19 hours) up, ends at
    /// `u64::MAX`.
    pub fn buckets(&self) -> impl Iterator<Item = (std::ops::Range<u64>, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count != 0);
        filled.map(|(index, count)| (range_ns(index), *count))
    }

    /// The bucket, in nanoseconds, that contains the quantile `share` (clamped to 0..=1):
    /// `quantile(0.99)` bounds the latency that 99 of 100 grace periods did not exceed. `None` if
    /// there were no grace periods.
    pub fn quantile(&self, share: f64) -> Option<std::ops::Range<u64>> {
        let count = self.count();
        let rank = ((share.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0u64;
        self.buckets().find_map(|(range, count)| {
            seen = seen.saturating_add(count);
            (seen >= rank).then_some(range)
        })
    }

    /// The difference from `earlier`, an earlier histogram of the same domain.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let since = |index: usize| self.counts[index].saturating_sub(earlier.counts[index]);
        Self { counts: std::array::from_fn(since) }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self { counts: [0; BUCKETS] }
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.buckets()).finish()
    }
}

/// The bucket of a latency: bucket 0 is 0 ns; then there is one for each power of two.
fn bucket(ns: u64) -> usize {
    ((u64::BITS - ns.leading_zeros()) as usize).min(BUCKETS - 1)
}

/// The latencies that fall into a bucket, in nanoseconds.
fn range_ns(bucket: usize) -> std::ops::Range<u64> {
    let start = if bucket == 0 { 0 } else { 1 << (bucket - 1) };
    start..if bucket == BUCKETS - 1 { u64::MAX } else { 1 << bucket }
}

/// A domain's callbacks, as its queues count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Callbacks {
    /// Queued since the domain was created.
    pub(crate) queued: u64,
    /// Run since then; `run <= queued` if `run` is read first.
    pub(crate) run: u64,
    /// Bytes that are queued now.
    pub(crate) bytes_waiting: u64,
}

impl Callbacks {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            queued: self.queued + other.queued,
            run: self.run + other.run,
            bytes_waiting: self.bytes_waiting.saturating_add(other.bytes_waiting),
        }
    }

    /// The counts that `look` finds, with those that are `gone`: so many were queued and have run.
    /// A look reads one queue after the other, and of each first how many callbacks have run. The
    /// next look shows how many ran during this one. Of a few looks, returns the one during which
    /// the fewest ran: the first during which none did.
    ///
    /// Callbacks that are queued and run between the two reads count as waiting. A thread that is
    /// preempted between them would count all that other threads queue and run in a time slice.
    pub(crate) fn steadiest(gone: u64, look: &mut dyn FnMut() -> Self) -> Self {
        let mut seen = look();
        let (mut best, mut least) = (seen, u64::MAX);
        for _ in 0..LOOKS_MAX {
            let next = look();
            let meanwhile = next.run.saturating_sub(seen.run);
            if meanwhile < least {
                (best, least) = (seen, meanwhile);
            }
            if least == 0 {
                break;
            }
            seen = next;
        }
        best.plus(Self { queued: gone, run: gone, bytes_waiting: 0 })
    }
}

/// How many looks [`Callbacks::steadiest`] chooses from, at most.
const LOOKS_MAX: usize = 8;

/// Adds 1 to a count. All threads that add hold the same lock, so no locked instruction is needed.
pub(crate) fn add_alone(count: &AtomicU64) {
    // Relaxed: a statistic.
    count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
}

/// A [`Latency`] to which one thread at a time adds.
#[derive(Debug)]
pub(crate) struct Buckets([AtomicU64; BUCKETS]);

impl Buckets {
    /// Adds a latency. See [`add_alone`].
    pub(crate) fn record_alone(&self, ns: u64) {
        add_alone(&self.0[bucket(ns)]);
    }

    pub(crate) fn get(&self) -> Latency {
        let mut latency = Latency::default();
        // The compiler must not know the length: it would unroll the whole loop.
        for (to, from) in latency.counts.iter_mut().zip(black_box(self.0.as_slice())) {
            *to = from.load(Relaxed);
        }
        latency
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn every_latency_is_in_the_bucket_that_says_so() {
        let powers = (0..64).map(|power| 1u64 << power);
        let around = powers.flat_map(|power| [power - 1, power, power + 1]);
        for ns in around.chain([0, u64::MAX - 1]) {
            let range = range_ns(bucket(ns));
            assert!(range.contains(&ns), "{ns} in {range:?}");
        }
        assert_eq!((0..BUCKETS).map(range_ns).filter(|range| range.is_empty()).count(), 0);
    }

    #[test]
    fn quantiles_are_bounds_of_the_rank() {
        let buckets = Counters::new().latency;
        assert_eq!(buckets.get().quantile(0.5), None);
        (0..98).for_each(|_| buckets.record_alone(1_000));
        let earlier = buckets.get();
        buckets.record_alone(5_000);
        buckets.record_alone(3_000_000);
        let latency = buckets.get();
        assert_eq!(latency.count(), 100);
        assert_eq!(latency.quantile(0.0), Some(512..1_024));
        assert_eq!(latency.quantile(0.98), Some(512..1_024));
        assert_eq!(latency.quantile(0.99), Some(4_096..8_192));
        assert_eq!(latency.quantile(1.0), Some(2_097_152..4_194_304));
        assert_eq!(latency.quantile(f64::NAN), Some(512..1_024));
        let since = latency.since(&earlier);
        assert_eq!(since.buckets().map(|(_, count)| count).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(earlier.since(&latency).count(), 0);
    }

    /// A thread that was preempted between reading how many had run and how many were queued once
    /// counted all that were queued and run meanwhile as waiting.
    #[test]
    fn counts_that_change_during_a_look_are_looked_at_again() {
        let run = Cell::new(10);
        let look = |meanwhile: &Cell<&'static [u64]>| {
            let before = run.get();
            let (now, later) = meanwhile.get().split_first().unwrap_or((&0, &[]));
            meanwhile.set(later);
            run.set(before + now);
            Callbacks { queued: run.get() + 1, run: before, bytes_waiting: 0 }
        };
        let waiting = |meanwhile| {
            let meanwhile = Cell::new(meanwhile);
            let seen = Callbacks::steadiest(0, &mut || look(&meanwhile));
            seen.queued - seen.run
        };
        assert_eq!(waiting(&[]), 1);
        assert_eq!(waiting(&[6_000, 3, 0]), 1, "until nothing has run meanwhile");
        assert_eq!(waiting(&[9, 7, 5, 8, 9, 9, 9, 9, 0]), 6, "else the best of a few");
    }
}
