//! A concurrent map of small `Copy` pairs, read by copying: [`CopyMap`].
//!
//! # Design
//! A bucket is a cache line or two: a *state*, which is a sequence number with two flags, a word of
//! tags, and pairs. An update searches the bucket, decides, and then takes it by one exchange of
//! the state that it has searched under: that locks it, and shows that nothing has changed. So no
//! user code runs under a lock, and none is waited for. A reader copies a pair between two looks at
//! the state, and compares keys, or takes the value, only when it knows that the copy is whole.
//!
//! ```text
//! bucket: state   tags   over   pair pair ...          over: the next bucket of a chain, or null
//! state:  number | HERE | LOCKED                       0: nobody has been here
//!
//!   update                                             look-up
//!   state = the table's root or next (Acquire) [CM-1]  state = the same, HERE and not LOCKED
//!   tags, pairs, over (Relaxed), as a look-up          tags, a pair (Relaxed)
//!   state |= LOCKED, if it is that; fence (Release)    fence (Acquire)
//!   pairs, tags (Relaxed)                      [CM-2]  state as it was? else again
//!   state = the next number (Release)          [CM-1]  compare the key, take the value
//! ```
//!
//! **[CM-I1] The memory of tables and nodes is a map's until it is dropped.** A table that entries
//! have left is kept for the next time that the map has its size, and so are overflow buckets
//! (*nodes*). So a reader that comes late reads memory of this map, whatever that is used for now,
//! and the state tells it to begin again. Nothing is retired, and readers are in no section. The
//! tables, one of each size, are together less than twice the largest. The pages of one that is
//! left go back to the system, if it is large.
//!
//! **[CM-I2] A hash has one bucket that is `HERE` and not locked, or one that is locked.** An
//! update that finds a move of the table going on moves some buckets first (`tables`): locks one,
//! fills those of the other table that its pairs go to, says of these that they are here, and then
//! of the first that it is not. A look-up that finds its bucket gone looks for it in the other
//! table [CM-3]. A table grows by doublings, and shrinks by halves, at one move at a time.
//!
//! **[CM-I3] No bucket has a state twice**, but for a lock that changed nothing. When a bucket
//! comes back in a table that was left, it begins with a number above all that the table has had.
//!
//! **[CM-I4] Only the last node of a chain has room, and it has a pair.** What is removed before
//! that is replaced by a pair of the last node; one that is empty then is taken out.
//!
//! | file | what it is |
//! |---|---|
//! | `bucket` | a bucket: what is searched and changed under one state |
//! | `spare` | nodes that are in no chain |
//! | `tables` | tables, the way to a bucket, updates, moves |
//! | `map`, `iter`, `traits` | what users see |
//!
//! # Who waits for whom
//! - A look-up or update that finds its bucket locked waits for the thread that holds it, some ten
//!   instructions, or the moving of one bucket or two. If that thread loses its CPU, all of this
//!   bucket wait until it runs again: they give their CPUs away, and nap; other buckets are free. A
//!   mover waits for no bucket: it leaves one that is locked to the next round.
//! - Who wants the end of a move (`reserve`, `extend`, `shrink_to`) waits for all buckets: for each
//!   thread that has one locked, or has moved it and not counted that yet, and for who gives back
//!   the memory of the old table. What needs the allocator, or the first touch of memory, is done
//!   before the locks of a mover.
//! - A look-up that finds its bucket changed 64 times takes the lock, for the time of a copy.
//! - An update that finds its bucket changed begins again. Another update has succeeded then, or a
//!   look-up or a mover had the lock for a moment. There is no order among them.
//! - What begins a move takes a mutex of the map, and so does what needs a node, or gives one
//!   back; the allocator is called under them. No look-up takes one.
//!
//! # Cost
//! A look-up: a hash, the table's address and mask, one bucket. It writes nothing. An update is
//! that, one exchange, and stores to the same one or two lines.
//!
//! Sources: the sequence lock of a cell (`sync/seq_lock`), for each bucket, as in MemC3 (Fan,
//! Andersen, Kaminsky, NSDI 2013) and the buckets of CLHT (David, Guerraoui, Trigonakis, ASPLOS
//! 2015); tags from SwissTable. That memory is kept for its type, and not freed beside readers, is
//! the old idea of type-stable memory (Greenwald, Cheriton, OSDI 1996).

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
