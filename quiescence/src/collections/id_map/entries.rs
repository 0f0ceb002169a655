//! Iterators over entries: of a range, or with a mark.

use std::fmt;
use std::iter::FusedIterator;

use super::id::{Id, Mark};
use super::table::{Indexes, Table};

/// Entries of an [`IdMap`](super::IdMap) with their ids, in ascending order of their indexes. See
/// [`range`](super::IdMapRef::range) and [`marked`](super::IdMapRef::marked).
pub struct Entries<'s, V> {
    indexes: Indexes<'s, V>,
}

impl<'s, V> Entries<'s, V> {
    /// # Safety
    /// The caller is in a section, under which entries are not freed, as long as `'s`.
    pub(super) unsafe fn new(
        table: &'s Table<V>,
        mark: Option<Mark>,
        range: std::ops::Range<u64>,
    ) -> Self {
        Self { indexes: Indexes::new(table, mark, range) }
    }
}

impl<'s, V> Iterator for Entries<'s, V> {
    type Item = (Id, &'s V);

    fn next(&mut self) -> Option<(Id, &'s V)> {
        loop {
            let (index, word) = self.indexes.next_word()?;
            // SAFETY: loaded in the section, by the contract of `new`; it lasts as long.
            let Some(entry) = (unsafe { word.entry().as_ref() }) else { continue };
            if let Some(id) = Id::new(index, entry.generation) {
                return Some((id, &entry.value));
            }
        }
    }
}

impl<V> FusedIterator for Entries<'_, V> {}

impl<V> Clone for Entries<'_, V> {
    fn clone(&self) -> Self {
        Self { indexes: self.indexes.clone() }
    }
}

impl<V: fmt::Debug> fmt::Debug for Entries<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}
