//! Updates of one entry.

use std::hash::{BuildHasher, Hash};
use std::mem::{self, MaybeUninit};
use std::panic::Location;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use equivalent::Equivalent;

use super::bucket::{Found, Locked, Moved, Sight, Unknown};
use super::garbage::Garbage;
use super::growth::{self, STEP};
use super::map::{Entry, HashMap};
use super::search::{Seen, is_key, search_further};
use super::table::TableRef;
use crate::collections::{moving, tags};
use crate::domain::sections;
use crate::domain::tag::DomainTag;
use crate::os::memory::prefetch;
use crate::os::user_code::{self, Site};
use crate::reclaim::cache;
use crate::reclaim::defer::{self, Patience, out_of_line};
use crate::reclaim::free::AtLimit;
use crate::reclaim::unlink;
use crate::reclaim::weigh::charge_of_box;

/// A pointer to an entry.
pub(super) type At<K, V> = *const Entry<K, V>;

/// Where an entry is that was stored, and the one that was there before; or the one that is there,
/// and the entry that was not stored, with its own key, or none if the one that is there stays.
type Stored<L, K, V> = Result<(At<K, V>, Option<At<K, V>>), (Option<At<K, V>>, Box<Entry<L, V>>)>;

/// What an update has seen of its bucket, in a table that does not grow, in this section.
pub(super) type Look<'m, K, V> = (TableRef<Entry<K, V>>, Sight<'m, Entry<K, V>>);

/// What an update wants to find there, and what it has seen, if it has looked.
type Wanted<'m, K, V> = (Wants<At<K, V>>, Option<Look<'m, K, V>>);

/// A bucket that an update has locked, the table that it is in, and the entry that it wants.
type Held<'l, K, V> =
    (TableRef<Entry<K, V>>, Locked<'l, Entry<K, V>>, Option<Found<'l, Entry<K, V>>>);

/// # Updates
/// Each of these has a section of its own, and retires what it takes out after that section: so it
/// waits at the domain's limit, unless the caller is in a section.
///
/// Under a [`HashMapRef`](super::HashMapRef) they give references to what was there.
impl<K, V, S, D> HashMap<K, V, S, D>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher,
    D: DomainTag,
{
    /// Inserts a key with its value, or replaces the value of a key that is present. Returns
    /// whether the key is new. The key is stored with the value, so an equal key that was present
    /// is replaced as well, unless it [stays](Self#memory).
    ///
    /// # Panics
    /// In a section at the domain's limit, if this thread has already gone over it there: see
    /// [`Rcu::store`](crate::Rcu::store). Nothing has changed then. See
    /// [`try_insert`](Self::try_insert).
    ///
    /// ```
    /// let map = quiescence::collections::HashMap::new();
    /// assert!(map.insert("a", 1));
    /// assert!(!map.insert("a", 2));
    /// assert_eq!(map.read().get("a"), Some(&2));
    /// ```
    #[track_caller]
    pub fn insert(&self, key: K, value: V) -> bool {
        self.in_section(self.garbage("insert"), |garbage| self.put(key, value, garbage).is_none())
    }

    /// Like [`insert`](Self::insert), but never waits.
    ///
    /// # Errors
    /// Key and value: at the domain's limit, even if the key is absent, as soon as there is no room
    /// for the box of an entry.
    #[track_caller]
    pub fn try_insert(&self, key: K, value: V) -> Result<bool, AtLimit<(K, V)>> {
        let Some(garbage) = self.garbage_now(&key) else {
            return Err(AtLimit::unchanged((key, value)));
        };
        Ok(self.in_section(garbage, |garbage| self.put(key, value, garbage).is_none()))
    }

    /// Inserts a key with its value, unless the key is present. Returns whether it was inserted. No
    /// entry is replaced, but the update may replace an overflow node of its bucket or of one that
    /// it moves; in that case it waits at the domain's limit, outside of sections.
    ///
    /// # Panics
    /// As [`insert`](Self::insert), if the key is absent: see
    /// [`try_insert_if_absent`](Self::try_insert_if_absent).
    ///
    /// ```
    /// let map = quiescence::collections::HashMap::new();
    /// assert!(map.insert_if_absent("a", 1));
    /// assert!(!map.insert_if_absent("a", 2));
    /// assert_eq!(map.read().get("a"), Some(&1));
    /// ```
    #[track_caller]
    pub fn insert_if_absent(&self, key: K, value: V) -> bool {
        match self.put_if_room(key, value, Garbage::if_room(self)) {
            Ok(_) => true,
            Err((Some(_), _)) => false,
            Err((None, _)) => refuse("insert_if_absent"),
        }
    }

    /// Like [`insert_if_absent`](Self::insert_if_absent), but never waits.
    ///
    /// # Errors
    /// Key and value, if the key is absent and the domain's limit is exceeded.
    ///
    /// ```
    /// let map = quiescence::collections::HashMap::new();
    /// assert_eq!(map.try_insert_if_absent("a", 1), Ok(true));
    /// assert_eq!(map.try_insert_if_absent("a", 2), Ok(false));
    /// ```
    #[track_caller]
    pub fn try_insert_if_absent(&self, key: K, value: V) -> Result<bool, AtLimit<(K, V)>> {
        match self.put_if_room(key, value, Garbage::of_nodes(self)) {
            Ok(_) => Ok(true),
            Err((Some(_), _)) => Ok(false),
            Err((None, entry)) => Err(AtLimit::unchanged((entry.key, entry.value))),
        }
    }

    /// Removes a key. Returns whether it was present.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    #[track_caller]
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.in_section(self.garbage("remove"), |garbage| self.take(key, garbage).is_some())
    }

    /// Like [`remove`](Self::remove), but never waits.
    ///
    /// # Errors
    /// At the domain's limit, as [`try_insert`](Self::try_insert).
    #[track_caller]
    pub fn try_remove<Q>(&self, key: &Q) -> Result<bool, AtLimit>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let garbage = self.garbage_now(key).ok_or(AtLimit::unchanged(()))?;
        Ok(self.in_section(garbage, |garbage| self.take(key, garbage).is_some()))
    }

    /// Replaces the value of a key by the result of `f`, called with the current value. Returns
    /// whether the key was present. If another update comes first, the result is dropped and `f` is
    /// called again with the newer value. Both happen under no lock, in a section. If `f` panics,
    /// nothing has changed.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    ///
    /// ```
    /// let hits = quiescence::collections::HashMap::new();
    /// hits.insert("/", 1);
    /// assert!(hits.update("/", |hits| hits + 1));
    /// assert!(!hits.update("/about", |hits| hits + 1));
    /// assert_eq!(hits.read().get("/"), Some(&2));
    /// ```
    #[track_caller]
    pub fn update<Q>(&self, key: &Q, mut f: impl FnMut(&V) -> V) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        let replace = |garbage: &_| self.replace(key, &mut f, garbage).is_some();
        self.in_section(self.garbage("update"), replace)
    }

    /// Like [`update`](Self::update), but never waits.
    ///
    /// # Errors
    /// At the domain's limit, as [`try_insert`](Self::try_insert).
    #[track_caller]
    pub fn try_update<Q>(&self, key: &Q, mut f: impl FnMut(&V) -> V) -> Result<bool, AtLimit>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        let garbage = self.garbage_now(key).ok_or(AtLimit::unchanged(()))?;
        Ok(self.in_section(garbage, |garbage| self.replace(key, &mut f, garbage).is_some()))
    }

    /// Runs an update in a section of its own. What it leaves is retired after that.
    #[inline(always)]
    #[track_caller]
    fn in_section<'m, R>(
        &'m self,
        garbage: Garbage<'m, K, V, S, D>,
        update: impl FnOnce(&Garbage<'m, K, V, S, D>) -> R,
    ) -> R {
        let section = self.tag().enter(Location::caller());
        let result = update(&garbage);
        drop(section);
        if garbage.retire_usual() {
            mem::forget(garbage);
        }
        result
    }

    /// For an update that waits, or goes over the limit: not a second time in one section.
    #[inline]
    #[track_caller]
    pub(super) fn garbage(&self, what: &str) -> Garbage<'_, K, V, S, D> {
        let Some(garbage) = Garbage::if_room(self) else { refuse(what) };
        garbage
    }

    /// For an update that does not wait; `None` if there is no room for what it may take out: the
    /// box that the entry of its key is in now, and nodes.
    #[track_caller]
    pub(super) fn garbage_now<Q>(&self, key: &Q) -> Option<Garbage<'_, K, V, S, D>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let mut garbage = Garbage::of_nodes(self)?;
        let section = self.tag().enter(Location::caller());
        // SAFETY: in a section.
        let entry = unsafe { self.find(key) };
        let least = charge_of_box::<Entry<K, V>>(size_of::<Entry<K, V>>());
        // SAFETY: found in the section.
        let charge = entry.map_or(least, |entry| self.charge(unsafe { &*entry }));
        drop(section);
        garbage.room = Some(unlink::reserve_any(self.tag(), charge)?);
        Some(garbage)
    }

    /// Puts an entry into the map. Returns where the one is that was there before. In a section.
    pub(super) fn put(
        &self,
        key: K,
        value: V,
        garbage: &Garbage<'_, K, V, S, D>,
    ) -> Option<At<K, V>> {
        let hash = self.hash(&key);
        let put = self.put_where(key, value, hash, (Wants::Key, None), is_key, garbage);
        put.ok().expect("it is wanted, whether the key is there or not").1
    }

    /// Takes an entry out of the map. Returns where it was. In a section.
    pub(super) fn take<Q>(&self, key: &Q, garbage: &Garbage<'_, K, V, S, D>) -> Option<At<K, V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let (hash, is_key) = (self.hash(key), |other: &K| is_key(key, other));
        // SAFETY: in a section.
        let table = unsafe { growth::root(&self.root) };
        let look = Self::look(table, hash, |entry| is_key(&entry.key));
        self.take_where(hash, (Wants::Present, look), is_key, garbage)
    }

    /// Replaces the value of a key by `f` of it. Returns where the new entry is. In a
    /// section.
    pub(super) fn replace<Q>(
        &self,
        key: &Q,
        mut f: impl FnMut(&V) -> V,
        garbage: &Garbage<'_, K, V, S, D>,
    ) -> Option<At<K, V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        let replaced = self.attempt_replace(key, &mut f, garbage);
        // Not in one loop: what that has ready for its next turn is written to the stack.
        replaced.unwrap_or_else(|| {
            out_of_line(move || {
                loop {
                    if let Some(replaced) = self.attempt_replace(key, &mut f, garbage) {
                        return replaced;
                    }
                }
            })
        })
    }

    /// The same, unless another update comes first.
    #[inline(always)]
    fn attempt_replace<Q>(
        &self,
        key: &Q,
        f: &mut impl FnMut(&V) -> V,
        garbage: &Garbage<'_, K, V, S, D>,
    ) -> Option<Option<At<K, V>>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        K: Clone,
    {
        let hash = self.hash(key);
        let look = self.look_for(key, hash);
        let Some(old) = look.1.entry() else { return Some(None) };
        // SAFETY: found in the section.
        let entry = unsafe { &*old };
        let value = user_code::run(Site::Update, || f(&entry.value));
        let wants = (Wants::This(old), Some(look));
        let put = if garbage.hands_on() {
            let none = MaybeUninit::<K>::uninit();
            self.put_where(none, value, hash, wants, |_, key| never(key), garbage).ok()
        } else {
            let own_key = user_code::run(Site::Key, || entry.key.clone());
            self.put_where(own_key, value, hash, wants, is_key, garbage).ok()
        };
        put.map(|(new, _)| Some(new))
    }

    /// Puts an entry into the map, unless the key is there, in a section of its own. An entry that
    /// is not stored is returned, so that it is dropped after that section.
    ///
    /// # Errors
    /// The key is there; or it is not, and nothing may be left.
    #[track_caller]
    fn put_if_room(
        &self,
        key: K,
        value: V,
        garbage: Option<Garbage<'_, K, V, S, D>>,
    ) -> Stored<K, K, V> {
        let _section = self.tag().enter(Location::caller()); // ends before `garbage` is dropped
        let hash = self.hash(&key);
        if let Some(garbage) = &garbage {
            return self.put_where(key, value, hash, (Wants::Absent, None), is_key, garbage);
        }
        // SAFETY: in a section.
        let there = unsafe { self.find_hashed(&key, hash) };
        Err((there, cache::boxed(Entry { key, value })))
    }

    /// Puts an entry into the map, if it is there as `wants` says. Its `key` is a K; or none, if
    /// the entry of that key is wanted, which hands its own on. In a section.
    #[inline(always)]
    pub(super) fn put_where<L>(
        &self,
        key: L,
        value: V,
        hash: u64,
        (wants, look): Wanted<'_, K, V>,
        is_key: impl Fn(&L, &K) -> bool,
        garbage: &Garbage<'_, K, V, S, D>,
    ) -> Stored<L, K, V> {
        let table = look.is_none().then(|| {
            // SAFETY: in a section.
            let table = unsafe { growth::root(&self.root) };
            // The bucket's line comes while the allocator makes the box.
            prefetch(ptr::from_ref(table.bucket(hash as usize)).cast());
            table
        });
        let new = cache::boxed(Entry { key, value });
        let is_key = |other: &K| is_key(&new.key, other);
        let look = match table {
            Some(table) => Self::look(table, hash, |entry| is_key(&entry.key)),
            None => look,
        };
        let (table, mut bucket, found) = match self.lock(hash, garbage, (wants, look), is_key) {
            Ok(held) => held,
            Err(there) => return Err((there, new)),
        };
        let new: *mut Entry<K, V> = Box::into_raw(new).cast();
        let mut unused = None;
        match &found {
            Some(found) => {
                if garbage.hands_on() {
                    // SAFETY: its own key, read once: another takes its place.
                    unused = Some(unsafe { new.cast::<L>().read() });
                    garbage.hand_on(found.entry, new);
                }
                found.slot.set(new);
            }
            None => {
                assert!(!matches!(wants, Wants::This(_)), "it is wanted");
                bucket.add(tags::of_hash(hash), new);
            }
        }
        let old = found.map(|found| garbage.take(found.entry));
        self.unlock(table, bucket, old.is_none().into());
        drop(unused); // here, where no bucket is locked
        Ok((new, old))
    }

    /// Takes an entry out of the map, if it is there as `wants` says. Returns where it was. In a
    /// section.
    #[inline(always)]
    pub(super) fn take_where(
        &self,
        hash: u64,
        wants: Wanted<'_, K, V>,
        is_key: impl Fn(&K) -> bool,
        garbage: &Garbage<'_, K, V, S, D>,
    ) -> Option<At<K, V>> {
        let (table, mut bucket, found) = self.lock(hash, garbage, wants, is_key).ok()?;
        let found = found?;
        bucket.remove(&found);
        garbage.take(found.entry);
        self.unlock(table, bucket, -1);
        Some(found.entry)
    }

    /// Looks at the bucket of a key, for the entry that `is_it` accepts. Nothing, if the table,
    /// which was loaded in this section, grows, or where [`Sight::of`] says so. In a section.
    #[inline(always)]
    fn look<'m>(
        table: TableRef<Entry<K, V>>,
        hash: u64,
        is_it: impl Fn(&Entry<K, V>) -> bool,
    ) -> Option<Look<'m, K, V>> {
        if table.next().is_some() {
            return None;
        }
        // SAFETY: loaded in the section.
        let sight = unsafe { Sight::of(table.bucket(hash as usize), tags::of_hash(hash), is_it) };
        sight.map(|sight| (table, sight))
    }

    /// The same for the entry of a key, which is looked for further if need be.
    #[inline(always)]
    pub(super) fn look_for<Q>(&self, key: &Q, hash: u64) -> Look<'_, K, V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let is_it = |entry: &Entry<K, V>| is_key(key, &entry.key);
        // SAFETY: in a section.
        let table = unsafe { growth::root(&self.root) };
        if let Some(look) = Self::look(table, hash, is_it) {
            return look;
        }
        // SAFETY: loaded in the section.
        let found = unsafe { search_further(table, hash, &mut { is_it }) };
        (table, Sight::of_reader(table.bucket(hash as usize), found))
    }

    /// Locks the bucket of a key, if that is there as the update wants. Does its share if the table
    /// grows. In a section.
    ///
    /// Returns where the entry is that the update wants, or the one whose key `is_key` accepts,
    /// which is user code, and called under no lock. Until [`unlock`](Self::unlock) nothing of the
    /// user's may be called or dropped [HM-I3]. Before, user code may have run since the look: what
    /// it has changed shows under the lock ([`Locked::lock_as_seen`]).
    ///
    /// # Errors
    /// It is not as the update wants: the entry that is there, or that there was none, at some
    /// moment.
    #[inline(always)]
    fn lock<'l>(
        &self,
        hash: u64,
        garbage: &'l Garbage<'_, K, V, S, D>,
        (wants, look): Wanted<'l, K, V>,
        is_key: impl Fn(&K) -> bool,
    ) -> Result<Held<'l, K, V>, Option<At<K, V>>> {
        if let Some((table, seen)) = look {
            match (wants, seen.entry()) {
                (Wants::Absent, there @ Some(_)) => return Err(there),
                (Wants::Present, None) => return Err(None),
                (_, None) if table.is_nothing() => {}
                _ => {
                    let locked = Locked::lock_as_seen(seen, tags::of_hash(hash), &garbage.left);
                    if let Some((bucket, found)) = locked {
                        return Ok((table, bucket, found));
                    }
                }
            }
        }
        // Made anew: what is returned by way of memory would be written on the usual road, too.
        let (table, bucket, found) = self.lock_busy(hash, garbage, wants, is_key)?;
        Ok((table, bucket, found))
    }

    /// The same if a table grows, the bucket has a node, or others change it.
    #[cold]
    #[inline(never)]
    fn lock_busy<'l>(
        &self,
        hash: u64,
        garbage: &'l Garbage<'_, K, V, S, D>,
        wants: Wants<At<K, V>>,
        is_key: impl Fn(&K) -> bool,
    ) -> Result<Held<'l, K, V>, Option<At<K, V>>> {
        let known = if let Wants::This(entry) = wants { Some(entry) } else { None };
        let tag = tags::of_hash(hash);
        let mut seen = Seen::new(known);
        let mut tends = !garbage.has_tried.replace(true);
        let table = self.own_table();
        if tends && table.next().is_some() {
            moving::help(|| self.help(table, garbage));
        }
        loop {
            let mut table = self.own_table();
            if known.is_none() {
                // SAFETY: loaded in the section.
                unsafe { seen.look(table, hash, &|other| is_key(&other.key)) };
                if matches!((wants, seen.found), (Wants::Absent, Some(_)) | (Wants::Present, None))
                {
                    return Err(seen.found);
                }
            }
            let mut bucket = loop {
                match Locked::lock(table.bucket(hash as usize), &garbage.left) {
                    Ok(bucket) => break bucket,
                    Err(Moved) => table = table.next().expect("entries have moved there"),
                }
            };
            if mem::take(&mut tends) {
                bucket.tend();
            }
            match bucket.locate(tag, &seen) {
                // What else has the tag does not matter.
                Ok(None) | Err(Unknown) if known.is_some() => return Err(None),
                Ok(found) => return Ok((table, bucket, found)),
                // Another update came in between: what it has put there is looked at.
                Err(Unknown) => {}
            }
        }
    }

    /// Unlocks a bucket, counts what was added there, and has the table grow if need be.
    #[inline(always)]
    fn unlock(&self, table: TableRef<Entry<K, V>>, bucket: Locked<'_, Entry<K, V>>, added: i64) {
        let is_crowded = added > 0 && bucket.is_crowded();
        drop(bucket);
        if added != 0 {
            self.count.add(added);
        }
        if is_crowded {
            self.grow_if_full(table);
        }
    }

    /// The table, which is made if there is none. In a section.
    pub(super) fn own_table(&self) -> TableRef<Entry<K, V>> {
        // SAFETY: in a section.
        let table = unsafe { growth::root(&self.root) };
        if !table.is_nothing() {
            return table;
        }
        let (nothing, new) = (TableRef::nothing(), TableRef::new(growth::buckets_for(1), None));
        // AcqRel: pairs with the Acquire in `growth::root`.
        match self.root.compare_exchange(nothing, new.as_ptr(), AcqRel, Acquire) {
            Ok(_) => new,
            Err(_) => {
                // SAFETY: no other thread has seen it, and it is empty.
                unsafe { new.free() };
                // SAFETY: in a section.
                unsafe { growth::root(&self.root) }
            }
        }
    }

    /// Moves some buckets of a table that is growing or shrinking. In a section.
    pub(super) fn help(&self, table: TableRef<Entry<K, V>>, garbage: &Garbage<'_, K, V, S, D>) {
        let hash_of = |entry: &Entry<K, V>| self.hash(&entry.key);
        // SAFETY: in a section, and the table is the map's, or was a moment ago.
        let old = unsafe { growth::help(&self.root, table, STEP, &hash_of, &garbage.left) };
        let Some(old) = old.map(TableRef::into_old) else { return };
        // SAFETY: called a grace period after it was out of reach, when all its entries had moved.
        let free = move || unsafe { old.end() };
        let _queued: Result<(), _> = defer::call(self.tag(), free, Patience::Unowed);
    }

    /// Has the table grow, if it has too many entries and does not grow already.
    #[cold]
    #[inline(never)]
    fn grow_if_full(&self, table: TableRef<Entry<K, V>>) {
        let buckets = table.buckets();
        if table.next().is_none() && self.len() > growth::most(buckets) {
            let factor = if buckets < growth::SMALL { 4 } else { 2 };
            table.set_next(buckets * factor);
        }
    }
}

/// The comparison with a key, where the entry is wanted that was found before.
pub(super) fn never<K>(_key: &K) -> bool {
    unreachable!("it was found by another")
}

/// What an update wants to find in the bucket of its key.
#[derive(Clone, Copy)]
pub(super) enum Wants<E> {
    /// The entry that was found before, in this section.
    This(E),
    /// The key, or not.
    Key,
    /// The key.
    Present,
    /// That the key is not there.
    Absent,
}

/// Refuses an update that would go over the limit once more in one section.
#[cold]
#[track_caller]
pub(super) fn refuse(what: &str) -> ! {
    sections::refuse(&format!("HashMap::{what}"), "a try_ form");
}
