//! The cheapest clock there is, for single operations that take less time than `Instant` does.
//!
//! On x86 the time-stamp counter, which every CPU since about 2008 advances at one rate;
//! elsewhere the system's, in nanoseconds. Neither waits for earlier instructions to end, so an
//! operation of a few nanoseconds may be seen in part only: good for tails, not for means, which
//! are measured over whole loops. `rivals_ticks` in `c/ticks.h` is the same clock.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

/// How long the two clocks are compared: a millionth of it is a nanosecond or so, which is all
/// that a look at them can be off.
const COMPARED_FOR: Duration = Duration::from_millis(5);

/// The time of all CPUs that this process has used.
pub(crate) fn cpu_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// The CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// The time since some moment, the same for all threads.
pub(crate) fn now() -> Duration {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The time in ticks since some moment.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction, and it only reads a counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The time in ticks since some moment.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    now().as_nanos() as u64
}

/// Ticks from `begin` to now, as they are kept in samples: those that do not fit are as long as
/// can be said, which is more than a second.
#[inline(always)]
pub(crate) fn ticks_since(begin: u64) -> u32 {
    u32::try_from(ticks().saturating_sub(begin)).unwrap_or(u32::MAX)
}

/// The value that the share `at` of the samples does not exceed, in nanoseconds, without what two
/// looks at the clock cost. Sorts the samples in part.
///
/// # Panics
/// On no samples.
pub(crate) fn quantile_ns(samples: &mut [u32], at: f64) -> f64 {
    let place = (samples.len() as f64 * at).ceil() as usize;
    let (_, value, _) = samples.select_nth_unstable(place.clamp(1, samples.len()) - 1);
    ns_of(u64::from(*value))
}

/// The longest time that differs from longer ones, in ticks: a minute or so.
pub(crate) const TICKS_MAX: u64 = 1 << 38;

/// Of times up to this one, with three digits.
pub(crate) fn histogram(most: u64) -> Histogram<u64> {
    Histogram::new_with_bounds(1, most, 3).expect("the bounds are constants in range")
}

/// What so many ticks between two looks at the clock are in nanoseconds, without what the looks
/// cost.
pub(crate) fn ns_of(ticks: u64) -> f64 {
    static EMPTY: LazyLock<u32> = LazyLock::new(empty_ticks);
    all_ns_of(ticks.saturating_sub(u64::from(*EMPTY)).max(1))
}

/// What so many ticks are in nanoseconds.
pub(crate) fn all_ns_of(ticks: u64) -> f64 {
    static NS_PER_TICK: LazyLock<f64> = LazyLock::new(ns_per_tick);
    ticks as f64 * *NS_PER_TICK
}

fn ns_per_tick() -> f64 {
    let (begin, first) = (Instant::now(), ticks());
    while begin.elapsed() < COMPARED_FOR {
        std::hint::spin_loop();
    }
    let (elapsed, last) = (begin.elapsed(), ticks());
    elapsed.as_nanos() as f64 / (last - first).max(1) as f64
}

/// What two looks with nothing between them show: the least of many, so that it is never more than
/// what was paid.
fn empty_ticks() -> u32 {
    (0..1000).map(|_| ticks_since(ticks())).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_value_that_so_many_do_not_exceed() {
        let tick = quantile_ns(&mut [0], 0.5);
        let mut samples: Vec<u32> = (1..=1000).rev().map(|i| i * 1000).collect();
        let of = |samples: &mut [u32], at| (quantile_ns(samples, at) / tick).round() as u32;
        let empty = 500_000 - of(&mut samples, 0.5);
        assert!(empty < 1000, "{empty} ticks for a look at the clock");
        assert_eq!(of(&mut samples, 0.999), 999_000 - empty);
        assert_eq!(of(&mut samples, 1.0), 1_000_000 - empty);
        assert_eq!(of(&mut samples, 0.0), 1000 - empty);
    }

    #[test]
    fn ticks_are_nanoseconds_once_they_are_converted() {
        let (clock, instant) = (ticks(), Instant::now());
        while instant.elapsed() < Duration::from_millis(1) {}
        let ticked = ticks_since(clock);
        // With room for the comparison of the clocks that may run meanwhile.
        let longest = instant.elapsed().as_nanos() as f64 * 1.1;
        let ns = quantile_ns(&mut [ticked], 1.0);
        assert!(ns > 0.9e6 && ns < longest, "{ns} ns are not from 0.9 ms to {longest} ns");
    }
}
