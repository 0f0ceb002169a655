//! Costs that one CPU has alone: instructions, caches, atomics, locks, readers, grace periods.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use rustix::thread::{MembarrierCommand, membarrier};

use super::timing::time;
use crate::statistics::Spread;

/// Bytes of a cache line, and how many `u32` it holds.
const LINE_BYTES: u64 = 64;
const LINE_WORDS: usize = 16;

/// One instruction among others that do not wait for it: four chains, which share nothing, in
/// operations that no compiler merges and no vector unit does at once.
pub(super) fn instruction(budget: Duration) -> Spread {
    const INSTRUCTIONS: u64 = 8 * 8;
    let mut cost = time(budget, |count| {
        let (mut a, mut b, mut c, mut d) = black_box((1_u64, 2_u64, 3_u64, 4_u64));
        let (mut e, mut f, mut g, mut h) = black_box((5_u64, 6_u64, 7_u64, 8_u64));
        for _ in 0..count {
            for _ in 0..8 {
                a = a.wrapping_add(b);
                c ^= d;
                e = e.rotate_left(9);
                g = g.wrapping_sub(h);
                b ^= a;
                d = d.wrapping_sub(c);
                e = e.wrapping_add(f);
                h |= g;
            }
            f = black_box(f);
        }
        black_box((a, b, c, d, e, f, g, h));
    });
    scale(&mut cost, 1.0 / INSTRUCTIONS as f64);
    cost
}

/// One clock cycle: a chain of additions and exclusive-ors, each of which waits for the last one.
pub(super) fn clock_cycle(budget: Duration) -> Spread {
    const STEPS: u64 = 2 * 16;
    let mut cost = time(budget, |count| {
        let (mut a, mut b) = black_box((1_u64, 2_u64));
        for _ in 0..count {
            for _ in 0..16 {
                a = a.wrapping_add(b);
                b ^= a;
            }
        }
        black_box((a, b));
    });
    scale(&mut cost, 1.0 / STEPS as f64);
    cost
}

fn scale(cost: &mut Spread, by: f64) {
    cost.median *= by;
    cost.low *= by;
    cost.high *= by;
}

/// One load that waits for the load before it, over this many bytes in an order that no
/// prefetcher guesses. Misses of the translation cache are part of it, as they are of real ones.
pub(super) fn dependent_load(budget: Duration, bytes: u64) -> Spread {
    let next = chain(bytes);
    let mut at = 0;
    time(budget, |count| {
        for _ in 0..count {
            at = next[at] as usize;
        }
        black_box(at);
    })
}

/// A cycle through all lines of a buffer. The step is a linear congruence with full period (Hull
/// and Dobell, 1962), so that a buffer of gigabytes needs no shuffle, which would take seconds.
fn chain(bytes: u64) -> Vec<u32> {
    let lines = (bytes / LINE_BYTES).max(2);
    assert!(lines.is_power_of_two(), "the step visits every line only of a power of two");
    let mut next = vec![0_u32; lines as usize * LINE_WORDS];
    for line in 0..lines {
        let after = (1_664_525 * line + 1_013_904_223) & (lines - 1);
        next[line as usize * LINE_WORDS] = (after as usize * LINE_WORDS) as u32;
    }
    next
}

/// An atomic increment of a line that is already ours.
pub(super) fn atomic_increment(budget: Duration) -> Spread {
    let word = AtomicU64::new(0);
    let word = black_box(&word);
    time(budget, |count| {
        for _ in 0..count {
            // Relaxed: the order is not what is timed, and on x86 costs nothing more.
            word.fetch_add(1, Ordering::Relaxed);
        }
    })
}

/// The same increment as a load and a compare-and-swap.
pub(super) fn compare_and_swap(budget: Duration) -> Spread {
    let word = AtomicU64::new(0);
    let word = black_box(&word);
    time(budget, |count| {
        for _ in 0..count {
            // Relaxed, as above. No other thread writes the word, so the exchange succeeds.
            let value = word.load(Ordering::Relaxed);
            let swapped =
                word.compare_exchange(value, value + 1, Ordering::Relaxed, Ordering::Relaxed);
            debug_assert!(swapped.is_ok(), "nobody else writes this word");
        }
    })
}

/// A mutex that no other thread wants: locked and unlocked.
pub(super) fn uncontended_lock(budget: Duration) -> Spread {
    let lock = Mutex::new(0_u64);
    let lock = black_box(&lock);
    time(budget, |count| {
        for _ in 0..count {
            *lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += 1;
        }
    })
}

/// A reader-writer lock that no other thread wants: locked for reading and unlocked.
pub(super) fn uncontended_read_lock(budget: Duration) -> Spread {
    let lock = RwLock::new(0_u64);
    let lock = black_box(&lock);
    time(budget, |count| {
        for _ in 0..count {
            black_box(*lock.read().unwrap_or_else(|poisoned| poisoned.into_inner()));
        }
    })
}

/// A read-side critical section of this library, with a load in it.
pub(super) fn rcu_read(budget: Duration) -> Spread {
    let value = quiescence::Rcu::new(0_u64);
    let value = black_box(&value);
    time(budget, |count| {
        for _ in 0..count {
            let guard = quiescence::read();
            black_box(*value.load(&guard));
        }
    })
}

/// The same with an explicit reader, which skips finding its thread.
pub(super) fn rcu_read_with_reader(budget: Duration) -> Spread {
    let value = quiescence::Rcu::new(0_u64);
    let value = black_box(&value);
    let reader = quiescence::reader();
    time(budget, |count| {
        for _ in 0..count {
            let guard = reader.read();
            black_box(*value.load(&guard));
        }
    })
}

/// The instruction between two looks of a loop that spins.
pub(super) fn pause(budget: Duration) -> Spread {
    time(budget, |count| {
        for _ in 0..count {
            spin_loop();
        }
    })
}

/// 256 bytes allocated and freed by the same thread.
pub(super) fn allocate(budget: Duration) -> Spread {
    time(budget, |count| {
        for _ in 0..count {
            black_box(Vec::<u8>::with_capacity(black_box(256)));
        }
    })
}

/// A grace period.
pub(super) fn grace_period(budget: Duration) -> Spread {
    time(budget, |count| {
        for _ in 0..count {
            quiescence::synchronize();
        }
    })
}

/// One private expedited membarrier; nothing where the kernel refuses it.
pub(super) fn heavy_fence(budget: Duration) -> Option<Spread> {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).ok()?;
    let mut refused = false;
    let cost = time(budget, |count| {
        for _ in 0..count {
            refused |= membarrier(MembarrierCommand::PrivateExpedited).is_err();
        }
    });
    (!refused).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_visits_every_line_once_and_returns() {
        for lines in [2_u64, 16, 256, 4096] {
            let next = chain(lines * LINE_BYTES);
            let mut at = 0;
            let mut seen = vec![false; lines as usize];
            for _ in 0..lines {
                let line = at / LINE_WORDS;
                assert!(!seen[line], "line {line} twice");
                seen[line] = true;
                at = next[at] as usize;
            }
            assert_eq!(at, 0);
        }
    }
}
