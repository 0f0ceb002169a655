//! Reads of a sequence lock beside threads that write nothing.

use crate::common::*;
use quiescence::sync::SeqLock;

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
