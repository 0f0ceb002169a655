//! A section and a map in one: [`IdMapRef`].

use std::fmt;
use std::ops::RangeBounds;

use super::entries::Entries;
use super::id::{Id, Mark};
use super::map::IdMap;
use crate::domain::guard::Global;
use crate::domain::tag::{DomainTag, Section};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::retire::AtLimit;

/// A read-side critical section and a map: what [`IdMap::read`] gives. What it hands out stays
/// valid as long as it, whatever becomes of the entries.
///
/// ```
/// use quiescence::collections::IdMap;
///
/// let map = IdMap::new();
/// let id = map.insert(String::from("a"));
/// let reader = map.read();
/// let seen = reader.get(id).unwrap();
/// assert_eq!(reader.remove(id), Some(seen)); // still good, until the reader is dropped
/// assert_eq!(reader.get(id), None);
/// ```
#[must_use = "the section ends when the reader is dropped"]
pub struct IdMapRef<'m, V: Send + Sync + 'static, D: DomainTag = Global> {
    pub(super) map: &'m IdMap<V, D>,
    pub(super) section: D::Section<'m>,
}

// SAFETY: a section of the domain lasts as long.
unsafe impl<V: Send + Sync + 'static, D: DomainTag> Section<D> for IdMapRef<'_, V, D> {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        self.section.core()
    }
}

impl<'m, V: Send + Sync + 'static, D: DomainTag> IdMapRef<'m, V, D> {
    /// As [`IdMap::get`].
    #[inline]
    pub fn get(&self, id: Id) -> Option<&V> {
        self.map.get(id, self)
    }

    /// As [`IdMap::get_at`].
    #[inline]
    pub fn get_at(&self, index: u32) -> Option<(Id, &V)> {
        self.map.get_at(index, self)
    }

    /// As [`IdMap::contains`].
    #[inline]
    pub fn contains(&self, id: Id) -> bool {
        self.get(id).is_some()
    }

    /// As [`IdMap::iter`].
    pub fn iter(&self) -> Entries<'_, V> {
        self.map.iter(self)
    }

    /// As [`IdMap::range`].
    pub fn range(&self, indexes: impl RangeBounds<u32>) -> Entries<'_, V> {
        self.map.range(indexes, self)
    }

    /// As [`IdMap::marked`].
    pub fn marked(&self, mark: Mark, indexes: impl RangeBounds<u32>) -> Entries<'_, V> {
        self.map.marked(mark, indexes, self)
    }

    /// As [`IdMap::is_marked`].
    pub fn is_marked(&self, id: Id, mark: Mark) -> bool {
        self.map.is_marked_in(id, mark, self)
    }

    /// As [`IdMap::set_mark`].
    pub fn set_mark(&self, id: Id, mark: Mark) -> bool {
        self.map.change_marks_in(id, None, Some(mark), self)
    }

    /// As [`IdMap::clear_mark`].
    pub fn clear_mark(&self, id: Id, mark: Mark) -> bool {
        self.map.change_marks_in(id, Some(mark), None, self)
    }

    /// As [`IdMap::swap_mark`].
    pub fn swap_mark(&self, id: Id, from: Mark, to: Mark) -> bool {
        self.map.change_marks_in(id, Some(from), Some(to), self)
    }

    /// Takes an entry out, and gives its value, which is dropped a grace period later. Among
    /// several threads that remove one entry, one gets it.
    ///
    /// # Panics
    /// At the domain's limit, if this thread has removed or replaced a value over the limit in the
    /// section before: here it can wait for nothing. The entry is still there then. See
    /// [`try_remove`](Self::try_remove). (In a sleepable domain it waits for 10 ms at most, and
    /// then goes over the limit.)
    #[track_caller]
    pub fn remove(&self, id: Id) -> Option<&V> {
        self.map.may_retire("remove");
        let old = self.map.unlink_in(id, self)?;
        // SAFETY: it was taken out in this section, and is not freed before its end.
        let value = unsafe { &old.as_ref().value };
        // SAFETY: it was taken out, once.
        unsafe { self.map.retire(old) };
        Some(value)
    }

    /// As [`remove`](Self::remove), but leaves the entry where that would panic, or go over the
    /// limit: never waits.
    ///
    /// # Errors
    /// There is no room for what would be removed.
    #[track_caller]
    pub fn try_remove(&self, id: Id) -> Result<Option<&V>, AtLimit> {
        let old = self.map.try_take(id)?;
        // SAFETY: as in `remove`.
        Ok(old.map(|old| unsafe { &old.as_ref().value }))
    }

    /// Replaces the value of an entry, and gives the old one, which is dropped a grace period
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
        let old = self.map.replace_in(id, value, self)?;
        // SAFETY: as in `remove`.
        let value = unsafe { &old.as_ref().value };
        // SAFETY: it was taken out, once.
        unsafe { self.map.retire(old) };
        Ok(value)
    }
}

impl<V: Send + Sync + fmt::Debug + 'static, D: DomainTag> fmt::Debug for IdMapRef<'_, V, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
