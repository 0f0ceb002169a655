//! [`IdMap`], as users see it.

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use std::panic::Location;
use std::ptr::{self, NonNull};

use super::chunk::Entry;
use super::id::{Id, Mark};
use super::reader::IdMapRef;
use super::retire::ReplaceError;
use super::table::{Claim, Table};
use crate::collections::impls::shown_as_all;
use crate::collections::valued::drop_all;
use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::impls::default_by;
use crate::domain::sections;
use crate::domain::tag::{DomainTag, Section};
use crate::os::percpu;
use crate::os::sync::const_unless_loom;
use crate::os::user_code::{self, Site};
use crate::reclaim::free::AtLimit;
use crate::reclaim::weigh::{Scale, Weigh};
use crate::reclaim::{debug_objects, local};

/// A table that maps ids to values and chooses the ids, like the kernel's IDR and XArray, and the
/// ids of System V's semaphores.
///
/// Readers look up an id without a lock, and write nothing. An [`Id`] is an index and a
/// *generation*. When an entry has been removed, its index is reused with the next generation, so
/// the old id finds nothing. Each value has three [`Mark`]s, which are searched without visiting
/// the other entries.
///
/// The table chooses the keys, or they are small numbers ([`insert_at`](Self::insert_at), for
/// example the pages of a file). If the program chooses other keys, use a hash map.
///
/// `D` is the domain whose guards protect the values: the global one, unless
/// [`new_in`](Self::new_in) made the table.
///
/// # Promises
/// - A look-up in a section finds the current value of the id, whole. It stays valid for the whole
///   section.
/// - Of two threads that remove an entry, or claim an index, one succeeds.
/// - An iteration visits an entry once if it is present all the time. The same holds for a search
///   and an entry that has the mark all the time. Entries that change meanwhile may or may not be
///   visited.
/// - Growing the table moves no value and makes no reader wait.
/// - An id returned by [`insert`](Self::insert), [`insert_with`](Self::insert_with) or
///   [`insert_in`](Self::insert_in) never names two entries: an index that has had 2^31 - 1
///   generations is not reused. Ids of `insert_at` wrap, but never to one of these.
///
/// # Memory
/// A value and its generation are in a box. Removed and replaced values wait for a grace period,
/// and count against the domain's limits ([`Tuning`](crate::tuning::Tuning)) as in an
/// [`Rcu`](crate::Rcu), with the bytes that [`Weigh`] reports. Indexes are in chunks of 512, which
/// take 13 bytes per index and are freed when the map is dropped. A few entries that are far apart
/// take a chunk each. In the worst case the tables of chunks reserve 140 MiB of address space, of
/// which only written pages take memory.
///
/// # Progress and cost
/// A look-up is wait-free: five dependent loads, the first two usually from the cache. An insertion
/// claims an index with an atomic exchange on a word that covers 64 of them, and stores the
/// pointer. It is lock-free, except for the allocator and the first insertion into a chunk. Threads
/// that have freed no index insert into different chunks on different CPUs once the first chunk is
/// full. A removal or replacement is one exchange; a removal takes one more to free the index. Then
/// the old value is retired, which may wait: see [`Rcu::store`](crate::Rcu::store). Setting or
/// clearing a mark, or removing an entry that has one, takes a lock of its chunk for a few
/// instructions. In a child made by `fork` while another thread was in one of these, or inserting,
/// they may wait forever, and so may insertions; an index that it had claimed stays in use.
///
/// # Source
/// The interfaces are those of the kernel's IDR (Jim Houston) and XArray (Matthew Wilcox); ids with
/// generations are known from System V's sequence numbers and from slot maps in games. Segments of
/// doubling size that do not move: Dechev, Pirkelbauer and Stroustrup (OPODIS 2006).
///
/// ```
/// use quiescence::collections::{IdMap, Mark};
///
/// let sessions = IdMap::new();
/// let id = sessions.insert(String::from("alice"));
///
/// let reader = sessions.read();
/// assert_eq!(reader.get(id).unwrap(), "alice");
/// drop(reader);
///
/// sessions.set_mark(id, Mark::M0);
/// let marked: Vec<_> = sessions.read().marked(Mark::M0, ..).map(|(id, _)| id).collect();
/// assert_eq!(marked, [id]);
///
/// assert!(sessions.remove(id));
/// let next = sessions.insert(String::from("bob"));
/// assert_eq!(next.index(), id.index()); // the index is reused
/// assert!(sessions.read().get(id).is_none()); // but the old id finds nothing
/// ```
pub struct IdMap<V: Send + Sync + 'static, D: DomainTag = Global> {
    pub(super) table: Table<V>,
    pub(super) scale: Scale<V>,
    pub(super) domain: Domain<D>,
}

impl<V: Send + Sync + 'static> IdMap<V> {
    const_unless_loom! {
        /// Creates an empty map in the global domain; may be a static. Allocates nothing.
        ///
        /// ```
        /// use quiescence::collections::IdMap;
        ///
        /// static SESSIONS: IdMap<String> = IdMap::new();
        /// let id = SESSIONS.insert(String::from("alice"));
        /// assert_eq!(SESSIONS.read().get(id).unwrap(), "alice");
        /// ```
        pub fn new() -> Self
        where
            V: Weigh,
        {
            Self::new_in(Domain::global())
        }

        /// Creates an empty map in the global domain, for values of a type that does not implement
        /// [`Weigh`]; may be a static. See [`Rcu::with_weight`](crate::Rcu::with_weight).
        pub fn with_weight(weight: fn(&V) -> usize) -> Self {
            Self::with_weight_in(weight, Domain::global())
        }
    }
}

impl<V: Send + Sync + 'static, D: DomainTag> IdMap<V, D> {
    const_unless_loom! {
        /// Creates an empty map in `domain`; may be a static, if the domain is a declared one.
        ///
        /// ```
        /// use quiescence::Srcu;
        /// use quiescence::collections::IdMap;
        ///
        /// let domain = Srcu::new();
        /// let map = IdMap::new_in(domain.domain());
        /// let id = map.insert(7);
        /// let guard = domain.read(); // may be held across an `.await`
        /// assert_eq!(map.get(id, &guard), Some(&7));
        /// ```
        pub fn new_in(domain: Domain<D>) -> Self
        where
            V: Weigh,
        {
            Self { table: Table::new(), scale: Scale::new(), domain }
        }

        /// Like [`with_weight`](IdMap::with_weight), in `domain`.
        pub fn with_weight_in(weight: fn(&V) -> usize, domain: Domain<D>) -> Self {
            Self { table: Table::new(), scale: Scale::by(weight), domain }
        }
    }

    /// Begins a section, and returns it together with the map.
    ///
    /// # Panics
    /// As [`Domain::read`].
    #[inline]
    #[track_caller]
    pub fn read(&self) -> IdMapRef<'_, V, D, D::Section<'_>> {
        IdMapRef { map: self, section: self.section() }
    }

    /// Like [`read`](Self::read), in a section of the caller's: of a [`Reader`](crate::Reader), a
    /// [`Qsbr`](crate::Qsbr), or one shared by several maps.
    ///
    /// # Panics
    /// As [`get`](Self::get).
    #[inline]
    #[track_caller]
    pub fn read_in<'s, G: Section<D>>(&'s self, section: &'s G) -> IdMapRef<'s, V, D, &'s G> {
        sections::check(section, &self.domain, "map");
        IdMapRef { map: self, section }
    }

    #[inline(always)]
    #[track_caller]
    fn section(&self) -> D::Section<'_> {
        self.domain.tag().enter(Location::caller())
    }

    /// Returns the current value of an id. The reference stays valid for the whole section, even if
    /// the entry is removed or replaced.
    ///
    /// Wait-free.
    ///
    /// # Panics
    /// If the section belongs to another domain and the types do not show it (checked at run time).
    /// In debug builds also if unsafe code has retired the value.
    #[inline]
    #[track_caller]
    pub fn get<'s, S: Section<D>>(&'s self, id: Id, section: &'s S) -> Option<&'s V> {
        self.find(id, section).map(|entry| &entry.value)
    }

    /// Returns whether an id currently finds a value.
    #[track_caller]
    pub fn contains(&self, id: Id) -> bool {
        self.find(id, &self.section()).is_some()
    }

    /// Inserts a value at a free index, and returns its id. The index is a low one: one that this
    /// thread has freed recently, if it is still free, or another free one near those at which this
    /// CPU has inserted.
    ///
    /// # Panics
    /// If all 2^32 indexes are in use or used up. See [`try_insert`](Self::try_insert).
    #[track_caller]
    pub fn insert(&self, value: V) -> Id {
        self.insert_with(|_| value)
    }

    /// Like [`insert`](Self::insert), but returns the value instead of panicking.
    ///
    /// # Errors
    /// `value`, if all 2^32 indexes are in use or used up.
    pub fn try_insert(&self, value: V) -> Result<Id, V> {
        publish(self.table.claim(percpu::slot), value)
    }

    /// Inserts the value that `make` computes from its id. No reader finds the id before that.
    ///
    /// If `make` panics, nothing is inserted, and the id never names an entry. While `make` runs,
    /// the index is in use: [`insert_at`](Self::insert_at) refuses it, and [`len`](Self::len)
    /// counts it.
    ///
    /// ```
    /// use quiescence::collections::{Id, IdMap};
    ///
    /// #[derive(quiescence::Weigh)]
    /// struct Session {
    ///     id: Id,
    /// }
    ///
    /// let sessions = IdMap::new();
    /// let id = sessions.insert_with(|id| Session { id });
    /// assert_eq!(sessions.read().get(id).unwrap().id, id);
    /// ```
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    #[track_caller]
    pub fn insert_with(&self, make: impl FnOnce(Id) -> V) -> Id {
        let claim = self.table.claim(percpu::slot);
        let claim = claim.expect("quiescence: an IdMap has no index left; use try_insert()");
        let value = user_code::run(Site::Make, || make(claim.id));
        claim.publish(value)
    }

    /// Inserts a value at the lowest free index of a range: for ids that must not exceed some
    /// number, or for numbers that begin at 1.
    ///
    /// ```
    /// use quiescence::collections::IdMap;
    ///
    /// let ports = IdMap::new();
    /// assert_eq!(ports.insert_in(1024..1026, "a").unwrap().index(), 1024);
    /// assert_eq!(ports.insert_in(1024..1026, "b").unwrap().index(), 1025);
    /// assert_eq!(ports.insert_in(1024..1026, "c"), Err("c"));
    /// ```
    ///
    /// # Errors
    /// `value`, if none of the indexes is free.
    pub fn insert_in(&self, indexes: impl RangeBounds<u32>, value: V) -> Result<Id, V> {
        publish(self.table.claim_in_range(half_open(&indexes)), value)
    }

    /// Inserts a value at this index, if it is free: for entries that have numbers of their own,
    /// such as the pages of a file.
    ///
    /// An index at which another thread is inserting or removing is not free: if several threads
    /// insert at one index at once, one succeeds. Once a removal has returned, the index is free.
    ///
    /// # Errors
    /// `value`, if the index is in use.
    pub fn insert_at(&self, index: u32, value: V) -> Result<Id, V> {
        publish(self.table.claim_at(index), value)
    }

    /// Removes an entry; its value is dropped after a grace period. Returns whether this call
    /// removed one: if several threads remove the same entry, one of them gets `true`. May wait
    /// whenever [`Domain::retire`] may, and may drop values that were removed earlier;
    /// [`Domain::retire`] says which locks must not be held.
    ///
    /// # Panics
    /// At the domain's limit, if the thread is in a section in which it has already gone over the
    /// limit: it may neither wait nor exceed the limit further. Nothing has changed then. See
    /// [`try_remove`](Self::try_remove).
    ///
    /// In a [sleepable domain](crate::Srcu#at-the-limit) the caller's sections are not known. There
    /// this waits for at most 10 ms, then exceeds the limit. It never panics there.
    #[track_caller]
    pub fn remove(&self, id: Id) -> bool {
        self.remove_if(id.index(), |generation| generation == id.generation())
    }

    /// Like [`remove`](Self::remove), for the entry at an index, whatever its id.
    ///
    /// # Panics
    /// As [`remove`](Self::remove).
    #[track_caller]
    pub fn remove_at(&self, index: u32) -> bool {
        self.remove_if(index, |_| true)
    }

    #[track_caller]
    fn remove_if(&self, index: u32, is_meant: impl Fn(u32) -> bool) -> bool {
        self.may_retire("remove");
        let section = self.section();
        let old = self.table.unlink(index, |generation, _| is_meant(generation));
        // Retire after the section: a reader never waits and never frees.
        drop(section);
        // SAFETY: it was taken out, once.
        old.inspect(|old| unsafe { self.retire(*old) }).is_some()
    }

    /// Like [`remove`](Self::remove), but never waits, and never exceeds the limit.
    ///
    /// # Errors
    /// If there is no room for the value to be removed: the entry is still present. The limit may
    /// be reached early: see [`Domain::try_retire`].
    #[track_caller]
    pub fn try_remove(&self, id: Id) -> Result<bool, AtLimit> {
        self.take_if_room(id, |_, entry| {
            self.table.unlink(id.index(), |_, found| ptr::eq(found.as_ptr(), entry))
        })
    }

    /// Replaces the value of an entry; the old one is dropped after a grace period. The id and the
    /// marks stay. May wait as [`remove`](Self::remove) does.
    ///
    /// # Errors
    /// `value`, if the id finds nothing.
    ///
    /// # Panics
    /// As [`remove`](Self::remove).
    #[track_caller]
    pub fn replace(&self, id: Id, value: V) -> Result<(), V> {
        self.may_retire("replace");
        let section = self.section();
        let old = self.replace_in(id, None, Entry::boxed(id, value), &section);
        drop(section);
        // SAFETY: it was taken out, once.
        old.map(|old| unsafe { self.retire(old) }).map_err(|new| new.value)
    }

    /// Like [`replace`](Self::replace), but never waits, and never exceeds the limit.
    ///
    /// # Errors
    /// `value`, if the id finds nothing, or if there is no room for the value to be replaced.
    #[track_caller]
    pub fn try_replace(&self, id: Id, value: V) -> Result<(), ReplaceError<V>> {
        let mut value = Some(value);
        let replaced = self.take_if_room(id, |section, entry| {
            let result = self.replace_in(id, Some(entry), Entry::boxed(id, value.take()?), section);
            result.map_err(|refused| value = Some(refused.value)).ok()
        });
        match (replaced, value) {
            (_, None) => Ok(()),
            (Ok(_), Some(value)) => Err(ReplaceError::NotFound(value)),
            (Err(_), Some(value)) => Err(ReplaceError::AtLimit(value)),
        }
    }

    /// Replaces the value of an entry by the result of `f`, called with the current value. If
    /// another update comes first, `f` is called again with the newer value. Returns whether there
    /// was an entry. The id and the marks stay. If `f` panics, nothing has changed.
    ///
    /// `f` runs inside a section, so waiting for a grace period in it panics.
    ///
    /// # Panics
    /// As [`remove`](Self::remove), before `f` is called.
    #[track_caller]
    pub fn update(&self, id: Id, mut f: impl FnMut(&V) -> V) -> bool {
        self.may_retire("replace");
        let section = self.section();
        let old = loop {
            let Some(current) = self.find(id, &section) else { break None };
            let value = user_code::run(Site::Update, || f(&current.value));
            match self.replace_in(id, Some(current), Entry::boxed(id, value), &section) {
                Ok(old) => break Some(old),
                // Before `f` is called again, which may wait for what the value has.
                Err(refused) => user_code::run(Site::Drop, || drop(refused)),
            }
        };
        drop(section);
        // SAFETY: it was taken out, once.
        old.inspect(|old| unsafe { self.retire(*old) }).is_some()
    }

    /// Returns whether an entry currently has a mark.
    #[track_caller]
    pub fn is_marked(&self, id: Id, mark: Mark) -> bool {
        let _section = self.section();
        let word = self.table.load(id.index());
        // SAFETY: null, or loaded under the section.
        let entry = unsafe { word.entry().as_ref() };
        entry.is_some_and(|entry| entry.generation == id.generation()) && word.has(mark)
    }

    /// Sets a mark of an entry. Returns whether that changed anything: `false` if the entry has the
    /// mark already, or if the id finds nothing. If several threads do this at once, one gets
    /// `true`. A search that begins after this has returned finds the entry.
    ///
    /// An entry that is removed loses its marks; a later entry at its index starts with none.
    #[track_caller]
    pub fn set_mark(&self, id: Id, mark: Mark) -> bool {
        self.change_marks(id, None, Some(mark))
    }

    /// Clears a mark of an entry. Returns whether that changed anything.
    #[track_caller]
    pub fn clear_mark(&self, id: Id, mark: Mark) -> bool {
        self.change_marks(id, Some(mark), None)
    }

    /// Atomically clears the mark `from` of an entry and sets `to`, if it has `from` but not `to`.
    /// Returns whether it did. If several threads do this at once, one gets `true`; so one thread
    /// can claim the task of writing back a dirty page. Nothing happens if both are the same mark.
    #[track_caller]
    pub fn swap_mark(&self, id: Id, from: Mark, to: Mark) -> bool {
        self.change_marks(id, Some(from), Some(to))
    }

    #[track_caller]
    fn change_marks(&self, id: Id, clear: Option<Mark>, set: Option<Mark>) -> bool {
        let _section = self.section();
        // SAFETY: in a section of the map's domain.
        unsafe { self.table.change_marks(id, clear, set) }
    }

    /// The number of entries. During updates, parts of the sum are taken at different moments of
    /// the call; entries that are being inserted are included.
    ///
    /// Costs a load for each 64 indexes in use.
    pub fn len(&self) -> usize {
        self.table.count() as usize
    }

    /// Whether there is no entry. Costs as much as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all entries that are present; entries inserted meanwhile may stay.
    ///
    /// # Panics
    /// As [`remove`](Self::remove). Some entries have been removed by then.
    #[track_caller]
    pub fn clear(&self) {
        let mut next = Bound::Unbounded;
        loop {
            let reader = self.read();
            let Some((id, _)) = reader.range((next, Bound::Unbounded)).next() else { return };
            drop(reader); // as in `remove_if`
            self.remove(id); // whatever its value is by now, which threads may replace steadily
            next = Bound::Excluded(id.index());
        }
    }

    /// Removes the entries for which `keep` returns `false`, one after the other, not all at one
    /// moment. `keep` runs inside a section, and is asked again about a value that has replaced the
    /// one it was asked about.
    ///
    /// # Panics
    /// As [`remove`](Self::remove). Some entries have been removed by then.
    #[track_caller]
    pub fn retain(&self, mut keep: impl FnMut(Id, &V) -> bool) {
        let mut next = Bound::Unbounded;
        loop {
            let reader = self.read();
            let mut entries = reader.range((next, Bound::Unbounded));
            let Some((id, value)) =
                entries.find(|(id, value)| !user_code::run(Site::Choose, || keep(*id, value)))
            else {
                return;
            };
            // In a section of the caller's, or one that `keep` has begun and that goes on.
            if local::in_nested_sections_over_limit() {
                self.may_retire("remove");
            }
            // SAFETY: an entry in the table, in a section.
            let is_it =
                |_, entry: NonNull<Entry<V>>| ptr::eq(&unsafe { entry.as_ref() }.value, value);
            let old = self.table.unlink(id.index(), is_it);
            // Not about another entry at the index: `keep` may insert one each time.
            let is_replaced = old.is_none() && reader.get(id).is_some();
            let index = id.index();
            next = if is_replaced { Bound::Included(index) } else { Bound::Excluded(index) };
            drop(reader); // as in `remove_if`
            // SAFETY: it was taken out, once.
            old.inspect(|old| unsafe { self.retire(*old) });
        }
    }

    /// The domain whose sections protect the values.
    pub fn domain(&self) -> &Domain<D> {
        &self.domain
    }

    #[inline]
    #[track_caller]
    pub(super) fn find_at<'s, S: Section<D>>(
        &'s self,
        index: u32,
        section: &'s S,
    ) -> Option<&'s Entry<V>> {
        sections::check(section, &self.domain, "map");
        let entry = self.table.load(index).entry();
        debug_objects::check_reachable(entry.cast_const().cast(), || {
            ptr::eq(self.table.load(index).entry(), entry)
        });
        // SAFETY: null, or loaded under the section, which lasts as long as `'s`.
        unsafe { entry.as_ref() }
    }

    #[inline]
    #[track_caller]
    pub(super) fn find<'s, S: Section<D>>(
        &'s self,
        id: Id,
        section: &'s S,
    ) -> Option<&'s Entry<V>> {
        self.find_at(id.index(), section).filter(|entry| entry.generation == id.generation())
    }

    /// Replaces the value of an entry, if it is `expected` or that is none.
    ///
    /// # Errors
    /// `new`, if the id finds nothing, or another entry.
    pub(super) fn replace_in<S: Section<D>>(
        &self,
        id: Id,
        expected: Option<&Entry<V>>,
        new: Box<Entry<V>>,
        section: &S,
    ) -> Result<NonNull<Entry<V>>, Box<Entry<V>>> {
        sections::check(section, &self.domain, "map");
        // SAFETY: in a section of the map's domain.
        unsafe { self.table.replace(id, expected, new) }
    }
}

/// Puts a value where the claim is; gives it back if there is none.
fn publish<V>(claim: Option<Claim<'_, V>>, value: V) -> Result<Id, V> {
    let Some(claim) = claim else { return Err(value) };
    Ok(claim.publish(value))
}

pub(super) fn half_open(indexes: &impl RangeBounds<u32>) -> Range<u64> {
    let from = match indexes.start_bound() {
        Bound::Included(first) => u64::from(*first),
        Bound::Excluded(before) => u64::from(*before) + 1,
        Bound::Unbounded => 0,
    };
    let to = match indexes.end_bound() {
        Bound::Included(last) => u64::from(*last) + 1,
        Bound::Excluded(end) => u64::from(*end),
        Bound::Unbounded => u64::MAX,
    };
    from..to
}

impl<V: Send + Sync + 'static, D: DomainTag> Drop for IdMap<V, D> {
    fn drop(&mut self) {
        let mut entries = self.table.drain();
        // SAFETY: from a box; no thread can hold a reference that was loaded from here, since such
        // a reference borrows `self`.
        drop_all(|| entries.next().map(|entry| unsafe { Box::from_raw(entry) }));
    }
}

default_by!(new, impl<V: Weigh + Send + Sync + 'static> Default for IdMap<V>);

shown_as_all!(
    [V: Send + Sync + fmt::Debug + 'static, D: DomainTag] IdMap<V, D>, debug_map,
    |map| &map.read()
);
