//! Sequence locks that are taken where nothing is written, or where memory is allocated.

use crate::common::*;
use quiescence::sync::{Latch, SeqLock};

thread_local! {
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

static SIZES: SeqLock<[u64; 2]> = SeqLock::new([0; 2]);
static LARGEST: Latch<u64> = Latch::new(0);

/// What this program's allocator has been asked for.
pub(crate) fn count_if_asked(bytes: usize) {
    if COUNTS.get() {
        let bytes = bytes as u64;
        SIZES.update(|[blocks, all]| [blocks + 1, all + bytes]);
        LARGEST.update(|largest| largest.max(bytes));
    }
}

/// To take the lock and to let go of it changes the word that has the sequence: a read in between
/// was refused, or began anew and so came to take the lock itself.
#[test]
fn a_lock_that_was_taken_to_write_nothing_refused_reads() {
    let lock = SeqLock::new([7_u64; 512]);
    let take = |_| || drop(lock.lock());
    let refused =
        beside(1, take, || (0..rounds(20_000, 100)).filter(|_| lock.try_read().is_none()).count());
    assert_eq!(refused, 0);
}

/// The library asks for memory under its locks. Builds with debug assertions took the closure of an
/// allocator that counts for user code under these, and panicked in it. The panic's message asked
/// for memory, under the lock of the sequence lock.
#[test]
fn an_allocator_that_counts_in_one_waited_for_itself() {
    in_its_own_process!();
    COUNTS.set(true);
    let domains: Vec<_> = (0..64).map(|_| Domain::new()).collect();
    domains.iter().for_each(|domain| domain.retire(Box::new(0_u64)).unwrap());
    COUNTS.set(false);
    let [blocks, all] = SIZES.read();
    assert!(blocks > 64 && (all / blocks..=all).contains(&LARGEST.read()));
}
