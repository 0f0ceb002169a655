//! A map with a section: [`HashMapRef`]. And iteration.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::compute::{Compute, Operation};
use super::garbage::Garbage;
use super::growth;
use super::map::{Entry, HashMap};
use super::search::is_key;
use super::update::{At, Wants, never, refuse};
use super::walk::Walk;
use crate::collections::impls::{iterated, shown_as_all, view};
use crate::domain::impls::shown_in_part;
use crate::domain::tag::{DomainTag, Section};
use crate::os::user_code::{self, Site};
use crate::reclaim::free::AtLimit;

/// A map together with a section: references that it finds stay valid as long as this value.
///
/// It dereferences to the [`HashMap`] for all other methods. It is a [`Section`] of the map's
/// domain, so other values can be read with it.
///
/// Made by [`HashMap::read`]. Dropping it ends the section; if updates were made through it, this
/// may wait at the domain's limit: see [`HashMap`].
#[must_use = "the section ends when this is dropped"]
pub struct HashMapRef<'m, K, V, S, D: DomainTag, G> {
    pub(super) map: &'m HashMap<K, V, S, D>,
    pub(super) section: G,
}

view!(
    [K, V, S, D: DomainTag, G] HashMapRef<'_, K, V, S, D, G>, map: HashMap<K, V, S, D>,
    section: Section<D> where G: Section<D>
);

/// Key and value of an entry.
///
/// # Safety
/// It was found in a section that lasts as long as `'s`, or longer.
unsafe fn pair<'s, K, V>(at: At<K, V>) -> (&'s K, &'s V) {
    // SAFETY: by the contract: it is not written to or freed before the section ends.
    let entry = unsafe { &*at };
    (&entry.key, &entry.value)
}

/// # Reading
impl<K: Hash + Eq, V, S: BuildHasher, D: DomainTag, G> HashMapRef<'_, K, V, S, D, G> {
    /// Returns the value of a key. The reference stays valid for the whole section, even if the
    /// entry is removed or replaced.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// Returns the key as it is in the map, and its value.
    #[inline]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        // SAFETY: in a section.
        let entry = unsafe { self.map.find(key) };
        // SAFETY: found in the section, which lasts as long as `self`.
        entry.map(|at| unsafe { pair(at) })
    }

    /// Returns whether a key is present.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_key_value(key).is_some()
    }

    /// Iterates over all entries, in no order. An entry that is present all the time is visited
    /// once. Of entries that are inserted or removed meanwhile, some are visited, and a key that is
    /// removed and inserted again may be visited twice. For a replaced entry, either the old or the
    /// new one is visited.
    ///
    /// ```
    /// let map = quiescence::collections::HashMap::from([(1, "a"), (2, "b")]);
    /// let map = map.read();
    /// let mut all: Vec<_> = map.iter().collect();
    /// all.sort();
    /// assert_eq!(all, [(&1, &"a"), (&2, &"b")]);
    /// ```
    pub fn iter(&self) -> Iter<'_, K, V, S, D> {
        // SAFETY: in a section.
        let table = unsafe { growth::root(&self.map.root) };
        Iter { map: self.map, walk: Walk::new(table, 0, table.buckets()) }
    }

    /// Iterates over all keys: see [`iter`](Self::iter).
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over all values: see [`iter`](Self::iter).
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

/// # Updates
/// They are made in this section, and so wait for no grace period: at the domain's limit what the
/// first one takes out goes over the limit, and the thread waits when its outermost section ends;
/// the next one panics. (In a [sleepable domain](crate::Srcu#at-the-limit) each waits for 10 ms at
/// most, and then goes over the limit.) The `try_` forms, which are the map's where there is none
/// here, do neither.
impl<K, V, S, D, G> HashMapRef<'_, K, V, S, D, G>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher,
    D: DomainTag,
    G: Section<D>,
{
    /// Inserts a key with its value, or replaces its value. Returns the previous value.
    ///
    /// # Panics
    /// As [`HashMap::insert`].
    #[track_caller]
    pub fn insert(&self, key: K, value: V) -> Option<&V> {
        let old = self.map.put(key, value, &self.map.garbage("insert"));
        // SAFETY: found in the section, which lasts as long as `self`.
        old.map(|at| unsafe { &(*at).value })
    }

    /// Removes a key. Returns the value that it had.
    ///
    /// # Panics
    /// As [`HashMap::insert`].
    #[track_caller]
    pub fn remove<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes a key. Returns the entry.
    ///
    /// # Panics
    /// As [`HashMap::insert`].
    #[track_caller]
    pub fn remove_entry<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let old = self.map.take(key, &self.map.garbage("remove"));
        // SAFETY: found in the section, which lasts as long as `self`.
        old.map(|at| unsafe { pair(at) })
    }

    /// Replaces the value of a key by the result of `f`, as [`HashMap::update`] does. Returns the
    /// new value.
    ///
    /// # Panics
    /// As [`HashMap::insert`].
    #[track_caller]
    pub fn update<Q>(&self, key: &Q, mut f: impl FnMut(&V) -> V) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        let new = self.map.replace(key, &mut f, &self.map.garbage("update"));
        // SAFETY: stored in the section, which lasts as long as `self`.
        new.map(|at| unsafe { &(*at).value })
    }

    /// Returns the value of a key, after inserting `value` if it had none.
    ///
    /// # Panics
    /// As [`get_or_insert_with`](Self::get_or_insert_with).
    #[track_caller]
    pub fn get_or_insert(&self, key: K, value: V) -> &V {
        match self.get_or_put(key, || value, Garbage::if_room) {
            Ok(value) => value,
            Err(_) => refuse("get_or_insert"),
        }
    }

    /// Returns the value of a key, after inserting the result of `make` if it had none. `make` is
    /// called under no lock: if another thread inserts the key meanwhile, that thread's value is
    /// returned, and the result of `make` is dropped.
    ///
    /// # Panics
    /// As [`HashMap::insert`], if the key is absent; `make` has not been called.
    ///
    /// ```
    /// let names = quiescence::collections::HashMap::<u32, String>::new();
    /// let names = names.read();
    /// assert_eq!(names.get_or_insert_with(1, || "anna".into()), "anna");
    /// assert_eq!(names.get_or_insert_with(1, || unreachable!()), "anna");
    /// ```
    #[track_caller]
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> &V {
        let make = || user_code::run(Site::Make, make);
        match self.get_or_put(key, make, Garbage::if_room) {
            Ok(value) => value,
            Err(_) => refuse("get_or_insert_with"),
        }
    }

    /// Like [`get_or_insert_with`](Self::get_or_insert_with), but does not exceed the domain's
    /// limit.
    ///
    /// # Errors
    /// The key, as [`HashMap::try_insert_if_absent`]; `make` has not been called.
    #[track_caller]
    pub fn try_get_or_insert_with(
        &self,
        key: K,
        make: impl FnOnce() -> V,
    ) -> Result<&V, AtLimit<K>> {
        let make = || user_code::run(Site::Make, make);
        self.get_or_put(key, make, Garbage::of_nodes).map_err(AtLimit::unchanged)
    }

    /// The value of a key; if it has none, what `make` returns, which is inserted, if there is
    /// `room` for what that leaves.
    ///
    /// # Errors
    /// The key, if it is not there and nothing may be left.
    fn get_or_put<'s>(
        &'s self,
        key: K,
        make: impl FnOnce() -> V,
        room: impl FnOnce(&'s HashMap<K, V, S, D>) -> Option<Garbage<'s, K, V, S, D>>,
    ) -> Result<&'s V, K> {
        let hash = self.map.hash(&key);
        let look = self.map.look_for(&key, hash);
        let at = match look.1.entry() {
            Some(at) => at,
            None => {
                let Some(garbage) = room(self.map) else { return Err(key) };
                let wants = (Wants::Absent, Some(look));
                match self.map.put_where(key, make(), hash, wants, is_key, &garbage) {
                    Ok((new, _)) => new,
                    // The other one is dropped here, where no bucket is locked.
                    Err((there, _)) => there.expect("that is why"),
                }
            }
        };
        // SAFETY: found or stored in the section, which lasts as long as `self`.
        Ok(unsafe { &(*at).value })
    }

    /// Calls `f` to decide what to do with the entry of a key, and does it atomically: no other
    /// update comes between what `f` has seen and what it decides. If one does, `f` is called
    /// again. `f` is called under no lock.
    ///
    /// ```
    /// use quiescence::collections::hash_map::{Compute, HashMap, Operation};
    ///
    /// let seats = HashMap::<&str, u32>::new();
    /// seats.insert("train", 1);
    /// let seats = seats.read();
    /// let book = || {
    ///     seats.compute("train", |entry| match entry {
    ///         Some((_, 1)) => Operation::Remove,
    ///         Some((_, free)) => Operation::Insert(free - 1),
    ///         None => Operation::Abort("sold out"),
    ///     })
    /// };
    /// assert_eq!(book(), Compute::Removed(&"train", &1));
    /// assert_eq!(book(), Compute::Aborted("sold out"));
    /// ```
    ///
    /// # Panics
    /// As [`HashMap::insert`].
    #[track_caller]
    pub fn compute<T>(
        &self,
        key: K,
        f: impl FnMut(Option<(&K, &V)>) -> Operation<V, T>,
    ) -> Compute<'_, K, V, T> {
        self.decide(key, f, &self.map.garbage("compute"))
    }

    /// Like [`compute`](Self::compute), but does not exceed the domain's limit.
    ///
    /// # Errors
    /// At the domain's limit, as [`HashMap::try_insert`]: the key; `f` has not been called.
    #[track_caller]
    pub fn try_compute<T>(
        &self,
        key: K,
        f: impl FnMut(Option<(&K, &V)>) -> Operation<V, T>,
    ) -> Result<Compute<'_, K, V, T>, AtLimit<K>> {
        let Some(garbage) = self.map.garbage_now(&key) else {
            return Err(AtLimit::unchanged(key));
        };
        Ok(self.decide(key, f, &garbage))
    }

    fn decide<T>(
        &self,
        mut key: K,
        mut f: impl FnMut(Option<(&K, &V)>) -> Operation<V, T>,
        garbage: &Garbage<'_, K, V, S, D>,
    ) -> Compute<'_, K, V, T> {
        let hash = self.map.hash(&key);
        loop {
            let look = self.map.look_for(&key, hash);
            let old = look.1.entry();
            // SAFETY: found in the section, which lasts as long as `self`.
            let before = old.map(|at| unsafe { pair(at) });
            let decided = user_code::run(Site::Update, || f(before));
            match (decided, old) {
                (Operation::Abort(value), _) => return Compute::Aborted(value),
                (Operation::Remove, None) => return Compute::Absent,
                (Operation::Remove, Some(at)) => {
                    let wants = (Wants::This(at), Some(look));
                    if self.map.take_where(hash, wants, never, garbage).is_some() {
                        // SAFETY: as above.
                        let (key, value) = unsafe { pair(at) };
                        return Compute::Removed(key, value);
                    }
                }
                (Operation::Insert(value), _) => {
                    let wants = (old.map_or(Wants::Absent, Wants::This), Some(look));
                    match self.map.put_where(key, value, hash, wants, is_key, garbage) {
                        // The value is dropped here, where no bucket is locked.
                        Err((_, entry)) => key = entry.key,
                        Ok((new, _)) => {
                            // SAFETY: stored in the section, which lasts as long as `self`.
                            let new = unsafe { pair(new) };
                            return match before {
                                None => Compute::Inserted(new.0, new.1),
                                Some(old) => Compute::Updated { old, new },
                            };
                        }
                    }
                }
            }
        }
    }
}

shown_as_all!(
    [K: Hash + Eq + fmt::Debug, V: fmt::Debug, S: BuildHasher, D: DomainTag, G]
    HashMapRef<'_, K, V, S, D, G>, debug_map, |map| map.iter()
);

/// The entries of a map: see [`HashMapRef::iter`].
pub struct Iter<'s, K, V, S, D: DomainTag> {
    pub(super) map: &'s HashMap<K, V, S, D>,
    pub(super) walk: Walk<Entry<K, V>>,
}

// SAFETY: references to a map that is Sync, and to entries that are. The section is another's, and
// lasts as long as `'s`: it began before any thread has this, so no grace period that
// could free what is found ends meanwhile.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync, D: DomainTag> Send for Iter<'_, K, V, S, D> {}
// SAFETY: as above; a shared reference to it does nothing.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync, D: DomainTag> Sync for Iter<'_, K, V, S, D> {}

impl<'s, K: Hash + Eq, V, S: BuildHasher, D: DomainTag> Iterator for Iter<'s, K, V, S, D> {
    type Item = (&'s K, &'s V);

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: the section lasts as long as `'s`.
        let at = unsafe { self.walk.next(|entry| self.map.hash(&entry.key)) }?;
        // SAFETY: found in the section.
        Some(unsafe { pair(at) })
    }
}

iterated!(
    ['s, K: Hash + Eq, V, S: BuildHasher, D: DomainTag, G]
    &'s HashMapRef<'_, K, V, S, D, G>, (&'s K, &'s V), Iter<'s, K, V, S, D>
);

shown_in_part!([K, V, S, D: DomainTag] Iter<'_, K, V, S, D>);
