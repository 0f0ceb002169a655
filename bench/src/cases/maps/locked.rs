//! A hash table under a lock of whichever kind, or under several, each with a share of the keys.

use std::collections::hash_map::RandomState;
use std::mem;

use hashbrown::HashTable;

use super::{Hashes, Key, Map, Maps};
use crate::locks::{Boxed, Lock, Locks};

/// Where a thing of its own is under a lock for each share of the keys, or one for all.
pub(crate) trait Shares: Send + Sync + 'static {
    type Of;
    type Lock: Lock<Self::Of>;

    /// For so many keys, each with the thing that is made for so many of them.
    fn new(keys: usize, make: impl Fn(usize) -> Self::Of) -> Self;

    /// The lock of the keys of this hash. A table inside uses the highest and the lowest bits to
    /// find them: shares are chosen by others.
    fn of(&self, hash: u64) -> &Self::Lock;
}

/// One share.
pub(crate) struct One<L: Locks, T: Send + Sync + 'static>(L::Of<T>);

impl<L: Locks, T: Send + Sync + 'static> Shares for One<L, T> {
    type Of = T;
    type Lock = L::Of<T>;

    fn new(keys: usize, make: impl Fn(usize) -> T) -> Self {
        Self(Lock::new(make(keys)))
    }

    #[inline(always)]
    fn of(&self, _hash: u64) -> &L::Of<T> {
        &self.0
    }
}

/// The entries of a share.
pub(crate) trait Entries<K, V>: 'static {
    fn with_capacity(entries: usize) -> Self;
    fn find(&self, hash: u64, key: &K) -> Option<&V>;
    fn find_mut(&mut self, hash: u64, key: &K) -> Option<&mut V>;
    fn add(&mut self, hash: u64, entry: (K, V), hash_of: impl Fn(&K) -> u64);
    fn take(&mut self, hash: u64, key: &K) -> Option<(K, V)>;
}

impl<K: Key, V: 'static> Entries<K, V> for HashTable<(K, V)> {
    fn with_capacity(entries: usize) -> Self {
        Self::with_capacity(entries)
    }

    #[inline(always)]
    fn find(&self, hash: u64, key: &K) -> Option<&V> {
        self.find(hash, |(known, _)| known == key).map(|(_, value)| value)
    }

    #[inline(always)]
    fn find_mut(&mut self, hash: u64, key: &K) -> Option<&mut V> {
        self.find_mut(hash, |(known, _)| known == key).map(|(_, value)| value)
    }

    #[inline(always)]
    fn add(&mut self, hash: u64, entry: (K, V), hash_of: impl Fn(&K) -> u64) {
        self.insert_unique(hash, entry, |(key, _)| hash_of(key));
    }

    #[inline(always)]
    fn take(&mut self, hash: u64, key: &K) -> Option<(K, V)> {
        Some(self.find_entry(hash, |(known, _)| known == key).ok()?.remove().0)
    }
}

/// Entries in such shares. What is freed is freed when the lock is free again: no thread waits for
/// the allocator. Hashed before the lock is taken, too: the section is as short as it can be.
#[derive(Debug)]
pub(crate) struct LockedMap<S, H> {
    shares: S,
    hashes: H,
}

impl<L: Locks> Maps for Boxed<L> {
    type Own = RandomState;
    type Of<K: Key, H: Hashes> = LockedMap<One<L, HashTable<(K, u64)>>, H>;
}

impl<S: Shares, H: Hashes> LockedMap<S, H> {
    /// Gives a key another value, if it has one, which is returned.
    #[inline(always)]
    fn swap<K: Key, V>(&self, key: &K, value: V) -> Option<V>
    where
        S::Of: Entries<K, V>,
    {
        let hash = self.hashes.hash_one(key);
        let swap = |of: &mut S::Of| Some(mem::replace(of.find_mut(hash, key)?, value));
        self.shares.of(hash).write(swap)
    }

    /// Gives a key a value; the old one. It is as `own` makes it if it is new.
    #[inline(always)]
    fn set<K: Key, V>(&self, key: &K, value: V, own: impl FnOnce() -> K) -> Option<V>
    where
        S::Of: Entries<K, V>,
    {
        let hash = self.hashes.hash_one(key);
        self.shares.of(hash).write(|entries| {
            if let Some(known) = entries.find_mut(hash, key) {
                return Some(mem::replace(known, value));
            }
            entries.add(hash, (own(), value), |key| self.hashes.hash_one(key));
            None
        })
    }
}

impl<K: Key, V: Send + Sync + 'static, S: Shares<Of: Entries<K, V>>, H: Hashes> Map<K, V>
    for LockedMap<S, H>
{
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        Self { shares: S::new(entries, Entries::with_capacity), hashes: H::default() }
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<R>(&self, (): &mut (), key: &K, look: impl FnOnce(&V) -> R) -> Option<R> {
        let hash = self.hashes.hash_one(key);
        self.shares.of(hash).read(|entries| entries.find(hash, key).map(look))
    }

    /// Its key is allocated when the lock is free.
    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: V) -> bool {
        let own = key.clone();
        self.set(key, value, || own).is_none()
    }

    /// Its key is allocated if there is none.
    #[inline(always)]
    fn put(&self, (): &mut (), key: &K, value: V) -> bool {
        self.set(key, value, || key.clone()).is_some()
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
        self.shares.of(hash).write(|entries| entries.take(hash, key)).is_some()
    }
}
