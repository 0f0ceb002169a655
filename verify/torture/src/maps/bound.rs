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
//! large a node is depends on how many entries its bucket had when it was made ([`node`]).
//!
//! Old tables are outside of the limit. A closure that waits stands for each, of a few words:
//! [`TABLES`].

use std::hash::BuildHasher;

use super::crew::{self, FILLERS, FILLERS_FROM};
use super::entries::{Crowded, Entries};
use super::{BYTES_MAX, CREW, KEYS_MAX};

/// Updates of a thread whose leavings may be beyond the limit: one in a section of the thread's,
/// one of a `try_` form.
const UPDATES: u64 = 2;

/// Buckets that an update moves: four, or as many pairs of buckets while the table shrinks.
const MOVED: u64 = 8;

/// Nodes of its own bucket: one whose entries it moves into free slots, and, if it was not the
/// first then to change the entry, one that it replaces at its next try.
const OWN: u64 = 2;

/// Entries of a bucket where keys are spread by a good hash: seven slots have less than five on
/// average, and no bucket among some thousand has this many.
const SPREAD_MAX: u64 = 32;

/// The box of an entry and the words that stand for it in a queue: a key of 24 bytes, a value of
/// 32.
const BOX: u64 = 96;

/// Closures that stand for tables, which are admitted over the limit, of 24 bytes each. A thread
/// makes a dozen tables in a turn at most, and may have two such turns in one grace period.
const TABLES: u64 = 24 * 24 * CREW as u64;

/// A node of a bucket with so many entries: its head, and what stands for it in the queue, and its
/// slots with a tag each. Of these it has eight or more, twice as many as entries where they moved
/// from another table, rounded up to a power of two.
const fn node(entries: u64, slot: u64) -> u64 {
    let slots = (2 * entries).div_ceil(8).next_power_of_two() * 8;
    40 + 24 + slots * (1 + slot)
}

/// Entries that one bucket may have, and how many buckets may have so many: of all keys that the
/// crew uses, in the smallest table, of four buckets.
fn crowd<E: Entries>(crowded: Crowded) -> (u64, u64) {
    if crowded == Crowded::Not {
        return (SPREAD_MAX, MOVED);
    }
    let mut entries = [0; 4];
    let fillers = (0..4).flat_map(|range| {
        let from = FILLERS_FROM + range * FILLERS;
        from..from + crew::fillers_max(crowded)
    });
    for key in (0..KEYS_MAX).chain(fillers) {
        entries[(crowded.hash_one(E::key(key)) % 4) as usize] += 1;
    }
    let buckets = entries.iter().filter(|entries| **entries != 0).count();
    (entries.into_iter().max().unwrap_or(0), buckets as u64)
}

/// How many bytes may wait in the domain of a map.
pub(super) fn bytes_max<E: Entries>(crowded: Crowded) -> u64 {
    let (entries, buckets) = crowd::<E>(crowded);
    let left = BOX + (MOVED.min(buckets) + OWN) * node(entries, E::SLOT);
    BYTES_MAX + TABLES + CREW as u64 * UPDATES * left
}

#[cfg(test)]
mod tests {
    use super::super::entries::{InBoxes, InSlots};
    use super::*;

    #[test]
    fn a_bound_is_a_few_times_the_limit() {
        for crowded in Crowded::ALL {
            for bytes in [bytes_max::<InSlots>(crowded), bytes_max::<InBoxes>(crowded)] {
                assert!((BYTES_MAX..6 * BYTES_MAX).contains(&bytes), "{crowded:?}: {bytes}");
            }
        }
    }

    #[test]
    fn keys_that_are_in_one_bucket_are_counted_together() {
        let all = KEYS_MAX + 4 * crew::fillers_max(Crowded::OneBucket);
        for crowded in [Crowded::OneBucket, Crowded::OneTag] {
            assert_eq!(crowd::<InSlots>(crowded), (all, 1));
        }
        let (entries, buckets) = crowd::<InBoxes>(Crowded::Few);
        assert!(buckets == 4 && (all / 4..all / 2).contains(&entries), "{entries} in {buckets}");
    }
}
