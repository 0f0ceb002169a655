//! How a thread counts what it pushes: a block at a time, and not each push by an atomic addition
//! to a line that all who push share.
//!
//! **What a thread has pushed and not counted is less than what it has counted**, and, with one
//! callback queue, than two [blocks](MOST), of which a round may have cut the first: its first
//! pushes to a callback queue it counts one by one, and one by one again when it has come from
//! another callback queue, or was told that there is no room. What it forgets so, or where it ends,
//! is counted by who takes it [L-2].

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Pushes of a block, at most.
pub(super) const MOST: u64 = 64;

/// So many are counted one by one at first.
const ONE_BY_ONE: u64 = 64;

/// The part of a chunk, what is granted at once, that a block is at most.
const SHARE: u64 = 4;

/// What a thread is about to count.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// For which callback queue; 0 for none.
    id: u64,
    /// Pushes that are still to be made without being counted.
    left: u64,
    /// Pushes of the block.
    size: u64,
    /// Pushes counted one by one.
    singles: u64,
    /// The callback queue's round in which it was begun.
    round: u64,
    /// What the thread may push, to whatever callback queue, before it waits for others that have
    /// waited for room [L-4].
    share: u64,
}

impl Block {
    const NONE: Self = Self { id: 0, left: 0, size: 1, singles: 0, round: 0, share: ONE_BY_ONE };
}

thread_local! {
    /// The calling thread's. Without a destructor, so that it can be used until the very end.
    static BLOCK: Cell<Block> = const { Cell::new(Block::NONE) };
}

/// A number that no other callback queue has, had or will have.
pub(super) fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1 // only that they differ matters
}

/// The calling thread pushes one more. Returns whether a block is to be counted, and
/// [begun](begin).
#[inline]
pub(super) fn note(id: u64) -> bool {
    BLOCK.with(|cell| {
        let block = cell.get();
        let goes_on = block.id == id && block.left != 0;
        if goes_on {
            cell.set(Block { left: block.left - 1, ..block });
        }
        !goes_on
    })
}

/// Begins another block, where so many heads are granted at once. Returns how many of the one
/// before are to be counted, with the push that has ended it: that one alone, if there was a round
/// meanwhile, which has counted what it has taken.
pub(super) fn begin(id: u64, chunk: u64, round: u64) -> u64 {
    BLOCK.with(|cell| {
        let share = cell.get().share;
        let before = Some(cell.get()).filter(|block| block.id == id);
        let counted = before.map_or(1, |block| if block.round == round { block.size } else { 1 });
        let singles = before.map_or(1, |block| (block.singles + 1).min(ONE_BY_ONE));
        let size = if singles < ONE_BY_ONE { 1 } else { (chunk / SHARE).clamp(1, MOST) };
        let share = share.saturating_sub(before.map_or(1, |block| block.size));
        cell.set(Block { id, left: size - 1, size, singles, round, share });
        counted
    })
}

/// There is no room: the next ones are counted one by one.
pub(super) fn is_crowded() {
    BLOCK.with(|cell| {
        let Block { id, share, .. } = cell.get();
        cell.set(Block { id, share, ..Block::NONE });
    });
}

/// Whether the thread has pushed its share of the room.
pub(super) fn share_is_used() -> bool {
    BLOCK.with(|cell| cell.get().share == 0) //~ unshared-room
}

/// The thread has waited for room, and has so much of it.
pub(super) fn has_waited(share: u64) {
    BLOCK.with(|cell| cell.set(Block { share, ..cell.get() }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many pushes; returns how many were counted.
    fn push(id: u64, pushes: u64, chunk: u64) -> u64 {
        (0..pushes).map(|_| if note(id) { begin(id, chunk, 0) } else { 0 }).sum()
    }

    #[test]
    fn what_is_not_counted_is_less_than_a_block_and_than_what_is() {
        let (one, other) = (next_id(), next_id());
        for chunk in [0, 1, 16, 100_000] {
            let mut counted = 0;
            for pushed in 1..=1_000 {
                counted += push(one, 1, chunk);
                assert!(counted <= pushed && pushed - counted < MOST.min(chunk.max(4) / SHARE));
            }
            // Who alternates counts each time it comes.
            let counted: u64 = (0..100).map(|_| push(other, 1, chunk) + push(one, 1, chunk)).sum();
            assert_eq!(counted, 200);
            push(other, 1, chunk);
        }
    }

    /// What a round has counted already is not counted once more.
    #[test]
    fn a_block_that_was_taken_in_part_is_not_counted_whole() {
        let id = next_id();
        push(id, ONE_BY_ONE + MOST / 2, 1_000);
        let counted: u64 = (0..MOST).map(|_| if note(id) { begin(id, 1_000, 1) } else { 0 }).sum();
        assert_eq!(counted, 1);
    }

    #[test]
    fn where_there_is_no_room_each_is_counted() {
        let id = next_id();
        push(id, 100, 1_000);
        is_crowded();
        assert_eq!(push(id, ONE_BY_ONE - 1, 1_000), ONE_BY_ONE - 1);
    }
}
