//! A table of buckets, for the designs that protect one value in its place.
//!
//! Such a design has no index of its own. While the keys stay, a fixed one does
//! ([`PerKey`](super::PerKey)), and finding a key costs no synchronisation. Where keys come and go
//! this is the index it pays for: as many buckets as there were keys, each a place of the design's
//! with a short list of entries. Updaters lock the bucket, copy its list with the change, and
//! replace it; readers see the list from before or from after. The number of buckets stays.

use std::sync::{Arc, Mutex, PoisonError};

use super::table::{Key, hash};
use super::value::Value;
use crate::cases::maps::Map;
use crate::serve::Replace;

/// A key and its value, which the lists of before and after have in common.
type Entry = (Key, Arc<Value>);

/// The entries of a bucket. It never changes.
#[derive(Default)]
struct List(Vec<Entry>);

impl quiescence::Weigh for List {
    /// A list gives up at most one value; the others are in the list that follows it.
    fn owned(&self) -> usize {
        self.0.capacity() * size_of::<Entry>()
            + self.0.first().map_or(0, |(key, value)| key.len() + value.as_ref().owned())
    }
}

impl List {
    fn get(&self, key: &Key) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| &**value)
    }

    /// A copy without this key, and whether it was there.
    fn without(&self, key: &Key, room: usize) -> (Vec<Entry>, bool) {
        let mut rest = Vec::with_capacity(self.0.len() + room);
        rest.extend(self.0.iter().filter(|(known, _)| known != key).cloned());
        let was_there = rest.len() < self.0.len();
        (rest, was_there)
    }
}

/// A bucket: its list, and the lock that updaters take.
struct Bucket<R: Replace> {
    list: R::Place<List>,
    updates: Mutex<()>,
}

/// The table.
pub(crate) struct Buckets<R: Replace> {
    // Before the scheme: places may need it while they are dropped.
    buckets: Box<[Bucket<R>]>,
    scheme: R,
}

impl<R: Replace> Buckets<R> {
    #[inline]
    fn bucket(&self, key: &Key) -> &Bucket<R> {
        &self.buckets[hash(key) as usize & (self.buckets.len() - 1)]
    }

    /// Replaces the list of a bucket by the one that `change` makes of it.
    #[inline]
    fn edit(
        &self,
        thread: &mut R::Thread,
        key: &Key,
        change: impl FnOnce(&List) -> (Vec<Entry>, bool),
    ) -> bool {
        let bucket = self.bucket(key);
        let _alone = bucket.updates.lock().unwrap_or_else(PoisonError::into_inner);
        let (entries, was_there) = self.scheme.read(thread, &bucket.list, change);
        self.scheme.replace(thread, &bucket.list, List(entries));
        was_there
    }
}

impl<R: Replace> Map<Key, Value> for Buckets<R> {
    type Thread = R::Thread;

    fn of(entries: impl Iterator<Item = (Key, Value)>) -> Self {
        let entries: Vec<_> = entries.collect();
        let count = entries.len().max(1).next_power_of_two();
        let mut lists: Vec<List> = Vec::new();
        lists.resize_with(count, List::default);
        for (key, value) in entries {
            lists[hash(&key) as usize & (count - 1)].0.push((key, Arc::new(value)));
        }
        let scheme = R::default();
        let bucket = |list| Bucket { list: scheme.place(list), updates: Mutex::new(()) };
        Self { buckets: lists.into_iter().map(bucket).collect(), scheme }
    }

    fn thread(&self) -> R::Thread {
        self.scheme.thread()
    }

    #[inline]
    fn read<T>(
        &self,
        thread: &mut R::Thread,
        key: &Key,
        look: impl FnOnce(&Value) -> T,
    ) -> Option<T> {
        self.scheme.read(thread, &self.bucket(key).list, |list| list.get(key).map(look))
    }

    #[inline]
    fn put(&self, thread: &mut R::Thread, key: &Key, value: Value) -> bool {
        let value = Arc::new(value);
        self.edit(thread, key, |list| {
            let (mut entries, was_there) = list.without(key, 1);
            entries.push((key.clone(), value));
            (entries, was_there)
        })
    }

    #[inline]
    fn remove(&self, thread: &mut R::Thread, key: &Key) -> bool {
        self.edit(thread, key, |list| list.without(key, 0))
    }

    #[inline]
    fn pause(thread: &mut R::Thread) {
        R::pause(thread);
    }

    fn flush(&self) {
        self.scheme.flush();
    }
}
