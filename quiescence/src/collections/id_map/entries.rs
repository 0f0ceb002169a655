//! Iterators over entries: of a range, or with a mark.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

use super::chunk::{SLOTS, WORD_BITS, WORDS, in_word};
use super::directory::Kind;
use super::id::{Id, Mark};
use super::table::{INDEXES, Table};
use crate::collections::impls::shown_as_all;

/// Entries of an [`IdMap`](super::IdMap) with their ids, in ascending order of their indexes. See
/// [`range`](super::IdMapRef::range) and [`marked`](super::IdMapRef::marked).
pub struct Entries<'s, V> {
    table: &'s Table<V>,
    mark: Option<Mark>,
    /// Where the search continues once `bits` is 0.
    from: u64,
    end: u64,
    /// The bits of a word that are left, and the index of its first bit.
    bits: u64,
    first: u64,
}

impl<'s, V> Entries<'s, V> {
    /// # Safety
    /// The caller is in a section, under which entries are not freed, as long as `'s`.
    pub(super) unsafe fn new(table: &'s Table<V>, mark: Option<Mark>, range: Range<u64>) -> Self {
        let end = range.end.min(INDEXES);
        Self { table, mark, from: range.start, end, bits: 0, first: 0 }
    }

    /// The next index that is used, or whose slot may have the mark.
    pub(super) fn next_index(&mut self) -> Option<u32> {
        if self.bits == 0 {
            self.fill()?;
        }
        let lowest = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some((self.first + u64::from(lowest)) as u32)
    }

    /// Finds the next word with a bit.
    fn fill(&mut self) -> Option<()> {
        let kind = self.mark.map_or(Kind::Made, Kind::Marked);
        let chunks = self.end.div_ceil(SLOTS as u64) as usize;
        while self.from < self.end {
            let directory = &self.table.directory;
            let next = directory.next(kind, true, self.from as usize / SLOTS, chunks);
            let Some(number) = next else {
                self.from = self.end; // and there it stays
                break;
            };
            let first = (number * SLOTS) as u64;
            self.from = self.from.max(first);
            let Some(chunk) = directory.chunk(number) else {
                self.from = first + SLOTS as u64; // it is being made
                continue;
            };
            let bits = self.mark.map_or(&chunk.used, |mark| &chunk.marked[mark as usize]);
            let places =
                (self.from - first) as usize..(self.end - first).min(SLOTS as u64) as usize;
            for word in places.start / WORD_BITS..WORDS {
                self.bits = bits.word(word) & in_word(&places, word);
                self.first = first + (word * WORD_BITS) as u64;
                self.from = self.first + WORD_BITS as u64;
                if self.bits != 0 {
                    return Some(());
                }
            }
        }
        None
    }
}

impl<'s, V> Iterator for Entries<'s, V> {
    type Item = (Id, &'s V);

    fn next(&mut self) -> Option<(Id, &'s V)> {
        loop {
            let index = self.next_index()?;
            let word = self.table.load(index);
            if self.mark.is_some_and(|mark| !word.has(mark)) {
                continue;
            }
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
        Self { ..*self }
    }
}

shown_as_all!([V: fmt::Debug] Entries<'_, V>, debug_map, |rest| rest.clone());
