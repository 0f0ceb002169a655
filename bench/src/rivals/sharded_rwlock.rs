//! A reader-writer lock for each share of the keys, chosen by the hash.

use std::collections::hash_map::RandomState;
use std::sync::RwLock;
use std::thread;

use crossbeam_utils::CachePadded;
use hashbrown::HashTable;

use super::Rival;
use crate::cases::maps::Fast;
use crate::cases::maps::locked::{LockedMap, Shares};
use crate::shapes;

pub(super) const RIVALS: &[Rival] = &[Rival::new("sharded-rwlock")
    .table::<Sharded<Box<[u8]>, shapes::Value, shapes::Hash>>()
    .maps::<Sharded<u64, u64, Fast>, Sharded<u64, u64>, Sharded<String, u64, Fast>>()];

type Sharded<K, V, S = RandomState> = LockedMap<Shards<HashTable<(K, V)>>, S>;

/// Several shards for each CPU, so that two threads seldom meet in one.
const SHARDS_PER_CPU: usize = 8;

/// As many shards as a power of two.
pub(super) struct Shards<T>(Box<[CachePadded<RwLock<T>>]>);

impl<T: Send + Sync + 'static> Shares<T> for Shards<T> {
    type Lock = RwLock<T>;

    fn new(keys: usize, make: impl Fn(usize) -> T) -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let count = (cpus * SHARDS_PER_CPU).next_power_of_two();
        let shard = |_| CachePadded::new(RwLock::new(make(keys.div_ceil(count))));
        Self((0..count).map(shard).collect())
    }

    #[inline(always)]
    fn of(&self, hash: u64) -> &RwLock<T> {
        &self.0[(hash >> 32) as usize & (self.0.len() - 1)]
    }
}
