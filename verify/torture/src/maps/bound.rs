//! How many bytes may wait in the domain of a map, at most.
//!
//! Outside of sections an update waits at the limit, so it never exceeds it. Two kinds of updates
//! do: those in a section of their caller's, and the `try_` forms. Of both each thread has one
//! update at most beyond the limit:
//!
//! - in a section a thread that has gone over the limit is refused another one, until that has been
//!   settled;
//! - a `try_` form is refused while the domain is over its limit. So all that leave something
//!   beyond it began when the domain was within it, one for each thread.
//!
//! What one update leaves is bounded as well: the box of its entry, the nodes of the buckets that
//! it moves while a table grows or shrinks ([`MOVED`]), and those of its own bucket ([`OWN`]). How
//! large a node is depends on how many entries its bucket had when it was made ([`nodes`]); no more
//! than all keys that the crew uses, and that have one bucket in the smallest table. (Where keys
//! are spread that is a loose bound: how full a table was then, is not known.)
//!
//! Old tables are outside of the limit; the closure that frees one is in it, or goes over it. They
//! have less than twice the bytes of the newest table together ([`tables_max`]), and are fewer than
//! the binary digits of its number of buckets ([`DIGITS`]).

use std::hash::BuildHasher;

use super::crew::{self, FILLERS, FILLERS_FROM, RESERVED_MAX};
use super::entries::{self, Crowded};
use super::{BYTES_MAX, CREW, KEYS_MAX};

/// Updates of a thread whose leavings may be beyond the limit: one in a section of the thread's,
/// one of a `try_` form.
const UPDATES: u64 = 2;

/// Buckets that an update moves: four, or as many pairs of buckets while the table shrinks.
const MOVED: u64 = 8;

/// Nodes of its own bucket: one whose entries it moves into free slots, and, if it was not the
/// first then to change the entry, one that it replaces at its next try.
const OWN: u64 = 2;

/// The box of an entry and the words that stand for it in a queue: a key of 24 bytes, a value of
/// 48.
const BOX: u64 = 112;

/// What a closure is charged that frees an old table: a pointer, and its kind.
const CLOSURE: u64 = 16;

/// Entries for which there may have to be room: all keys, and what is reserved.
const ENTRIES_MAX: u64 = KEYS_MAX + 4 * FILLERS + RESERVED_MAX;

/// Buckets of the largest table: those have six slots, of which eleven in sixteen are in use. A
/// table of less than 256 buckets may grow by four.
const BUCKETS_MAX: u64 = (16 * ENTRIES_MAX).div_ceil(6 * 11).next_power_of_two();
const DIGITS: u64 = (BUCKETS_MAX.ilog2() + 1) as u64;

/// Nodes of so many buckets that have so many entries together. Each has its head and what stands
/// for it in the queue; and slots with a tag each, eight or more, which are twice as many as
/// entries where they moved from another table, rounded up to a power of two.
const fn nodes(buckets: u64, entries: u64) -> u64 {
    buckets * (32 + 24) + (16 * buckets + 4 * entries) * 9
}

/// Of all keys that the crew uses, in the smallest table, of four buckets: how many there are, how
/// many one bucket has at most, and how many buckets have some.
fn crowd(crowded: Crowded) -> (u64, u64, u64) {
    let mut entries = [0; 4];
    let fillers = (0..4).flat_map(|range| {
        let from = FILLERS_FROM + range * FILLERS;
        from..from + crew::fillers_max(crowded)
    });
    for key in (0..KEYS_MAX).chain(fillers) {
        entries[(crowded.hash_one(entries::key(key)) % 4) as usize] += 1;
    }
    let buckets = entries.iter().filter(|entries| **entries != 0).count() as u64;
    let buckets = if crowded == Crowded::Not { u64::MAX } else { buckets };
    (entries.iter().sum(), entries.into_iter().max().unwrap_or(0), buckets)
}

/// How many bytes may wait in the domain of a map.
pub(super) fn bytes_max(crowded: Crowded) -> u64 {
    let (all, most, buckets) = crowd(crowded);
    let moved = nodes(MOVED.min(buckets), all);
    let left = BOX + moved + OWN * nodes(1, most);
    BYTES_MAX + CLOSURE * DIGITS + CREW as u64 * UPDATES * left
}

/// How many bytes a map may have in tables, and in boxes. A bucket is a cache line.
pub(super) const fn tables_max() -> u64 {
    3 * (64 + BUCKETS_MAX * 64) + ENTRIES_MAX * BOX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_few_times_the_limit() {
        for crowded in Crowded::ALL {
            let times = if crowded == Crowded::Not { 100 } else { 6 };
            let bytes = bytes_max(crowded);
            assert!((BYTES_MAX..times * BYTES_MAX).contains(&bytes), "{crowded:?}: {bytes}");
        }
    }

    #[test]
    fn keys_that_are_in_one_bucket_are_counted_together() {
        let all = KEYS_MAX + 4 * crew::fillers_max(Crowded::OneBucket);
        for crowded in [Crowded::OneBucket, Crowded::OneTag] {
            assert_eq!(crowd(crowded), (all, all, 1));
        }
        let (_, entries, buckets) = crowd(Crowded::Few);
        assert!(buckets == 4 && (all / 4..all / 2).contains(&entries), "{entries} in {buckets}");
    }
}
