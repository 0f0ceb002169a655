//! Concurrent collections, without unsafe code for their users.
//!
//! - [`HashMap`], [`HashSet`]: look-ups without a lock; an updater locks one bucket for a moment.
//! - [`CopyMap`]: small pairs; a look-up returns a copy, and nothing waits to be freed.
//! - [`IdMap`]: maps ids to objects; an id of a removed object finds nothing.
//! - [`List`]: readers traverse it without a lock while one updater at a time changes it at a
//!   cursor.
//! - [`Queue`], [`Stack`]: lock-free, for any number of threads that push and pop.
//!
//! Readers of maps and lists are in sections of a domain. Removed values are freed after a grace
//! period, within the domain's limit. Structures built of the caller's own nodes are in
//! [`intrusive`].

// `wait_free_queue`, `sentinel_queue`, `lock_free_queue`: queues. `wait_free_stack`,
// `lock_free_stack`: stacks. `hash_table`: the hash table, which grows and shrinks beside its
// users. `lines`, `tags`, `parts`: memory of tables, words of tags, and iterators for rayon, of the
// maps. `impls`, `serialized`: what collections implement alike, of the standard library's traits
// and of serde's. `patience`: how long an operation waits for another one that is half-way.
// `valued`: a node with a value that is the structure's own.
//
// May import: the rooms from `os` to `sync`.

pub mod copy_map;
pub mod hash_map;
pub mod id_map;
#[cfg(feature = "intrusive")]
pub mod intrusive;
pub mod list;
pub mod queue;
pub mod stack;

mod impls;
mod lines;
mod moving;
#[cfg(feature = "rayon")]
mod parts;
mod patience;
#[cfg(feature = "serde")]
mod serialized;
mod tags;
#[cfg(feature = "intrusive")]
mod wait_free_queue;
#[cfg(feature = "intrusive")]
mod sentinel_queue;
mod wait_free_stack;
mod lock_free_stack;
mod lock_free_queue;
#[cfg(feature = "intrusive")]
mod hash_table;
mod valued;

#[cfg(all(test, loom))]
mod loom_tests;

/// A collection whose values come in by a shared reference is invariant: else a value of one type
/// could be taken out as one of another.
///
/// ```compile_fail
/// # use quiescence::collections::HashMap;
/// fn other(map: &HashMap<u8, fn(&'static str)>) -> &HashMap<u8, for<'a> fn(&'a str)> { map }
/// ```
/// ```compile_fail
/// # use quiescence::collections::HashMap;
/// type Any = HashMap<u8, for<'a> fn(&'a str)>;
/// fn other<'m>(map: &'m Any) -> &'m HashMap<u8, fn(&'static str)> { map }
/// ```
/// ```compile_fail
/// # use quiescence::collections::IdMap;
/// fn other(map: &IdMap<fn(&'static str)>) -> &IdMap<for<'a> fn(&'a str)> { map }
/// ```
/// ```compile_fail
/// # use quiescence::collections::IdMap;
/// fn other<'m>(map: &'m IdMap<for<'a> fn(&'a str)>) -> &'m IdMap<fn(&'static str)> { map }
/// ```
/// ```compile_fail
/// # use quiescence::collections::List;
/// fn other<'m>(list: &'m List<for<'a> fn(&'a str)>) -> &'m List<fn(&'static str)> { list }
/// ```
/// ```compile_fail
/// # use quiescence::collections::Queue;
/// fn other<'m>(queue: &'m Queue<for<'a> fn(&'a str)>) -> &'m Queue<fn(&'static str)> { queue }
/// ```
/// ```compile_fail
/// # use quiescence::collections::Stack;
/// fn other<'m>(stack: &'m Stack<for<'a> fn(&'a str)>) -> &'m Stack<fn(&'static str)> { stack }
/// ```
#[cfg(doctest)]
#[derive(Debug)]
pub struct Invariance;

pub use self::{
    copy_map::CopyMap,
    hash_map::{HashMap, HashSet},
    id_map::IdMap,
    list::List,
    queue::Queue,
    stack::Stack,
};

pub use self::id_map::{Id, Mark};

use crate::domain::tag::DomainTag;
use crate::reclaim::weigh::owns;

owns! {
    /// Values are weighed when they are removed or replaced.
    [V: Send + Sync + 'static, D: DomainTag] IdMap<V, D>, false;
    [] Id, false;
    [] Mark, false;
}
