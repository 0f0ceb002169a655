//! Tables and single values as traits, and the index that keyed designs share.
//!
//! A design implements [`Config`], one value that is replaced, and gets a table with one such
//! value per key from [`PerKey`]; or it implements [`Table`] itself, when one lock or one map
//! holds all keys. The timed loop knows [`Table`] only: [`Whole`] shows it a [`Config`] as a table
//! in which every key finds the same value.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::value::Value;
use crate::serve::Replace;

/// One shared value, read by all and now and then replaced.
pub(crate) trait Config: Send + Sync + 'static {
    /// What all values of a design share: a collector, mostly nothing.
    type Domain: Send + Sync;
    /// What a thread holds while it works: a registration, mostly nothing.
    type Thread<'a>;

    fn domain() -> Self::Domain;
    fn new(domain: &Self::Domain, value: Value) -> Self;
    fn thread(domain: &Self::Domain) -> Self::Thread<'_>;

    /// Hands the current value to `look`, inside the read-side section.
    fn read<R>(
        &self,
        domain: &Self::Domain,
        thread: &mut Self::Thread<'_>,
        look: impl FnOnce(&Value) -> R,
    ) -> R;

    /// Replaces the value. The old one is freed when the design says so.
    fn update(&self, domain: &Self::Domain, thread: &mut Self::Thread<'_>, value: Value);

    /// Called every few operations, outside every section.
    fn pause(_thread: &mut Self::Thread<'_>) {}

    /// Frees some of what was replaced, if the design can be asked to.
    fn flush(_domain: &Self::Domain) {}
}

/// The place of a design that protects objects: its domain is the design itself.
#[derive(Debug)]
pub(crate) struct Placed<R: Replace>(R::Place<Value>);

impl<R: Replace> Config for Placed<R> {
    type Domain = R;
    type Thread<'a> = R::Thread<'a>;

    fn domain() -> R {
        R::new()
    }

    fn new(domain: &R, value: Value) -> Self {
        Self(domain.place(value))
    }

    fn thread(domain: &R) -> R::Thread<'_> {
        domain.thread()
    }

    #[inline]
    fn read<T>(&self, domain: &R, thread: &mut R::Thread<'_>, look: impl FnOnce(&Value) -> T) -> T {
        domain.read(thread, &self.0, look)
    }

    #[inline]
    fn update(&self, domain: &R, thread: &mut R::Thread<'_>, value: Value) {
        domain.replace(thread, &self.0, value);
    }

    fn pause(thread: &mut R::Thread<'_>) {
        R::pause(thread);
    }

    fn flush(domain: &R) {
        domain.flush();
    }
}

/// A table whose keys stay and whose values are replaced.
pub(crate) trait Table: Send + Sync + 'static {
    /// Whether the key matters. If not, the loop does not touch the keys either.
    const KEYED: bool = true;
    /// As in [`Config::Thread`].
    type Thread<'a>;

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self;
    fn thread(&self) -> Self::Thread<'_>;

    /// Hands the value of `key` to `look`, inside the read-side section. Nothing if there is none.
    fn read<R>(
        &self,
        thread: &mut Self::Thread<'_>,
        key: &[u8],
        look: impl FnOnce(&Value) -> R,
    ) -> Option<R>;

    /// Replaces the value of `key`, which is there.
    fn update(&self, thread: &mut Self::Thread<'_>, key: &[u8], value: Value);

    /// As in [`Config::pause`].
    fn pause(&self, _thread: &mut Self::Thread<'_>) {}

    /// As in [`Config::flush`].
    fn flush(&self) {}
}

/// A table whose keys come and go.
pub(crate) trait Churn: Table {
    /// Replaces the value of `key`, or inserts both; true if there was a value.
    fn put(&self, thread: &mut Self::Thread<'_>, key: &[u8], value: Value) -> bool;

    /// Removes `key`; true if it was there.
    fn remove(&self, thread: &mut Self::Thread<'_>, key: &[u8]) -> bool;
}

/// The hash function of all designs, so that none wins by its hash.
pub(crate) type Hash = FixedState;

/// The hash of a key, for the designs that do not bring a map of their own.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let mut hasher = Hash::default().build_hasher();
    hasher.write(key);
    hasher.finish()
}

/// Key bytes to a slot. What changes is inside the slot, or a lock is around the index.
#[derive(Debug)]
pub(crate) struct Index<S> {
    slots: HashTable<(Box<[u8]>, S)>,
}

impl<S> Index<S> {
    pub(crate) fn new(entries: impl Iterator<Item = (Box<[u8]>, S)>) -> Self {
        let mut slots = HashTable::with_capacity(entries.size_hint().0);
        for (key, slot) in entries {
            slots.insert_unique(hash(&key), (key, slot), |(key, _)| hash(key));
        }
        Self { slots }
    }

    #[inline]
    pub(crate) fn get(&self, hash: u64, key: &[u8]) -> Option<&S> {
        self.slots.find(hash, |(known, _)| **known == *key).map(|(_, slot)| slot)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut S> {
        self.slots.find_mut(hash, |(known, _)| **known == *key).map(|(_, slot)| slot)
    }

    /// Replaces the slot of the key, or inserts both; the old slot.
    #[inline]
    pub(crate) fn put(&mut self, hash_of_key: u64, key: &[u8], slot: S) -> Option<S> {
        if let Some(known) = self.get_mut(hash_of_key, key) {
            return Some(std::mem::replace(known, slot));
        }
        self.slots.insert_unique(hash_of_key, (key.into(), slot), |(key, _)| hash(key));
        None
    }

    /// Takes the key out, and its slot with it.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u64, key: &[u8]) -> Option<(Box<[u8]>, S)> {
        let entry = self.slots.find_entry(hash, |(known, _)| **known == *key).ok()?;
        Some(entry.remove().0)
    }
}

/// A table with one [`Config`] per key, behind an index that never changes.
#[derive(Debug)]
pub(crate) struct PerKey<C: Config> {
    // Before the domain: values may need it while they are dropped.
    index: Index<C>,
    domain: C::Domain,
}

impl<C: Config> Table for PerKey<C> {
    type Thread<'a> = C::Thread<'a>;

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        let domain = C::domain();
        let index = Index::new(entries.map(|(key, value)| (key, C::new(&domain, value))));
        Self { index, domain }
    }

    fn thread(&self) -> Self::Thread<'_> {
        C::thread(&self.domain)
    }

    #[inline]
    fn read<R>(
        &self,
        thread: &mut Self::Thread<'_>,
        key: &[u8],
        look: impl FnOnce(&Value) -> R,
    ) -> Option<R> {
        let slot = self.index.get(hash(key), key)?;
        Some(slot.read(&self.domain, thread, look))
    }

    #[inline]
    fn update(&self, thread: &mut Self::Thread<'_>, key: &[u8], value: Value) {
        let slot = self.index.get(hash(key), key).expect("only known keys are updated");
        slot.update(&self.domain, thread, value);
    }

    #[inline]
    fn pause(&self, thread: &mut Self::Thread<'_>) {
        C::pause(thread);
    }

    fn flush(&self) {
        C::flush(&self.domain);
    }
}

/// A [`Config`] as a table in which every key finds the same value.
#[derive(Debug)]
pub(crate) struct Whole<C: Config> {
    value: C,
    domain: C::Domain,
}

impl<C: Config> Table for Whole<C> {
    const KEYED: bool = false;
    type Thread<'a> = C::Thread<'a>;

    fn new(mut entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        let (_, value) = entries.next().expect("a config has one value");
        let domain = C::domain();
        Self { value: C::new(&domain, value), domain }
    }

    fn thread(&self) -> Self::Thread<'_> {
        C::thread(&self.domain)
    }

    #[inline]
    fn read<R>(
        &self,
        thread: &mut Self::Thread<'_>,
        _key: &[u8],
        look: impl FnOnce(&Value) -> R,
    ) -> Option<R> {
        Some(self.value.read(&self.domain, thread, look))
    }

    #[inline]
    fn update(&self, thread: &mut Self::Thread<'_>, _key: &[u8], value: Value) {
        self.value.update(&self.domain, thread, value);
    }

    #[inline]
    fn pause(&self, thread: &mut Self::Thread<'_>) {
        C::pause(thread);
    }

    fn flush(&self) {
        C::flush(&self.domain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_finds_every_key_and_no_other() {
        let key = |i: u32| format!("/key/{i}").into_bytes().into_boxed_slice();
        let index = Index::new((0..1000).map(|i| (key(i), i)));
        for i in 0..1000 {
            assert_eq!(index.get(hash(&key(i)), &key(i)), Some(&i));
        }
        assert_eq!(index.get(hash(&key(1000)), &key(1000)), None);
        assert_eq!(index.get(hash(b""), b""), None);
    }
}
