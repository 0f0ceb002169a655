//! A reader-writer lock for each share of the keys, chosen by the hash.

use std::mem;
use std::sync::{PoisonError, RwLock};
use std::thread;

use super::{About, Family, Rival};
use crate::advise::{Index, Table, Value, hash};

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("sharded-rwlock").about(&ABOUT).table::<Sharded>()];

const ABOUT: About = About {
    family: Family::ShardedLock,
    idea: "the keys are spread over reader-writer locks, several for each CPU",
    reader_cost: "two locked instructions, on a line that only readers of the same shard write",
    limits: "a few hot keys: their shard is one lock again; nothing is consistent across shards",
};

/// Several shards for each CPU, so that two threads seldom meet in one.
const SHARDS_PER_CPU: usize = 8;

/// Two cache lines, since CPUs fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Shard(RwLock<Index<Value>>);

/// As many shards as a power of two.
#[derive(Debug)]
struct Sharded {
    shards: Box<[Shard]>,
}

/// The shard of a hash. The index inside the shard uses the highest and the lowest bits: take
/// others.
fn number(hash: u64, shards: usize) -> usize {
    (hash >> 32) as usize & (shards - 1)
}

impl Table for Sharded {
    type Thread<'a> = ();

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let count = (cpus * SHARDS_PER_CPU).next_power_of_two();
        let mut shards: Vec<Vec<_>> = Vec::new();
        shards.resize_with(count, Vec::new);
        for (key, value) in entries {
            shards[number(hash(&key), count)].push((key, value));
        }
        let shards = shards.into_iter().map(|entries| Index::new(entries.into_iter()));
        Self { shards: shards.map(|index| Shard(RwLock::new(index))).collect() }
    }

    fn thread(&self) {}

    #[inline]
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl FnOnce(&Value) -> R) -> Option<R> {
        let hash = hash(key);
        let Shard(lock) = &self.shards[number(hash, self.shards.len())];
        lock.read().unwrap_or_else(PoisonError::into_inner).get(hash, key).map(look)
    }

    #[inline]
    fn update(&self, _thread: &mut (), key: &[u8], value: Value) {
        let hash = hash(key);
        let Shard(lock) = &self.shards[number(hash, self.shards.len())];
        let old = lock
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(hash, key)
            .map(|slot| mem::replace(slot, value));
        // The lock is free again: no thread waits for the allocator.
        drop(old);
    }
}
