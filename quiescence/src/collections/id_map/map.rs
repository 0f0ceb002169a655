//! [`IdMap`]: what its users see.

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use std::panic::Location;
use std::ptr::{self, NonNull};

use super::chunk::Entry;
use super::id::{Id, Mark};
use super::reader::IdMapRef;
use super::retire::ReplaceError;
use super::table::{Claim, Table};
use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::domain::sections;
use crate::domain::tag::{DomainTag, Section};
use crate::os::percpu;
use crate::os::sync::const_unless_loom;
use crate::os::user_code::{self, Site};
use crate::reclaim::retire::AtLimit;
use crate::reclaim::weigh::{Scale, Weigh};
use crate::reclaim::{cache, debug_objects};

/// A table of values by ids that the table gives: as the kernel's IDR and XArray, and the ids of
/// System V's semaphores.
///
/// Readers look an id up without a lock, and write nothing. An [`Id`] is an index and a
/// *generation*: the index is used again when its entry has been removed, with the next generation,
/// so an old id finds nothing. Beside each value stand three [`Mark`]s, by which entries are found
/// without going through the others.
///
/// The keys are the table's to choose, or numbers ([`insert_at`](Self::insert_at), as of the pages
/// of a file). For keys of the program's own choice take a hash map.
///
/// `D` says which domain's guards protect the values: the global one, unless
/// [`new_in`](Self::new_in) says otherwise.
///
/// # Promises
/// - A look-up in a section finds the value that the id has, whole. It stays valid as long as the
///   section.
/// - Of two threads that remove an entry, or take an index, one does.
/// - An entry that is there all through an iteration is found by it, once; one that has a mark all
///   through a search for it, too. What comes, goes or changes meanwhile may be found or not.
/// - No value is moved when the table grows, and no reader waits.
/// - No id of [`insert`](Self::insert), [`insert_with`](Self::insert_with) and
///   [`insert_in`](Self::insert_in) names two entries: an index that has had 2^32 - 1 generations
///   is not used again. Ids of `insert_at` wrap.
///
/// # Memory
/// A value is in a box, with its generation. What was removed or replaced waits, and counts against
/// the domain's limits ([`Tuning`](crate::tuning::Tuning)) as in an [`Rcu`](crate::Rcu), with the
/// bytes that [`Weigh`] says. Indexes stand in chunks of 512, which take 13 bytes an index and are
/// given back when the map is dropped. Few entries that are far apart take a chunk each, and in the
/// worst case 140 MiB of address space for tables of chunks, of which the system gives what is
/// written.
///
/// # Progress and cost
/// A look-up is wait-free: five loads that depend on each other, of which the first two are hot. An
/// insertion claims the index by an exchange on a word of 64, and stores the pointer: it is
/// lock-free but for the allocator and the first one in a chunk. Where a thread has freed no index,
/// CPUs insert into chunks of their own when the first is full. A removal or replacement is one
/// exchange, and one more to give the index back; then it retires the value, which may wait: see
/// [`Rcu::store`](crate::Rcu::store). To set or clear a mark, or to remove an entry that has one,
/// takes a lock of its chunk for a few instructions.
///
/// # Source
/// The interfaces are those of the kernel's IDR (Jim Houston) and XArray (Matthew Wilcox); ids with
/// generations are System V's sequence numbers, and the slot maps of games. Segments of doubling
/// size that do not move: Dechev, Pirkelbauer and Stroustrup (OPODIS 2006).
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
/// assert_eq!(next.index(), id.index()); // the index is used again
/// assert!(sessions.read().get(id).is_none()); // and the old id finds nothing
/// ```
pub struct IdMap<V: Send + Sync + 'static, D: DomainTag = Global> {
    pub(super) table: Table<V>,
    pub(super) scale: Scale<V>,
    pub(super) domain: Domain<D>,
}

impl<V: Send + Sync + 'static> IdMap<V> {
    const_unless_loom! {
        /// An empty map in the global domain; may be a static. Allocates nothing.
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

        /// An empty map in the global domain, for values of a type that does not implement
        /// [`Weigh`]; may be a static. See [`Rcu::with_weight`](crate::Rcu::with_weight).
        pub fn with_weight(weight: fn(&V) -> usize) -> Self {
            Self::with_weight_in(weight, Domain::global())
        }
    }
}

impl<V: Send + Sync + 'static, D: DomainTag> IdMap<V, D> {
    const_unless_loom! {
        /// An empty map in `domain`; may be a static, if the domain is a declared one.
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

        /// As [`with_weight`](IdMap::with_weight), in `domain`.
        pub fn with_weight_in(weight: fn(&V) -> usize, domain: Domain<D>) -> Self {
            Self { table: Table::new(), scale: Scale::by(weight), domain }
        }
    }

    /// Begins a section, and gives it and the map in one.
    ///
    /// # Panics
    /// As [`Domain::read`].
    #[inline]
    #[track_caller]
    pub fn read(&self) -> IdMapRef<'_, V, D, D::Section<'_>> {
        IdMapRef { map: self, section: self.section() }
    }

    /// The same under a section that the caller has: of a [`Reader`](crate::Reader), a
    /// [`Qsbr`](crate::Qsbr), or one for several maps.
    ///
    /// # Panics
    /// As [`get`](Self::get).
    #[inline]
    pub fn read_in<'s, G: Section<D>>(&'s self, section: &'s G) -> IdMapRef<'s, V, D, &'s G> {
        sections::check_section!(section, &self.domain, "map");
        IdMapRef { map: self, section }
    }

    #[inline(always)]
    #[track_caller]
    fn section(&self) -> D::Section<'_> {
        self.domain.tag().enter(Location::caller())
    }

    /// The value that an id has now. It stays valid as long as the section, whatever becomes of the
    /// entry.
    ///
    /// Wait-free.
    ///
    /// # Panics
    /// If the section is one of another domain (checked when the program runs only where the types
    /// do not tell). In debug builds also if the value has been retired by unsafe code.
    #[inline]
    pub fn get<'s, S: Section<D>>(&'s self, id: Id, section: &'s S) -> Option<&'s V> {
        self.find(id, section).map(|entry| &entry.value)
    }

    /// Whether an id finds a value now.
    #[track_caller]
    pub fn contains(&self, id: Id) -> bool {
        self.find(id, &self.section()).is_some()
    }

    /// Inserts a value at a free index, and gives its id. The index is a low one: one that this
    /// thread has freed not long ago, if it is still free, or one that was free all the time.
    ///
    /// # Panics
    /// If all 2^32 indexes are in use, or were used up. See [`try_insert`](Self::try_insert).
    #[track_caller]
    pub fn insert(&self, value: V) -> Id {
        self.insert_with(|_| value)
    }

    /// As [`insert`](Self::insert), but gives the value back where that would panic.
    ///
    /// # Errors
    /// `value`, if all 2^32 indexes are in use, or were used up.
    pub fn try_insert(&self, value: V) -> Result<Id, V> {
        publish(self.table.claim(percpu::slot()), value)
    }

    /// Inserts the value that `make` makes of its id. No reader finds the id before that.
    ///
    /// If `make` panics, nothing is inserted, and the id is no entry's for ever. Meanwhile the
    /// index is taken: [`insert_at`](Self::insert_at) finds it so, and [`len`](Self::len) counts
    /// it.
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
        let claim = self.table.claim(percpu::slot());
        let claim = claim.expect("quiescence: all indexes of an IdMap are in use");
        let id = claim.id;
        let value = user_code::run(Site::Make, || make(id));
        claim.publish(NonNull::from(Box::leak(boxed(id, value))))
    }

    /// Inserts a value at the lowest free index of a range: for ids that must not be greater than
    /// some number, and for numbers that begin at one.
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
    /// `value`, if none of them is free.
    pub fn insert_in(&self, indexes: impl RangeBounds<u32>, value: V) -> Result<Id, V> {
        publish(self.table.claim_in_range(half_open(&indexes)), value)
    }

    /// Inserts a value at this index, if it is free: for entries that have numbers of their own, as
    /// the pages of a file.
    ///
    /// An index where another thread inserts or removes at this moment is not free: of threads that
    /// insert at one index at once, one does. When a removal has returned, the index is free.
    ///
    /// # Errors
    /// `value`, if the index is taken.
    pub fn insert_at(&self, index: u32, value: V) -> Result<Id, V> {
        publish(self.table.claim_at(index), value)
    }

    /// Removes an entry; its value is dropped after a grace period. Returns whether there was one:
    /// among several threads that remove one entry, to one. May wait where
    /// [`Domain::retire`] may, and may drop values that were removed earlier: see there about
    /// locks.
    ///
    /// # Panics
    /// In a section, at the domain's limit, if this thread has gone over the limit in it before:
    /// there it can neither wait nor add to what waits. Nothing has changed then. See
    /// [`try_remove`](Self::try_remove).
    ///
    /// In a [sleepable domain](crate::Srcu#at-the-limit) the caller's section is not known: there
    /// it waits for 10 ms at most, and then goes over the limit. It never panics there.
    #[track_caller]
    pub fn remove(&self, id: Id) -> bool {
        self.remove_if(id.index(), |generation| generation == id.generation())
    }

    /// As [`remove`](Self::remove), for the entry that stands at an index, whatever its id.
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
        // SAFETY: in a section of the map's domain.
        let old = unsafe { self.table.unlink(index, |entry| is_meant(entry.generation)) };
        // Retire after the section: a reader never waits and never frees.
        drop(section);
        // SAFETY: it was taken out, once.
        old.inspect(|old| unsafe { self.retire(*old) }).is_some()
    }

    /// As [`remove`](Self::remove), but never waits, nor goes over the limit.
    ///
    /// # Errors
    /// There is no room for what would be removed: it is still there. The limit may be reached
    /// before so much waits: see [`Domain::try_retire`].
    #[track_caller]
    pub fn try_remove(&self, id: Id) -> Result<bool, AtLimit> {
        Ok(self.take_if_room(id, |section| self.unlink_in(id, section))?.is_some())
    }

    /// Replaces the value of an entry; the old one is dropped after a grace period. The id and the
    /// marks stay. May wait as [`remove`](Self::remove).
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
        let old = self.replace_in(id, None, boxed(id, value), &section);
        drop(section);
        // SAFETY: it was taken out, once.
        old.map(|old| unsafe { self.retire(old) }).map_err(|new| new.value)
    }

    /// As [`replace`](Self::replace), but never waits, nor goes over the limit.
    ///
    /// # Errors
    /// `value`, if the id finds nothing, or there is no room for the value that would be replaced.
    #[track_caller]
    pub fn try_replace(&self, id: Id, value: V) -> Result<(), ReplaceError<V>> {
        let mut value = Some(value);
        let replaced = self.take_if_room(id, |section| {
            let result = self.replace_in(id, None, boxed(id, value.take()?), section);
            result.map_err(|refused| value = Some(refused.value)).ok()
        });
        match (replaced, value) {
            (_, None) => Ok(()),
            (Ok(_), Some(value)) => Err(ReplaceError::NotFound(value)),
            (Err(_), Some(value)) => Err(ReplaceError::AtLimit(value)),
        }
    }

    /// Replaces the value of an entry by `f` of it; if another update comes between, `f` is called
    /// again with the newer value. Returns whether there was one. The id and the marks stay. If `f`
    /// panics, nothing has changed.
    ///
    /// `f` runs inside a section: to wait for a grace period there panics.
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
            match self.replace_in(id, Some(current), boxed(id, value), &section) {
                Ok(old) => break Some(old),
                // Before `f` is called again, which may wait for what the value has.
                Err(refused) => user_code::run(Site::Drop, || drop(refused)),
            }
        };
        drop(section);
        // SAFETY: it was taken out, once.
        old.inspect(|old| unsafe { self.retire(*old) }).is_some()
    }

    /// Whether an entry has a mark now.
    #[track_caller]
    pub fn is_marked(&self, id: Id, mark: Mark) -> bool {
        let _section = self.section();
        let word = self.table.load(id.index());
        // SAFETY: null, or loaded under the section.
        let entry = unsafe { word.entry().as_ref() };
        entry.is_some_and(|entry| entry.generation == id.generation()) && word.has(mark)
    }

    /// Gives an entry a mark. Returns whether that changed anything: not, if it has the mark, or if
    /// the id finds nothing. Of several threads that do this at once, it returns `true` to one. A
    /// search that begins when this has returned finds the entry.
    ///
    /// An entry that is removed loses its marks; one that comes to its index later has none.
    #[track_caller]
    pub fn set_mark(&self, id: Id, mark: Mark) -> bool {
        self.change_marks(id, None, Some(mark))
    }

    /// Takes a mark from an entry. Returns whether that changed anything.
    #[track_caller]
    pub fn clear_mark(&self, id: Id, mark: Mark) -> bool {
        self.change_marks(id, Some(mark), None)
    }

    /// Takes the mark `from` from an entry and gives it `to`, at one moment, if it has `from` and
    /// not `to`. Returns whether it did. Of several threads that do this at once, it returns `true`
    /// to one: to write a page back that was dirty, while no other thread does. Nothing happens if
    /// both are the same mark.
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

    /// How many entries there are. Beside updates: how many there were at some moments of the call,
    /// part by part, with those that are being inserted.
    ///
    /// Costs a load for each 64 indexes in use.
    pub fn len(&self) -> usize {
        self.table.count() as usize
    }

    /// Whether there is no entry. Costs as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the entries that are there; those that come meanwhile may stay.
    ///
    /// # Panics
    /// As [`remove`](Self::remove). Some of them have been removed then.
    #[track_caller]
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }

    /// Removes the entries for which `keep` says `false`, each at a moment of its own. `keep` runs
    /// inside a section.
    ///
    /// # Panics
    /// As [`remove`](Self::remove). Some of them have been removed then.
    #[track_caller]
    pub fn retain(&self, mut keep: impl FnMut(Id, &V) -> bool) {
        let mut next = Bound::Unbounded;
        loop {
            let reader = self.read();
            let mut entries = reader.range((next, Bound::Unbounded));
            let Some((id, _)) =
                entries.find(|(id, value)| !user_code::run(Site::Choose, || keep(*id, value)))
            else {
                return;
            };
            drop(reader);
            self.remove(id);
            next = Bound::Excluded(id.index());
        }
    }

    /// The domain whose sections protect the values.
    pub fn domain(&self) -> &Domain<D> {
        &self.domain
    }

    #[inline]
    pub(super) fn find_at<'s, S: Section<D>>(
        &'s self,
        index: u32,
        section: &'s S,
    ) -> Option<&'s Entry<V>> {
        sections::check_section!(section, &self.domain, "map");
        let entry = self.table.load(index).entry();
        debug_objects::check_reachable(entry.cast_const().cast(), || {
            ptr::eq(self.table.load(index).entry(), entry)
        });
        // SAFETY: null, or loaded under the section, which lasts as long as `'s`.
        unsafe { entry.as_ref() }
    }

    #[inline]
    pub(super) fn find<'s, S: Section<D>>(
        &'s self,
        id: Id,
        section: &'s S,
    ) -> Option<&'s Entry<V>> {
        self.find_at(id.index(), section).filter(|entry| entry.generation == id.generation())
    }

    pub(super) fn unlink_in<S: Section<D>>(
        &self,
        id: Id,
        section: &S,
    ) -> Option<NonNull<Entry<V>>> {
        sections::check_section!(section, &self.domain, "map");
        // SAFETY: in a section of the map's domain.
        unsafe { self.table.unlink(id.index(), |entry| entry.generation == id.generation()) }
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
        sections::check_section!(section, &self.domain, "map");
        let new = NonNull::from(Box::leak(new));
        // SAFETY: in a section of the map's domain; an entry of ours.
        unsafe { self.table.replace(id, expected.map(ptr::from_ref), new) }.ok_or_else(|| {
            // SAFETY: the box of above, which was not published.
            unsafe { Box::from_raw(new.as_ptr()) }
        })
    }
}

/// Puts a value where the claim is; gives it back if there is none.
fn publish<V>(claim: Option<Claim<'_, V>>, value: V) -> Result<Id, V> {
    let Some(claim) = claim else { return Err(value) };
    let id = claim.id;
    Ok(claim.publish(NonNull::from(Box::leak(boxed(id, value)))))
}

/// The entry of an id.
pub(super) fn boxed<V>(id: Id, value: V) -> Box<Entry<V>> {
    cache::boxed(Entry { generation: id.generation(), value })
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
        // SAFETY: from a box; no thread can hold a reference that was loaded from here, since such
        // a reference borrows `self`.
        let free = |entry| drop(unsafe { Box::from_raw(entry) });
        self.table.drain(|entry| user_code::run(Site::Drop, || free(entry)));
    }
}

impl<V: Weigh + Send + Sync + 'static> Default for IdMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Send + Sync + fmt::Debug + 'static, D: DomainTag> fmt::Debug for IdMap<V, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

/// What is in it is weighed where it is removed or replaced there.
impl<V: Send + Sync + 'static, D: DomainTag> Weigh for IdMap<V, D> {
    const OWNS: bool = false;
}
