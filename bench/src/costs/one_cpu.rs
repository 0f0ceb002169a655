//! Costs that one CPU has alone, and what several pay who do the same to one thing at once:
//! instructions, caches, atomics, locks, readers, grace periods.

use std::array;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use crossbeam_utils::CachePadded;
use quiescence::Rcu;
use rustix::mm::{Advice, madvise};

use super::kernel::heavy_fence;
use crate::slices::{Part, Row, STREAM, stream};

/// Bytes of a cache line, and how many `u32` it holds.
const LINE_BYTES: u64 = 64;
const LINE_WORDS: usize = 16;

/// Bytes of a huge page.
const HUGE_BYTES: usize = 2 << 20;

/// What is timed for the figure of this name, in so many threads; nothing of figures of other
/// files.
pub(super) fn row(id: &str, threads: usize) -> Option<Row<'static>> {
    // Relaxed: the order is not what is timed, and on x86 costs nothing more.
    let increment = |word: &AtomicU64| _ = word.fetch_add(1, Ordering::Relaxed);
    Some(match id {
        // Among others that do not wait for it.
        "instruction" => steps(STREAM, [1, 2, 3, 4, 5, 6, 7, 8], stream),
        // A chain of additions and exclusive-ors, each of which waits for the last one.
        "clock_cycle" => steps(2 * 16, [1_u64, 2], |[a, b]| {
            for _ in 0..16 {
                *a = a.wrapping_add(*b);
                *b ^= *a;
            }
        }),
        "atomic_increment" | "shared_increment" => with(threads, AtomicU64::default, increment),
        "cmpxchg_atomic_increment" => with(1, AtomicU64::default, |word| {
            // Relaxed, as above. No other thread writes the word, so the exchange succeeds.
            let value = word.load(Ordering::Relaxed);
            let swapped =
                word.compare_exchange(value, value + 1, Ordering::Relaxed, Ordering::Relaxed);
            debug_assert!(swapped.is_ok(), "nobody else writes this word");
        }),
        "cpu_local_lock" | "shared_lock" => with(threads, Mutex::<u64>::default, |lock| {
            *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }),
        "read_lock" | "shared_read_lock" => with(threads, RwLock::<u64>::default, |lock| {
            black_box(*lock.read().unwrap_or_else(PoisonError::into_inner));
        }),
        "rcu_read" | "shared_rcu_read" => with(threads, || Rcu::new(0_u64), rcu_read),
        "rcu_read_reader" => rcu_read_with_reader(),
        "membarrier" => with(1, || (), |()| heavy_fence()),
        "membarrier_beside_reader" => beside_a_reader(row("membarrier", 1)?),
        "grace_period" => with(1, || (), |()| quiescence::synchronize()),
        "grace_period_beside_reader" => beside_a_reader(row("grace_period", 1)?),
        "pause" => with(1, || (), |()| spin_loop()),
        "allocate" => with(1, || (), |()| _ = black_box(Vec::<u8>::with_capacity(black_box(256)))),
        _ => return None,
    })
}

fn rcu_read(value: &Rcu<u64>) {
    black_box(*value.load(&quiescence::read()));
}

/// `once`, again and again, with the same thing in all threads; its neighbours are kept away.
///
/// A load waits for a store that is in flight to an address with the same low 12 bits. Whether the
/// thing has those of a word that `once` writes is chance, so a slice takes the next of several.
fn with<T: Send + Sync + 'static>(
    threads: usize,
    new: impl Fn() -> T,
    once: impl Fn(&T) + Sync + 'static,
) -> Row<'static> {
    let things: [_; 8] = array::from_fn(|_| CachePadded::new(new()));
    let row = Row::new(threads, move |part| {
        let thing = black_box(&*things[part.slice.unwrap_or(0) as usize % things.len()]);
        part.times(|| once(thing))
    });
    if threads == 1 { row.even() } else { row }
}

/// So many steps at a time, which change a state that only they have.
fn steps<S: Copy + Sync + 'static>(
    count: u64,
    begin: S,
    step: impl Fn(&mut S) + Sync + 'static,
) -> Row<'static> {
    let body = move |part: &Part<'_>| {
        let mut state = black_box(begin);
        let took = part.times(|| step(&mut state));
        black_box(state);
        took
    };
    Row::new(1, body).of(count).even()
}

/// One load that waits for the load before it, over this many bytes in an order that no
/// prefetcher guesses.
///
/// How much of a buffer a cache holds depends on the pages that it got, so a slice takes the next
/// one of several, where all of them are small.
pub(super) fn dependent_load(bytes: u64) -> Row<'static> {
    const SMALL: u64 = 4 << 20;
    let (buffers, warm_up) = if bytes <= SMALL { (8, bytes / LINE_BYTES) } else { (1, 0) };
    // Each slice begins where the last one of its buffer ended: in memory, what that left in the
    // caches is far behind.
    let begun = |(next, start)| (next, AtomicUsize::new(start));
    let chains: Vec<_> = (0..buffers).map(|_| begun(chain(bytes))).collect();
    let turn = AtomicUsize::new(0);
    Row::new(1, move |part| {
        let (next, place) = &chains[turn.fetch_add(1, Ordering::Relaxed) % chains.len()];
        let mut at = place.load(Ordering::Relaxed);
        for _ in 0..warm_up {
            at = next[at] as usize;
        }
        let took = part.times(|| at = next[at] as usize);
        place.store(at, Ordering::Relaxed);
        took
    })
    .even()
}

/// A cycle through all lines of a buffer, and where it begins in it. The step is a linear
/// congruence with full period (Hull and Dobell, 1962), so that a buffer of gigabytes needs no
/// shuffle, which would take seconds.
///
/// The lines are in huge pages, where the system has them. With small ones a level of the caches
/// holds more or less of them by which pages a run gets, and memory costs what other work has left
/// of the translations besides.
fn chain(bytes: u64) -> (Vec<u32>, usize) {
    let lines = (bytes / LINE_BYTES).max(2) as usize;
    assert!(lines.is_power_of_two(), "the step visits every line only of a power of two");
    let mut next = vec![0_u32; lines * LINE_WORDS + 2 * HUGE_BYTES / size_of::<u32>()];
    let start = next.as_ptr().align_offset(HUGE_BYTES);
    use_huge_pages(&mut next[start..]);
    for line in 0..lines {
        let after = (1_664_525 * line + 1_013_904_223) & (lines - 1);
        next[start + line * LINE_WORDS] = (start + after * LINE_WORDS) as u32;
    }
    (next, start)
}

/// Asks for huge pages for memory that begins one and was not written to.
fn use_huge_pages(memory: &mut [u32]) {
    let bytes = size_of_val(memory) / HUGE_BYTES * HUGE_BYTES;
    // SAFETY: whole pages of the slice, whose contents this does not change. A kernel that has no
    // huge pages refuses, to no harm.
    _ = unsafe { madvise(memory.as_mut_ptr().cast(), bytes, Advice::LinuxHugepage) };
}

/// A section of this library with an explicit reader, which skips finding its thread.
fn rcu_read_with_reader() -> Row<'static> {
    let value = Rcu::new(0_u64);
    Row::new(1, move |part| {
        let (value, reader) = (black_box(&value), quiescence::Domain::global().reader());
        part.times(|| _ = black_box(*value.load(&reader.read())))
    })
    .even()
}

/// A grace period, or a membarrier, while another thread is in one section after the other.
fn beside_a_reader(measured: Row<'static>) -> Row<'static> {
    let value = Rcu::new(0_u64);
    let body = move |part: &Part<'_>| match part.me {
        0 => (measured.body)(part),
        _ => part.until_over(|| rcu_read(&value)),
    };
    Row { timed: 1, ..Row::new(2, body) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::host::Quiet;
    use crate::slices::{self, COUNTED_MIN, Wanted};

    #[test]
    fn the_chain_visits_every_line_once_and_returns() {
        for lines in [2_u64, 16, 256, 4096] {
            let (next, start) = chain(lines * LINE_BYTES);
            let mut at = start;
            let mut seen = vec![false; lines as usize];
            for _ in 0..lines {
                let line = (at - start) / LINE_WORDS;
                assert!(!seen[line], "line {line} twice");
                seen[line] = true;
                at = next[at] as usize;
            }
            assert_eq!(at, start);
        }
    }

    #[test]
    fn a_cost_was_that_of_one_address() {
        static SEEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
        let row = with(1, AtomicU64::default, |word| {
            SEEN.lock().unwrap().insert(std::ptr::from_ref(word).addr());
        });
        let wanted = Wanted { slices: 8, seed: 1, pin: false, least: COUNTED_MIN };
        slices::run(&[row], &wanted, &mut Quiet::default());
        assert!(SEEN.lock().unwrap().len() > 1);
    }
}
