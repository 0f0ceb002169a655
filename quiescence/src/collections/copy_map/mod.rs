//! A concurrent map of small `Copy` pairs, read by copying: [`CopyMap`].
//!
//! # Design
//! A bucket is one or two cache lines: a *state*, which is a sequence number with two flags, a word
//! of tags, and pairs. An update searches the bucket, decides, and then locks the bucket by a
//! compare-exchange of the state under which it has searched; if that succeeds, nothing has changed
//! meanwhile. So no user code runs under a lock. A reader copies a pair between two loads of the
//! state. It compares keys, or returns the value, only once it knows that the copy is consistent.
//!
//! ```text
//! bucket: state   tags   over   pair pair ...          over: the next bucket of a chain, or null
//! state:  number | HERE | LOCKED                       0: never used
//!
//!   update                                             look-up
//!   state = the table's root or next (Acquire) [CM-1]  state = the same, HERE and not LOCKED
//!   tags, pairs, over (Relaxed), as a look-up          tags, a pair (Relaxed)
//!   state |= LOCKED, if it is that; fence (Release)    fence (Acquire)
//!   pairs, tags (Relaxed)                      [CM-2]  state as it was? else again
//!   state = the next number (Release)          [CM-1]  compare the key, take the value
//! ```
//!
//! **[CM-I1] The memory of tables and nodes belongs to a map until the map is dropped.** A table
//! that all entries have left is kept for the next time that the map has its size; so are overflow
//! buckets (*nodes*). So a late reader still reads memory of this map, whatever it is used for now,
//! and the state tells the reader to start over. Nothing is retired, and readers are in no section.
//! The tables, one of each size, take less than twice the memory of the largest. The pages of a
//! large table that is not in use go back to the system.
//!
//! **[CM-I2] A hash has one bucket that is `HERE` and not locked, or one that is locked.** During a
//! move to another table each update first moves some buckets (`tables`): it locks a bucket, fills
//! the buckets of the other table to which its pairs go, marks these as `HERE`, and then the first
//! one as not `HERE`. A look-up that finds its bucket moved looks in the other table [CM-3]. A move
//! doubles or halves the table; there is one move at a time.
//!
//! **[CM-I3] No bucket has a state twice**, except after a lock that changed nothing. When a table
//! is used again, its buckets begin with a number above all that the table has had.
//!
//! **[CM-I4] Only the last node of a chain has room, and it has a pair.** A removal from an earlier
//! place moves a pair of the last node there; a last node that becomes empty is taken out.
//!
//! | file | what it is |
//! |---|---|
//! | `bucket` | a bucket: searches and changes under one state |
//! | `spare` | nodes that are in no chain |
//! | `tables` | tables, the way to a bucket, updates, moves |
//! | `map`, `iter`, `traits` | what users see |
//!
//! # Who waits for whom
//! - A look-up or update that finds its bucket locked waits for the holder: for some ten
//!   instructions, or for the move of one or two buckets. If the holder loses its CPU, all threads
//!   that want this bucket wait until it runs again; they yield their CPUs, and nap. Other buckets
//!   are free. A mover waits for no bucket: it leaves a locked one to the next round.
//! - A call that needs the end of a move (`reserve`, `extend`, `shrink_to`) waits for all buckets:
//!   for each thread that has one locked, or has moved one but not yet counted it, and for the
//!   thread that gives back the old table's memory. A mover allocates, and touches new memory for
//!   the first time, before it locks.
//! - A look-up that finds its bucket changed 64 times takes the lock for the time of a copy.
//! - An update that finds its bucket changed starts over. Another update has then succeeded, or a
//!   look-up or a mover had the lock for a moment. Updates have no order among each other.
//! - A thread that begins a move takes a mutex of the map, and so does one that needs or gives back
//!   a node; the allocator is called under these. No look-up takes one.
//!
//! # Cost
//! A look-up takes a hash, the table's address and mask, and one bucket; it writes nothing. An
//! update takes the same, one exchange, and stores to these one or two lines.
//!
//! Sources: a sequence lock (`sync/seq_lock`) for each bucket, as in MemC3 (Fan, Andersen,
//! Kaminsky, NSDI 2013) and CLHT (David, Guerraoui, Trigonakis, ASPLOS 2015); tags from SwissTable.
//! Memory that stays of one type while readers may access it is type-stable memory (Greenwald,
//! Cheriton, OSDI 1996).

mod bucket;
mod iter;
mod map;
mod spare;
mod tables;
mod traits;

#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(feature = "rayon")]
pub use self::iter::ParIter;
pub use self::{iter::Iter, map::CopyMap};
pub use super::hash_map::Operation;
