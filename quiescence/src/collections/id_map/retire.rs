//! Retires entries that were taken out, within the domain's limit.

use std::fmt;
use std::panic::Location;
use std::ptr::NonNull;

use super::chunk::Entry;
use super::id::Id;
use super::map::IdMap;
use crate::domain::sections;
use crate::domain::tag::DomainTag;
use crate::reclaim::free::AtLimit;
use crate::reclaim::free::Pending;
use crate::reclaim::unlink;

/// Why [`IdMap::try_replace`](super::IdMap::try_replace) has replaced nothing, together with the
/// value that was passed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceError<V> {
    /// The id finds nothing.
    NotFound(V),
    /// See [`AtLimit`](crate::AtLimit).
    AtLimit(V),
}

impl<V> ReplaceError<V> {
    /// Returns the value.
    pub fn into_inner(self) -> V {
        match self {
            Self::NotFound(value) | Self::AtLimit(value) => value,
        }
    }
}

impl<V> fmt::Display for ReplaceError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(_) => f.write_str("the id finds nothing"),
            Self::AtLimit(_) => AtLimit::unchanged(()).fmt(f),
        }
    }
}

impl<V: fmt::Debug> std::error::Error for ReplaceError<V> {}

#[cold]
#[track_caller]
fn refuse(what: &str) -> ! {
    sections::refuse(&format!("IdMap::{what}"), &format!("try_{what}()"));
}

impl<V: Send + Sync + 'static, D: DomainTag> IdMap<V, D> {
    /// What an entry is charged.
    fn charge(&self, entry: &Entry<V>) -> usize {
        self.scale.charge::<Entry<V>>(self.domain.tag().core(), &entry.value)
    }

    /// Refuses to take an entry out where it could be neither retired nor waited for.
    #[track_caller]
    pub(super) fn may_retire(&self, what: &str) {
        if !unlink::may_replace(self.domain.tag(), self.scale.constant::<Entry<V>>()) {
            refuse(what);
        }
    }

    /// Retires an entry. May wait, outside of sections.
    ///
    /// # Safety
    /// It was in the table, and the caller has taken it out.
    #[track_caller]
    pub(super) unsafe fn retire(&self, entry: NonNull<Entry<V>>) {
        // SAFETY: by the contract; others may read it, and V is Sync.
        let bytes = self.charge(unsafe { entry.as_ref() });
        let tag = self.domain.tag();
        // SAFETY: from a box, by the contract, and out of reach.
        let entry = unsafe { Pending::boxed(tag.core(), entry.as_ptr()) };
        unlink::retire_box(tag, entry, bytes);
    }

    /// Takes the entry of an id out by `take`, if there is room for it, and retires it. `take` is
    /// given the entry that was weighed, and takes no other: a value that has replaced it meanwhile
    /// is weighed as well.
    #[track_caller]
    pub(super) fn take_if_room(
        &self,
        id: Id,
        mut take: impl FnMut(&D::Section<'_>, &Entry<V>) -> Option<NonNull<Entry<V>>>,
    ) -> Result<bool, AtLimit> {
        let tag = self.domain.tag();
        let section = tag.enter(Location::caller());
        while let Some(entry) = self.find(id, &section) {
            let bytes = self.charge(entry);
            let room = unlink::reserve_any(tag, bytes).ok_or(AtLimit::unchanged(()))?;
            let Some(taken) = take(&section, entry) else {
                room.put_back(tag.core());
                continue;
            };
            drop(section);
            // SAFETY: from a box, and out of reach: it was taken out just now.
            let taken = unsafe { Pending::boxed(tag.core(), taken.as_ptr()) };
            room.retire_as_reserved(tag, taken);
            return Ok(true);
        }
        Ok(false)
    }
}
