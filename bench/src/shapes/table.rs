//! The index that keyed designs share.
//!
//! A table is a [`Map`]. A design that protects objects, [`Replace`], gets one with an object per
//! key from [`PerKey`], and one with an object for all from [`Whole`].

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use super::value::Value;
use crate::cases::maps::Map;
use crate::serve::Replace;

/// What a value is found by.
pub(crate) type Key = Box<[u8]>;

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

impl<R: Replace, F: Find<R::Place<Value>>> Map<Key, Value> for Places<R, F> {
    const KEYED: bool = F::KEYED;
    type Thread = R::Thread;

    fn of(entries: impl Iterator<Item = (Key, Value)>) -> Self {
        let scheme = R::default();
        let places = entries.map(|(key, value)| (key, scheme.place(value))).collect();
        Self { places, scheme }
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
        Some(self.scheme.read(thread, self.places.find(key)?, look))
    }

    #[inline]
    fn put(&self, thread: &mut R::Thread, key: &Key, value: Value) -> bool {
        let place = self.places.find(key).expect("only known keys are updated");
        self.scheme.replace(thread, place, value);
        true
    }

    #[inline]
    fn pause(thread: &mut R::Thread) {
        R::pause(thread);
    }

    fn flush(&self) {
        self.scheme.flush();
    }
}
