//! A hash table under a lock of whichever kind, or under several, each with a share of the keys.

use std::collections::hash_map::RandomState;
use std::mem;

use hashbrown::HashTable;

use super::{Hashes, Key, Map, Maps};
use crate::locks::{Boxed, Lock, Locks};

/// Where a thing of its own is under a lock for each share of the keys, or one for all.
pub(crate) trait Shares<T>: Send + Sync + 'static {
    type Lock: Lock<T>;

    /// For so many keys, each with the thing that is made for so many of them.
    fn new(keys: usize, make: impl Fn(usize) -> T) -> Self;

    /// The lock of the keys of this hash. A table inside uses the highest and the lowest bits to
    /// find them: shares are chosen by others.
    fn of(&self, hash: u64) -> &Self::Lock;
}

/// One share.
#[derive(Debug)]
pub(crate) struct One<L>(L);

impl<T, L: Lock<T>> Shares<T> for One<L> {
    type Lock = L;

    fn new(keys: usize, make: impl Fn(usize) -> T) -> Self {
        Self(L::new(make(keys)))
    }

    #[inline(always)]
    fn of(&self, _hash: u64) -> &L {
        &self.0
    }
}

/// Tables in such shares. What is freed is freed when the lock is free again, and a key is
/// allocated before: no thread waits for the allocator. Hashed before the lock is taken, too: the
/// section is as short as it can be.
#[derive(Debug)]
pub(crate) struct LockedMap<S, H> {
    shares: S,
    hashes: H,
}

impl<L: Locks> Maps for Boxed<L> {
    type Own = RandomState;
    type Of<K: Key, H: Hashes> = LockedMap<One<L::Of<HashTable<(K, u64)>>>, H>;
}

impl<S, H: Hashes> LockedMap<S, H> {
    /// Gives a key another value, if it has one, which is returned.
    #[inline(always)]
    fn swap<K: Key, V: 'static>(&self, key: &K, value: V) -> Option<V>
    where
        S: Shares<HashTable<(K, V)>>,
    {
        let hash = self.hashes.hash_one(key);
        self.shares.of(hash).write(|table| {
            let (_, known) = table.find_mut(hash, |(known, _)| known == key)?;
            Some(mem::replace(known, value))
        })
    }
}

impl<K: Key, V: Send + Sync + 'static, S: Shares<HashTable<(K, V)>>, H: Hashes> Map<K, V>
    for LockedMap<S, H>
{
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        Self { shares: S::new(entries, HashTable::with_capacity), hashes: H::default() }
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<R>(&self, (): &mut (), key: &K, look: impl FnOnce(&V) -> R) -> Option<R> {
        let hash = self.hashes.hash_one(key);
        let find = |table: &HashTable<(K, V)>| {
            table.find(hash, |(known, _)| known == key).map(|(_, value)| look(value))
        };
        self.shares.of(hash).read(find)
    }

    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: V) -> bool {
        let (hash, entry) = (self.hashes.hash_one(key), (key.clone(), value));
        let old = self.shares.of(hash).write(|table| {
            if let Some(known) = table.find_mut(hash, |(known, _)| known == key) {
                return Some(mem::replace(known, entry));
            }
            table.insert_unique(hash, entry, |(key, _)| self.hashes.hash_one(key));
            None
        });
        old.is_none()
    }

    #[inline(always)]
    fn update(&self, (): &mut (), key: &K, value: V) -> bool {
        self.swap(key, value).is_some()
    }

    #[inline(always)]
    fn replace(&self, (): &mut (), key: &K, value: V) {
        self.swap(key, value);
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &K) -> bool {
        let hash = self.hashes.hash_one(key);
        let old = self.shares.of(hash).write(|table| {
            let entry = table.find_entry(hash, |(known, _)| known == key).ok()?;
            Some(entry.remove().0)
        });
        old.is_some()
    }
}
