//! A map with a section: [`IdMapRef`].

use std::fmt;
use std::ops::RangeBounds;

use super::chunk::Entry;
use super::entries::Entries;
use super::id::{Id, Mark};
use super::map::{IdMap, half_open};
use crate::collections::impls::{iterated, shown_as_all, view};
use crate::domain::tag::{DomainTag, Section};

/// A read-side critical section together with a map: returned by [`IdMap::read`]. References that
/// it hands out stay valid as long as this value, even if entries are removed or replaced. It
/// dereferences to the [`IdMap`] for all other methods.
///
/// ```
/// use quiescence::collections::IdMap;
///
/// let map = IdMap::new();
/// let id = map.insert(String::from("a"));
/// let reader = map.read();
/// let seen = reader.get(id).unwrap();
/// assert_eq!(reader.remove(id), Some(seen)); // still valid until the reader is dropped
/// assert_eq!(reader.get(id), None);
/// ```
#[must_use = "the section ends when the reader is dropped"]
pub struct IdMapRef<'m, V: Send + Sync + 'static, D: DomainTag, G> {
    pub(super) map: &'m IdMap<V, D>,
    pub(super) section: G,
}

view!(
    [V: Send + Sync + 'static, D: DomainTag, G] IdMapRef<'_, V, D, G>, map: IdMap<V, D>,
    section: Section<D> where G: Section<D>
);

impl<V: Send + Sync + 'static, D: DomainTag, G: Section<D>> IdMapRef<'_, V, D, G> {
    /// As [`IdMap::get`].
    #[inline]
    #[track_caller]
    pub fn get(&self, id: Id) -> Option<&V> {
        self.map.get(id, self)
    }

    /// Returns the current value at an index, with its id.
    ///
    /// Wait-free.
    #[inline]
    #[track_caller]
    pub fn get_at(&self, index: u32) -> Option<(Id, &V)> {
        let entry = self.map.find_at(index, self)?;
        Some((Id::new(index, entry.generation)?, &entry.value))
    }

    /// Iterates over all entries, in ascending order of their indexes.
    ///
    /// Wait-free. Costs a load for each 64 chunks, and for each 64 indexes in existing chunks.
    pub fn iter(&self) -> Entries<'_, V> {
        self.range(..)
    }

    /// Iterates over the entries in a range of indexes, in ascending order.
    ///
    /// ```
    /// use quiescence::collections::IdMap;
    ///
    /// let pages = IdMap::new();
    /// for page in [3, 70_000, 4_000_000_000] {
    ///     pages.insert_at(page, "page").unwrap();
    /// }
    /// let pages = pages.read();
    /// let mut found = pages.range(4..).map(|(id, _)| id.index());
    /// assert!(found.eq([70_000, 4_000_000_000]));
    /// ```
    pub fn range(&self, indexes: impl RangeBounds<u32>) -> Entries<'_, V> {
        // SAFETY: the section lasts as long as `self`.
        unsafe { Entries::new(&self.map.table, None, half_open(&indexes)) }
    }

    /// Iterates over the entries in a range of indexes that have a mark, in ascending order.
    /// Entries without the mark are not visited, nor are chunks of 512 without such an entry.
    pub fn marked(&self, mark: Mark, indexes: impl RangeBounds<u32>) -> Entries<'_, V> {
        // SAFETY: as in `range`.
        unsafe { Entries::new(&self.map.table, Some(mark), half_open(&indexes)) }
    }

    /// Removes an entry, and returns its value, which is dropped a grace period later. If several
    /// threads remove the same entry, one gets it.
    ///
    /// # Panics
    /// At the domain's limit, if this thread has already removed or replaced a value over the limit
    /// in the section, in which it may not wait. The entry is still present then. See
    /// [`IdMap::try_remove`]. (In a sleepable domain it waits for at most 10 ms, then exceeds the
    /// limit.)
    #[track_caller]
    pub fn remove(&self, id: Id) -> Option<&V> {
        self.map.may_retire("remove");
        let is_meant = |generation, _| generation == id.generation();
        let old = self.map.table.unlink(id.index(), is_meant)?;
        // SAFETY: it was taken out in this section, and is not freed before its end.
        let value = unsafe { &old.as_ref().value };
        // SAFETY: it was taken out, once.
        unsafe { self.map.retire(old) };
        Some(value)
    }

    /// Replaces the value of an entry, and returns the old one, which is dropped a grace period
    /// later. The id and the marks stay.
    ///
    /// # Errors
    /// `value`, if the id finds nothing.
    ///
    /// # Panics
    /// As [`remove`](Self::remove).
    #[track_caller]
    pub fn replace(&self, id: Id, value: V) -> Result<&V, V> {
        self.map.may_retire("replace");
        let old = self.map.replace_in(id, None, Entry::boxed(id, value), self);
        let old = old.map_err(|new| new.value)?;
        // SAFETY: as in `remove`.
        let value = unsafe { &old.as_ref().value };
        // SAFETY: it was taken out, once.
        unsafe { self.map.retire(old) };
        Ok(value)
    }
}

iterated!(
    ['r, V: Send + Sync + 'static, D: DomainTag, G: Section<D>]
    &'r IdMapRef<'_, V, D, G>, (Id, &'r V), Entries<'r, V>
);

shown_as_all!(
    [V: Send + Sync + fmt::Debug + 'static, D: DomainTag, G: Section<D>]
    IdMapRef<'_, V, D, G>, debug_map, |map| map
);
