//! A concurrent hash map, and a set: [`HashMap`], [`HashSet`].
//!
//! # Design
//! A look-up in a large map costs its cache misses, and the section around it next to nothing. So
//! a bucket is one or two cache lines side by side, which have all that a look-up needs: a word
//! with a tag for each slot, and slots with key and value, or pointers to them (`entry`).
//! Updaters lock one bucket, by a bit of that word (`bucket`). An update is one store of the
//! word: for all readers at one moment. What a bucket has no slot for is in an overflow node
//! (`node`): nothing is waited for, and no bucket takes entries of another one. A map grows while
//! it is used: each update moves a few buckets to the next table (`growth`).
//!
//! ```text
//! word: tag tag dead tag 0 0 tag | flags     over: cookie, or node
//! slots: [key value] [key value] ...
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `collections/tags` | the word of a bucket |
//! | `entry` | entries in slots, and entries in boxes |
//! | `formed` | pointers to what has slots |
//! | `node` | overflow nodes |
//! | `bucket` | a bucket, and all changes of one; the invariants |
//! | `table` | tables |
//! | `known` | what an update learns of entries before it locks their bucket |
//! | `search` | a look-up |
//! | `growth` | from one table to the next |
//! | `walk` | iteration |
//! | `map`, `update`, `bulk`, `builder`, `view`, `compute`, `traits`, `parallel` | what users see |
//! | `set` | a map without values |
//! | `garbage` | what an update leaves, retired |
//!
//! Sources: tags that are compared at once, from SwissTable (Kulukundis, CppCon 2017); buckets of
//! cache lines whose updaters lock them and whose readers do not, from CLHT (David, Guerraoui,
//! Trigonakis, ASPLOS 2015) and MemC3 (Fan, Andersen, Kaminsky, NSDI 2013); moving by updaters in
//! steps, from Click's non-blocking hash map (2007). That a slot waits for a grace period, and not
//! an object, is ours.

mod bucket;
mod entry;
mod formed;
mod growth;
mod known;
mod node;
mod search;
mod table;
mod walk;

pub(super) use self::known::is_key;

#[cfg(all(test, loom))]
mod loom_tests;

mod builder;
mod bulk;
mod compute;
mod garbage;
mod map;
#[cfg(feature = "rayon")]
mod parallel;
mod set;
mod traits;
mod update;
mod view;

#[cfg(feature = "rayon")]
pub use self::parallel::ParIter;
pub use self::{
    builder::Builder,
    compute::{Compute, Operation},
    map::HashMap,
    set::{Elements, HashSet, HashSetRef},
    view::{HashMapRef, Iter},
};
