//! Tables as a trait, and the index that keyed designs share.
//!
//! A design that protects objects, [`Replace`], gets a table with an object per key from
//! [`PerKey`], and one with an object for all from [`Whole`]; a map is one by [`OfMap`].

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use super::value::Value;
use crate::cases::maps::Map;
use crate::serve::Replace;

/// What a value is found by.
pub(crate) type Key = Box<[u8]>;

/// What is done with a value that was found.
pub(crate) trait Look<R>: FnOnce(&Value) -> R {}

impl<R, F: FnOnce(&Value) -> R> Look<R> for F {}

/// A table whose values are replaced, and whose keys may come and go.
pub(crate) trait Table: Send + Sync + 'static {
    /// Whether the key matters. If not, the loop does not touch the keys either.
    const KEYED: bool = true;
    /// What a thread holds while it works: a registration, mostly nothing.
    type Thread<'a>;

    fn new(entries: impl Iterator<Item = (Key, Value)>) -> Self;
    fn thread(&self) -> Self::Thread<'_>;

    /// Hands the value of `key` to `look`, inside the read-side section. Nothing if there is none.
    fn read<R>(&self, thread: &mut Self::Thread<'_>, key: &Key, look: impl Look<R>) -> Option<R>;

    /// Replaces the value of `key`, or inserts both; true if there was a value.
    fn put(&self, thread: &mut Self::Thread<'_>, key: &Key, value: Value) -> bool;

    /// Replaces the value of `key`, which is there.
    #[inline]
    fn update(&self, thread: &mut Self::Thread<'_>, key: &Key, value: Value) {
        self.put(thread, key, value);
    }

    /// Removes `key`; true if it was there.
    fn remove(&self, _thread: &mut Self::Thread<'_>, _key: &Key) -> bool {
        unreachable!("a table whose keys stay")
    }

    /// Called every few operations, outside every section.
    fn pause(&self, _thread: &mut Self::Thread<'_>) {}

    /// Frees some of what was replaced, if the design can be asked to.
    fn flush(&self) {}
}

/// A map as a table.
#[derive(Debug)]
pub(crate) struct OfMap<M>(M);

impl<M: Map<Key, Value>> Table for OfMap<M> {
    type Thread<'a> = M::Thread;

    fn new(entries: impl Iterator<Item = (Key, Value)>) -> Self {
        let map = M::with_capacity(entries.size_hint().0);
        let mut thread = map.thread();
        for (key, value) in entries {
            map.insert(&mut thread, &key, value);
        }
        Self(map)
    }

    fn thread(&self) -> M::Thread {
        self.0.thread()
    }

    #[inline]
    fn read<R>(&self, thread: &mut M::Thread, key: &Key, look: impl Look<R>) -> Option<R> {
        self.0.read(thread, key, look)
    }

    #[inline]
    fn put(&self, thread: &mut M::Thread, key: &Key, value: Value) -> bool {
        self.0.put(thread, key, value)
    }

    #[inline]
    fn update(&self, thread: &mut M::Thread, key: &Key, value: Value) {
        self.0.replace(thread, key, value);
    }

    #[inline]
    fn remove(&self, thread: &mut M::Thread, key: &Key) -> bool {
        self.0.remove(thread, key)
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// The hash function of all designs, so that none wins by its hash.
pub(crate) type Hash = FixedState;

/// The hash of a key, for the designs that do not bring a map of their own.
pub(super) fn hash(key: &Key) -> u64 {
    let mut hasher = Hash::default().build_hasher();
    // Without their number, which would take longer.
    hasher.write(key);
    hasher.finish()
}

/// What a key's slot is found in, which never changes.
pub(crate) trait Find<S>: FromIterator<(Key, S)> + Send + Sync + 'static {
    /// Whether the key matters.
    const KEYED: bool;

    fn find(&self, key: &Key) -> Option<&S>;
}

/// Key bytes to a slot.
pub(crate) type Index<S> = HashMap<Key, S, Hash>;

impl<S: Send + Sync + 'static> Find<S> for Index<S> {
    const KEYED: bool = true;

    #[inline]
    fn find(&self, key: &Key) -> Option<&S> {
        self.get(key)
    }
}

/// One slot for all keys.
#[derive(Debug)]
pub(crate) struct One<S>(S);

impl<S> FromIterator<(Key, S)> for One<S> {
    fn from_iter<I: IntoIterator<Item = (Key, S)>>(entries: I) -> Self {
        Self(entries.into_iter().next().expect("a config has one value").1)
    }
}

impl<S: Send + Sync + 'static> Find<S> for One<S> {
    const KEYED: bool = false;

    #[inline]
    fn find(&self, _key: &Key) -> Option<&S> {
        Some(&self.0)
    }
}

/// A table of places of a design that protects one value in its place.
pub(crate) struct Places<R: Replace, F> {
    // Before the scheme: values may need it while they are dropped.
    places: F,
    scheme: R,
}

/// A table with one place per key, behind an index that never changes.
pub(crate) type PerKey<R> = Places<R, Index<<R as Replace>::Place<Value>>>;

/// One place as a table in which every key finds the same value.
pub(crate) type Whole<R> = Places<R, One<<R as Replace>::Place<Value>>>;

impl<R: Replace, F: Find<R::Place<Value>>> Table for Places<R, F> {
    const KEYED: bool = F::KEYED;
    type Thread<'a> = R::Thread<'a>;

    fn new(entries: impl Iterator<Item = (Key, Value)>) -> Self {
        let scheme = R::default();
        let places = entries.map(|(key, value)| (key, scheme.place(value))).collect();
        Self { places, scheme }
    }

    fn thread(&self) -> R::Thread<'_> {
        self.scheme.thread()
    }

    #[inline]
    fn read<T>(&self, thread: &mut R::Thread<'_>, key: &Key, look: impl Look<T>) -> Option<T> {
        Some(self.scheme.read(thread, self.places.find(key)?, look))
    }

    #[inline]
    fn put(&self, thread: &mut R::Thread<'_>, key: &Key, value: Value) -> bool {
        let place = self.places.find(key).expect("only known keys are updated");
        self.scheme.replace(thread, place, value);
        true
    }

    #[inline]
    fn pause(&self, thread: &mut R::Thread<'_>) {
        R::pause(thread);
    }

    fn flush(&self) {
        self.scheme.flush();
    }
}
