//! Costs that exist only between CPUs: moving a cache line.
//!
//! It is what one of many lines costs, of which a CPU fetches several at a time: far less than the
//! time that a single line takes, which the verdict of a run has.
//!
//! A line is moved by turns: one CPU changes a few hundred lines that the other one changed last,
//! and only that is timed, not the handing over of the turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::slices::{Part, Row, spin_until};

/// Lines moved in a turn: enough for the clock, few enough to stay in any first-level cache.
const LINES: usize = 128;

/// What is timed for the figure of this name; nothing of figures of other files.
pub(super) fn row(id: &str) -> Option<Row<'static>> {
    // Relaxed throughout: the turn orders the sides, and the cost is that of moving the line.
    let swap = |word: &AtomicU64, old: u64| {
        let swapped = word.compare_exchange(old, old + 1, Ordering::Relaxed, Ordering::Relaxed);
        debug_assert!(swapped.is_ok(), "a line was changed out of turn");
    };
    Some(match id {
        "atomic_increment_cache_transfer" => {
            transfer(|word, _| _ = word.fetch_add(1, Ordering::Relaxed))
        }
        // It guesses the old value.
        "cmpxchg_blind_cache_transfer" => transfer(swap),
        // The line comes shared first, and is invalidated after.
        "cmpxchg_cache_transfer_and_invalidate" => {
            transfer(move |word, _| swap(word, word.load(Ordering::Relaxed)))
        }
        _ => return None,
    })
}

/// Changing one line that the other CPU changed last, by a change that adds one to the word of this
/// value. Each count of a thread is a turn.
fn transfer(change: impl Fn(&AtomicU64, u64) + Sync + 'static) -> Row<'static> {
    let lines: [CachePadded<AtomicU64>; LINES] = std::array::from_fn(|_| CachePadded::default());
    let turn = AtomicU64::new(0);
    let body = move |part: &Part<'_>| {
        let mut took = Duration::ZERO;
        for _ in 0..part.count {
            let mut mine = 0;
            spin_until(false, || {
                // Acquire: pairs with the Release at the end of the other side's turn.
                mine = turn.load(Ordering::Acquire);
                mine % 2 == part.me as u64
            });
            let before = Instant::now();
            for step in 0..LINES {
                // An odd multiple, so that no prefetcher learns the order. Each line held `mine`
                // before, since every turn adds one to each.
                change(&lines[(step * 37) % LINES], mine);
            }
            took += before.elapsed();
            // Release: pairs with the Acquire of the other side; it finds all lines changed.
            turn.store(mine + 1, Ordering::Release);
        }
        took
    };
    Row::new(2, body).of(LINES as u64)
}
