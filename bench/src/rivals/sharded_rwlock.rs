//! A reader-writer lock for each share of the keys, chosen by the hash.

use std::collections::hash_map::RandomState;
use std::sync::RwLock;
use std::thread;

use crossbeam_utils::CachePadded;
use hashbrown::HashTable;

use super::Rival;
use crate::cases::maps::{Hashes, Key, Map, Maps};
use crate::locks::Lock;
use crate::shapes::{Index, Look, Table, Value, hash};

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("sharded-rwlock").table::<Sharded<Index<Value>>>().maps::<InShards>()];

/// Several shards for each CPU, so that two threads seldom meet in one.
const SHARDS_PER_CPU: usize = 8;

/// As many shards as a power of two.
#[derive(Debug)]
struct Sharded<T> {
    shards: Box<[CachePadded<RwLock<T>>]>,
}

/// The shard of a hash. The index inside the shard uses the highest and the lowest bits: take
/// others.
fn number(hash: u64, shards: usize) -> usize {
    (hash >> 32) as usize & (shards - 1)
}

/// How many shards there are.
fn count() -> usize {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    (cpus * SHARDS_PER_CPU).next_power_of_two()
}

impl<T: Send + Sync + 'static> Sharded<T> {
    fn lock(&self, hash: u64) -> &RwLock<T> {
        &self.shards[number(hash, self.shards.len())]
    }

    #[inline]
    fn read<R>(&self, hash: u64, look: impl FnOnce(&T) -> R) -> R {
        Lock::read(self.lock(hash), look)
    }

    #[inline]
    fn write<R>(&self, hash: u64, change: impl FnOnce(&mut T) -> R) -> R {
        Lock::write(self.lock(hash), change)
    }
}

impl Table for Sharded<Index<Value>> {
    type Thread<'a> = ();

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        let count = count();
        let mut shards: Vec<Vec<_>> = Vec::new();
        shards.resize_with(count, Vec::new);
        for (key, value) in entries {
            shards[number(hash(&key), count)].push((key, value));
        }
        let shards = shards.into_iter().map(|entries| Index::new(entries.into_iter()));
        Self { shards: shards.map(|index| CachePadded::new(RwLock::new(index))).collect() }
    }

    fn thread(&self) {}

    #[inline]
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl Look<R>) -> Option<R> {
        let hash = hash(key);
        self.read(hash, |index| index.get(hash, key).map(look))
    }

    #[inline]
    fn put(&self, _thread: &mut (), key: &[u8], value: Value) -> bool {
        let hash = hash(key);
        // The old value is freed when the lock is free again: no thread waits for the allocator.
        self.write(hash, |index| index.put(hash, key, value)).is_some()
    }

    #[inline]
    fn remove(&self, _thread: &mut (), key: &[u8]) -> bool {
        let hash = hash(key);
        self.write(hash, |index| index.remove(hash, key)).is_some()
    }
}

struct InShards;

impl Maps for InShards {
    type Own = RandomState;
    type Of<K: Key, S: Hashes> = Hashed<K, S>;
}

/// Shards of a table that is found, and searched, by one hash.
struct Hashed<K, S> {
    shards: Sharded<HashTable<(K, u64)>>,
    hashes: S,
}

impl<K: Key, S: Hashes> Map<K> for Hashed<K, S> {
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        let count = count();
        let table = |_| HashTable::with_capacity(entries.div_ceil(count));
        let shards =
            (0..count).map(table).map(|table| CachePadded::new(RwLock::new(table))).collect();
        Self { shards: Sharded { shards }, hashes: S::default() }
    }

    fn thread(&self) {}

    #[inline(always)]
    fn get(&self, (): &mut (), key: &K) -> Option<u64> {
        let hash = self.hashes.hash_one(key);
        self.shards.read(hash, |table| table.find(hash, |(k, _)| k == key).map(|(_, v)| *v))
    }

    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: u64) -> bool {
        let hash = self.hashes.hash_one(key);
        let new = key.clone();
        self.shards.write(hash, |table| match table.find_mut(hash, |(k, _)| k == key) {
            Some((_, slot)) => {
                *slot = value;
                false
            }
            None => {
                table.insert_unique(hash, (new, value), |(k, _)| self.hashes.hash_one(k));
                true
            }
        })
    }

    #[inline(always)]
    fn update(&self, (): &mut (), key: &K, value: u64) -> bool {
        let hash = self.hashes.hash_one(key);
        let replace = |(_, slot): &mut (K, u64)| *slot = value;
        self.shards.write(hash, |t| t.find_mut(hash, |(k, _)| k == key).map(replace)).is_some()
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &K) -> bool {
        let hash = self.hashes.hash_one(key);
        let removed = self.shards.write(hash, |table| {
            let entry = table.find_entry(hash, |(k, _)| k == key).ok()?;
            Some(entry.remove().0)
        });
        removed.is_some()
    }
}
