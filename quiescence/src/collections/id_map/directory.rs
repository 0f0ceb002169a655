//! Where the chunks are, and which of them searches need not look into.
//!
//! Chunks are made when an index of theirs is claimed first, and stay where they are until the map
//! ends. Their addresses stand in tables of doubling size, which do not move either: the table of a
//! chunk is named by the length of the chunk's number in bits, and all tables are read at that
//! number, so that the lower half of each but the first is unused (memory that the system does not
//! give before it is written). Beside each table stands a summary: a few bits for each chunk.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::chunk::{Chunk, SLOTS};
use super::id::{MARKS, Mark};
use crate::os::sync::{AtomicPtr, AtomicU64};

/// Chunks of the first table, as a power of two.
const FIRST_SHIFT: u32 = if cfg!(loom) { 1 } else { 6 };
/// More chunks than that has no map: 2^32 indexes.
pub(super) const CHUNKS_MAX: usize = if cfg!(loom) { 2 } else { (1 << 32) / SLOTS };
const TABLES: usize = (CHUNKS_MAX.ilog2() - FIRST_SHIFT + 1) as usize;

/// Chunks of one word of a summary.
const GROUP: usize = 64;

/// What a summary says of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has been made.
    Made,
    /// No index of it was free when it was looked at, and none has become free since.
    Full,
    /// One of its slots may have the mark; whenever no thread changes its marks, one has it, or an
    /// entry is being taken out.
    Marked(Mark),
}

const KINDS: usize = 2 + MARKS;

impl Kind {
    fn number(self) -> usize {
        match self {
            Self::Made => 0,
            Self::Full => 1,
            Self::Marked(mark) => 2 + mark as usize,
        }
    }
}

/// The chunks of a map.
#[derive(Debug)]
pub(super) struct Directory<V> {
    /// Tables of chunks.
    tables: [AtomicPtr<AtomicPtr<Chunk<V>>>; TABLES],
    /// Of each table, [`KINDS`] words for each group of chunks.
    summaries: [AtomicPtr<AtomicU64>; TABLES],
}

/// The table of a chunk.
#[inline(always)]
const fn table_of(number: usize) -> usize {
    ((number | ((1 << FIRST_SHIFT) - 1)).ilog2() - (FIRST_SHIFT - 1)) as usize
}

/// Where a table ends: one more than the number of its last chunk.
const fn end_of(table: usize) -> usize {
    1 << (FIRST_SHIFT as usize + table)
}

/// Words of a table's summary.
const fn words_of(table: usize) -> usize {
    end_of(table).div_ceil(GROUP) * KINDS
}

impl<V> Directory<V> {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self {
            tables: [const { AtomicPtr::new(ptr::null_mut()) }; TABLES],
            summaries: [const { AtomicPtr::new(ptr::null_mut()) }; TABLES],
        }
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self {
            tables: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            summaries: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// The chunk with this number, which is less than [`CHUNKS_MAX`], if it has been made.
    #[inline(always)]
    pub(super) fn chunk(&self, number: usize) -> Option<&Chunk<V>> {
        // Acquire: pairs with the Release in `lasting` [ID-1]; the table was made before.
        let table = self.tables[table_of(number)].load(Acquire);
        if table.is_null() {
            return None;
        }
        // SAFETY: the table of this number has more entries than that, and lasts.
        let place = unsafe { &*table.wrapping_add(number) };
        // SAFETY: null, or a chunk, which lasts. Acquire: as above, with `make` [ID-1].
        unsafe { place.load(Acquire).as_ref() }
    }

    /// The chunk with this number, which is made if need be.
    pub(super) fn made(&self, number: usize) -> &Chunk<V> {
        match self.chunk(number) {
            Some(chunk) => chunk,
            None => self.make(number),
        }
    }

    #[cold]
    fn make(&self, number: usize) -> &Chunk<V> {
        let of_number = table_of(number);
        let table = lasting(&self.tables[of_number], end_of(of_number));
        self.set(Kind::Made, number);
        // SAFETY: as in `chunk`.
        let place = unsafe { &*table.wrapping_add(number) };
        let new = Box::into_raw(Box::new(Chunk::new()));
        // AcqRel: pairs with the Acquire in `chunk` [ID-1]; the chunk was made before.
        let made = match place.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(first) => {
                // SAFETY: the box of above, which no other thread has seen.
                drop(unsafe { Box::from_raw(new) });
                first
            }
        };
        // SAFETY: a chunk that lasts.
        unsafe { &*made }
    }

    /// The word of a summary that has the chunk, if there is one.
    fn word(&self, kind: Kind, number: usize) -> Option<&AtomicU64> {
        // Acquire: as in `chunk` [ID-1].
        let summary = self.summaries[table_of(number)].load(Acquire);
        // SAFETY: a summary has so many words; it lasts.
        (!summary.is_null())
            .then(|| unsafe { &*summary.wrapping_add(number / GROUP * KINDS + kind.number()) })
    }

    fn word_or_new(&self, kind: Kind, number: usize) -> &AtomicU64 {
        let table = table_of(number);
        let summary = lasting(&self.summaries[table], words_of(table));
        // SAFETY: as in `word`.
        unsafe { &*summary.wrapping_add(number / GROUP * KINDS + kind.number()) }
    }

    /// Says so of a chunk.
    pub(super) fn set(&self, kind: Kind, number: usize) {
        let word = self.word_or_new(kind, number);
        // AcqRel: of `Full`, pairs with the Release in `clear` [ID-3]. For the others it matters
        // as little as in `Bits`.
        word.fetch_or(1 << (number % GROUP), AcqRel);
    }

    /// Says of a chunk that it is not so.
    pub(super) fn clear(&self, kind: Kind, number: usize) {
        if let Some(word) = self.word(kind, number) {
            // AcqRel: of `Full`, pairs with the Acquire in `set` [ID-3].
            word.fetch_and(!(1 << (number % GROUP)), AcqRel);
        }
    }

    /// The first chunk from `number` on, and before `end`, of which it is so, or is not so.
    pub(super) fn next(
        &self,
        kind: Kind,
        is_so: bool,
        mut number: usize,
        end: usize,
    ) -> Option<usize> {
        while number < end {
            // Relaxed: as in `Bits`.
            let word = self.word(kind, number).map_or(0, |word| word.load(Relaxed));
            let bits = if is_so { word } else { !word } >> (number % GROUP);
            if bits != 0 {
                let found = number + bits.trailing_zeros() as usize;
                return (found < end).then_some(found);
            }
            number = (number / GROUP + 1) * GROUP;
            if is_so && number < end && self.word(kind, number).is_none() {
                number = end_of(table_of(number)); // a table that there is not
            }
        }
        None
    }

    /// Calls `f` for each chunk.
    pub(super) fn each(&self, mut f: impl FnMut(&Chunk<V>)) {
        let mut number = 0;
        while let Some(found) = self.next(Kind::Made, true, number, CHUNKS_MAX) {
            self.chunk(found).map(&mut f);
            number = found + 1;
        }
    }
}

impl<V> Drop for Directory<V> {
    fn drop(&mut self) {
        let mut number = 0;
        while let Some(found) = self.next(Kind::Made, true, number, CHUNKS_MAX) {
            if let Some(chunk) = self.chunk(found) {
                // SAFETY: the box of `make`; nobody else is here.
                drop(unsafe { Box::from_raw(ptr::from_ref(chunk).cast_mut()) });
            }
            number = found + 1;
        }
        for table in 0..TABLES {
            // Relaxed: nobody else is here.
            let (chunks, summary) =
                (self.tables[table].load(Relaxed), self.summaries[table].load(Relaxed));
            // SAFETY: null, or what `lasting` made with this length.
            unsafe { free(chunks, end_of(table)) };
            // SAFETY: as above.
            unsafe { free(summary, words_of(table)) };
        }
    }
}

/// Atomics.
///
/// # Safety
/// The type has bytes, and all zero is a value of it, outside of loom.
unsafe trait Zero: Default {}

// SAFETY: null, and 0, are all zero.
unsafe impl<T> Zero for AtomicPtr<T> {}
// SAFETY: as above.
unsafe impl Zero for AtomicU64 {}

/// The array of so many atomics that a place names; made, if there is none.
fn lasting<T: Zero>(place: &AtomicPtr<T>, count: usize) -> *mut T {
    // Acquire: pairs with the Release below [ID-1].
    let there = place.load(Acquire);
    if !there.is_null() {
        return there;
    }
    let new = zeroed(count);
    // AcqRel: pairs with the Acquire above and in `chunk` [ID-1].
    match place.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
        Ok(_) => new,
        Err(first) => {
            // SAFETY: of above, and of no other thread.
            unsafe { free(new, count) };
            first
        }
    }
}

/// So many atomics, all zero, in a box. Those that are not written take no memory of the system.
#[cfg(not(loom))]
fn zeroed<T: Zero>(count: usize) -> *mut T {
    use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
    let layout = Layout::array::<T>(count).expect("less than 2^27 bytes");
    // SAFETY: neither `count` is 0 nor has the type no bytes.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory.cast()
}

#[cfg(loom)]
fn zeroed<T: Zero>(count: usize) -> *mut T {
    let all: Box<[T]> = (0..count).map(|_| T::default()).collect();
    Box::into_raw(all).cast()
}

/// # Safety
/// `array` is null, or of [`zeroed`] with this count and used no more.
unsafe fn free<T>(array: *mut T, count: usize) {
    if !array.is_null() {
        // SAFETY: by the contract; zero is a value of an atomic.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(array, count)) });
    }
}
