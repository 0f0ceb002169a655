//! Costs that exist only between CPUs: moving a cache line.
//!
//! It is what one of many lines costs, of which a CPU fetches several at a time: far less than the
//! time that a single line takes, which the verdict of a run has.
//!
//! A line is moved by turns: one CPU changes a few hundred lines that the other one changed last,
//! and only that is timed, not the handing over of the turn.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::Made;
use crate::slices::Row;

/// Lines moved in a turn: enough for the clock, few enough to stay in any first-level cache.
const LINES: usize = 128;
/// Looks at the turn before the CPU is offered to others: a guest's other CPU may not be running.
const LOOKS_BEFORE_YIELD: u32 = 10_000;

/// A word with its neighbours kept away.
type Line = CachePadded<AtomicU64>;

/// What is done to a line that the other CPU wrote last.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// An atomic increment.
    Increment,
    /// A compare-and-swap that guesses the old value.
    BlindSwap,
    /// A load, then a compare-and-swap: the line comes shared first and is invalidated after.
    LoadAndSwap,
}

/// What is timed for the figure of this name; nothing of figures of other files.
pub(super) fn row(id: &str) -> Option<Made> {
    let change = match id {
        "atomic_increment_cache_transfer" => Change::Increment,
        "cmpxchg_blind_cache_transfer" => Change::BlindSwap,
        "cmpxchg_cache_transfer_and_invalidate" => Change::LoadAndSwap,
        _ => return None,
    };
    Some(Ok(transfer(change)))
}

/// Changing one line that the other CPU changed last. Each count of a thread is a turn.
fn transfer(change: Change) -> Row<'static> {
    let lines: Vec<Line> = (0..LINES).map(|_| Line::default()).collect();
    let turn = AtomicU64::new(0);
    let body = move |part: &crate::slices::Part<'_>| {
        let mut took = Duration::ZERO;
        for _ in 0..part.count {
            let mine = wait_for_turn(&turn, part.me as u64);
            let before = Instant::now();
            change_all(change, &lines, mine);
            took += before.elapsed();
            // Release: pairs with the Acquire of the other side; it finds all lines changed.
            turn.store(mine + 1, Ordering::Release);
        }
        took
    };
    Row::new(2, body).of(LINES as u64)
}

/// Spins until it is a turn of this parity; says which.
fn wait_for_turn(turn: &AtomicU64, parity: u64) -> u64 {
    let mut looks = 0;
    loop {
        // Acquire: pairs with the Release at the end of the other side's turn.
        let now = turn.load(Ordering::Acquire);
        if now % 2 == parity {
            return now;
        }
        looks += 1;
        if looks % LOOKS_BEFORE_YIELD == 0 {
            thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

/// Changes every line once. Each held `turn` before, since every turn adds one to each.
fn change_all(change: Change, lines: &[Line], turn: u64) {
    for step in 0..LINES {
        // An odd multiple, so that no prefetcher learns the order.
        let word = &lines[(step * 37) % LINES];
        // Relaxed throughout: the turn orders the sides, and the cost is that of moving the line.
        let expected = match change {
            Change::Increment => {
                word.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            Change::BlindSwap => turn,
            Change::LoadAndSwap => word.load(Ordering::Relaxed),
        };
        let swapped =
            word.compare_exchange(expected, turn + 1, Ordering::Relaxed, Ordering::Relaxed);
        debug_assert_eq!(swapped, Ok(turn), "a line was changed out of turn");
    }
}
