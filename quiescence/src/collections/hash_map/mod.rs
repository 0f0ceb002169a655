//! A concurrent hash map, and a set: [`HashMap`], [`HashSet`].
//!
//! # Design
//! The cost of a look-up in a large map is its cache misses; the section costs next to nothing. So
//! a bucket is one cache line: a word with a tag for each slot, and slots, which point to boxes of
//! key and value (`slot`). A look-up has two misses, and very rarely one for another key's box.
//! Updaters lock one bucket by a bit of that word (`bucket`). An update is one store to a slot, so
//! all readers see it at one moment. Entries for which a bucket has no slot are in an overflow node
//! (`node`), so an insertion waits for nothing, and no bucket takes entries of another one. A map
//! grows while it is used: each update moves a few buckets to the next table (`growth`).
//!
//! ```text
//! word: 0 tag tag 0 0 tag tag | flags     over: null, or node
//! slots: box box null null box box
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `collections/tags` | the word of a bucket |
//! | `slot` | slots, which point to entries |
//! | `headed` | pointers to tables and nodes |
//! | `node` | overflow nodes |
//! | `bucket` | a bucket and all changes to it; the invariants |
//! | `table` | tables |
//! | `search` | a look-up, and what an update learns before it locks a bucket |
//! | `growth` | from one table to the next |
//! | `walk` | iteration |
//! | `map`, `update`, `bulk`, `builder`, `view`, `compute`, `traits`, `parallel` | what users see |
//! | `set` | a map without values |
//! | `garbage` | retires what an update takes out |
//! | `handed_on` | keys that stay while their values are replaced |
//!
//! Sources: tags that are compared all at once, from SwissTable (Kulukundis, CppCon 2017);
//! cache-line buckets that updaters lock and readers do not, from CLHT (David, Guerraoui,
//! Trigonakis, ASPLOS 2015) and MemC3 (Fan, Andersen, Kaminsky, NSDI 2013); updaters that move
//! entries in steps, from Click's non-blocking hash map (2007).

mod bucket;
mod growth;
mod handed_on;
mod headed;
mod node;
mod search;
mod slot;
mod table;
mod walk;

pub(super) use self::search::is_key;

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
