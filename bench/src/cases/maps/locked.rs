//! A hash table under a lock of whichever kind, or under several, each with a share of the keys.

use std::collections::hash_map::RandomState;
use std::mem;

use hashbrown::HashTable;

use super::{Hashes, Key, Map};
use crate::locks::{Lock, Locks};

/// Entries by the hashes of their keys.
type Entries<K, V> = HashTable<(K, V)>;

/// Where entries are under a lock for each share of the keys, or one for all.
pub(crate) trait Shares<T>: Send + Sync + 'static {
    type Lock: Lock<T>;

    /// For so many keys, each with the thing that is made for so many of them.
    fn new(keys: usize, make: impl Fn(usize) -> T) -> Self;

    /// The lock of the keys of this hash. A table inside uses the highest and the lowest bits to
    /// find them: shares are chosen by others.
    fn of(&self, hash: u64) -> &Self::Lock;
}

/// One share.
pub(crate) struct One<L: Locks, T: Send + Sync + 'static>(L::Of<T>);

impl<L: Locks, T: Send + Sync + 'static> Shares<T> for One<L, T> {
    type Lock = L::Of<T>;

    fn new(keys: usize, make: impl Fn(usize) -> T) -> Self {
        Self(Lock::new(make(keys)))
    }

    #[inline(always)]
    fn of(&self, _hash: u64) -> &L::Of<T> {
        &self.0
    }
}

/// Whether it is the entry of this key.
#[inline(always)]
fn is_of<K: Key, V>(key: &K) -> impl Fn(&(K, V)) -> bool {
    move |(known, _)| known == key
}

/// Entries in such shares. What is freed is freed when the lock is free again: no thread waits for
/// the allocator. Hashed before the lock is taken, too: the section is as short as it can be.
pub(crate) struct LockedMap<S, H> {
    shares: S,
    hashes: H,
}

/// Under one lock of this kind.
pub(crate) type OneLock<L, K, H = RandomState, V = u64> = LockedMap<One<L, Entries<K, V>>, H>;

impl<S, H: Hashes> LockedMap<S, H> {
    /// Gives a key a value; the old one. It is as `own` makes it if it is new.
    #[inline(always)]
    fn set<K: Key, V>(&self, key: &K, value: V, own: impl FnOnce() -> K) -> Option<V>
    where
        S: Shares<Entries<K, V>>,
    {
        let hash = self.hashes.hash_one(key);
        self.shares.of(hash).write(|entries| {
            if let Some((_, known)) = entries.find_mut(hash, is_of(key)) {
                return Some(mem::replace(known, value));
            }
            entries.insert_unique(hash, (own(), value), |(key, _)| self.hashes.hash_one(key));
            None
        })
    }
}

impl<K: Key, V: Send + Sync + 'static, S: Shares<Entries<K, V>>, H: Hashes> Map<K, V>
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
        let find =
            |entries: &Entries<K, V>| entries.find(hash, is_of(key)).map(|(_, value)| look(value));
        self.shares.of(hash).read(find)
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
        let hash = self.hashes.hash_one(key);
        let swap = |entries: &mut Entries<K, V>| {
            let (_, known) = entries.find_mut(hash, is_of(key))?;
            Some(mem::replace(known, value))
        };
        self.shares.of(hash).write(swap).is_some()
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &K) -> bool {
        let hash = self.hashes.hash_one(key);
        let take = |entries: &mut Entries<K, V>| {
            Some(entries.find_entry(hash, is_of(key)).ok()?.remove().0)
        };
        self.shares.of(hash).write(take).is_some()
    }
}
