//! Where the chunks are, and which chunks a search may skip.
//!
//! A chunk is made when one of its indexes is first claimed, and does not move until the map ends.
//! The addresses of chunks are in a table, which is replaced by one of at least twice the size when
//! the number of a chunk is too large for it. A reader with the old table misses only chunks that
//! were made meanwhile. Old tables, together at most as large as the new one, stay until the map
//! ends. (The system provides memory only once it is written, so the large table for one far index
//! costs little.)
//!
//! There are also summaries, a few bits for each chunk. They are written all the time, so they do
//! not move. The array with the summary of a chunk is chosen by the length of the chunk's number in
//! bits, and indexed by that number; so the lower half of each array but the first is unused.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::chunk::{Chunk, SLOTS};
use super::id::{MARKS, Mark};
use crate::os::fence;
use crate::os::sync::{AtomicPtr, AtomicU64, Mutex, Rank, array_of, const_unless_loom, lock};

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
    /// The chunk has been made.
    Made,
    /// No index of it was free when it was looked at, and none has become free since.
    Full,
    /// One of its slots may have the mark. While no thread changes its marks, one has it, or an
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
pub(super) struct Directory<V> {
    /// The first chunk, once more: to find it takes a load less, and most maps have no other.
    first: AtomicPtr<Chunk<V>>,
    /// How many chunks the table has room for. It is written after `table`, and read before.
    room: AtomicU64,
    table: AtomicPtr<AtomicPtr<Chunk<V>>>,
    /// Held by the thread that makes a chunk.
    making: Mutex<()>,
    /// All tables that there were, by their sizes.
    tables: [AtomicPtr<AtomicPtr<Chunk<V>>>; TABLES],
    /// [`KINDS`] words for each group of chunks.
    summaries: [AtomicPtr<AtomicU64>; TABLES],
}

/// The number of the smallest table with room for a chunk, which is that of its summary.
#[inline(always)]
const fn table_of(number: usize) -> usize {
    ((number | ((1 << FIRST_SHIFT) - 1)).ilog2() - (FIRST_SHIFT - 1)) as usize
}

/// Chunks that a table has room for.
const fn end_of(table: usize) -> usize {
    1 << (FIRST_SHIFT as usize + table)
}

/// Words of a summary.
const fn words_of(table: usize) -> usize {
    end_of(table).div_ceil(GROUP) * KINDS
}

impl<V> Directory<V> {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self {
                first: AtomicPtr::new(ptr::null_mut()),
                room: AtomicU64::new(0),
                table: AtomicPtr::new(ptr::null_mut()),
                making: Mutex::new(Rank::IdChunks, ()),
                tables: array_of![AtomicPtr::new(ptr::null_mut()); TABLES],
                summaries: array_of![AtomicPtr::new(ptr::null_mut()); TABLES],
            }
        }
    }

    /// The chunk with this number, which is less than [`CHUNKS_MAX`], if it has been made.
    #[inline(always)]
    pub(super) fn chunk(&self, number: usize) -> Option<&Chunk<V>> {
        // SAFETY: null, or a chunk, which lasts.
        unsafe { self.pointer(number).as_ref() }
    }

    /// The same as a pointer, or null.
    #[inline(always)]
    fn pointer(&self, number: usize) -> *mut Chunk<V> {
        if number == 0 {
            // Acquire: pairs with the Release in `make` [ID-1].
            return self.first.load(Acquire);
        }
        // Acquire: pairs with the Release in `make` [ID-1]; the table that is loaded next is that
        // one or a later one.
        if number as u64 >= self.room.load(Acquire) {
            return ptr::null_mut();
        }
        // Acquire: as above; what is in the table was written before.
        let table = self.table.load(Acquire);
        // SAFETY: a table with more room than that, which lasts.
        let place = unsafe { &*table.wrapping_add(number) };
        place.load(Acquire) // as above
    }

    /// The chunk with this number, which is made if need be.
    pub(super) fn made(&self, number: usize) -> &Chunk<V> {
        self.chunk(number).unwrap_or_else(|| self.make(number))
    }

    #[cold]
    fn make(&self, number: usize) -> &Chunk<V> {
        let _held = lock(&self.making);
        // Relaxed, all loads here: what is loaded was written under the lock.
        if number as u64 >= self.room.load(Relaxed) {
            self.grow(table_of(number));
        }
        let summary = &self.summaries[table_of(number)];
        if summary.load(Relaxed).is_null() {
            // Release: pairs with the Acquire in `word` [ID-1].
            summary.store(zeroed(words_of(table_of(number))), Release);
        }
        // SAFETY: as in `chunk`.
        let place = unsafe { &*self.table.load(Relaxed).wrapping_add(number) };
        let mut chunk = place.load(Relaxed);
        if chunk.is_null() {
            chunk = Box::into_raw(Box::new(Chunk::new()));
            self.set(Kind::Made, number);
            // Release: pairs with the Acquire in `chunk` [ID-1]; the chunk was made before.
            place.store(chunk, Release);
            if number == 0 {
                self.first.store(chunk, Release); // [ID-1]: as above
            }
        }
        // SAFETY: a chunk that lasts.
        unsafe { &*chunk }
    }

    /// Puts a larger table in the place of the one that there is. The caller holds the lock.
    fn grow(&self, to: usize) {
        let old = self.table.load(Relaxed);
        let new: *mut AtomicPtr<Chunk<V>> = zeroed(end_of(to));
        for number in self.made_before(self.room.load(Relaxed) as usize) {
            // SAFETY: the old table has room for this number.
            let from = unsafe { &*old.wrapping_add(number) };
            // SAFETY: so has the new one.
            let to = unsafe { &*new.wrapping_add(number) };
            to.store(from.load(Relaxed), Relaxed);
        }
        self.tables[to].store(new, Relaxed);
        // Release, both: pair with the Acquires in `chunk` [ID-1]. The table comes first.
        self.table.store(new, Release);
        self.room.store(end_of(to) as u64, Release);
    }

    /// The word of a summary that has the chunk; there is one, if there is the chunk.
    fn word(&self, kind: Kind, number: usize) -> Option<&AtomicU64> {
        // Acquire: pairs with the Release in `make` [ID-1].
        let summary = self.summaries[table_of(number)].load(Acquire);
        // SAFETY: a summary has a word for each of these numbers, and lasts.
        (!summary.is_null())
            .then(|| unsafe { &*summary.wrapping_add(number / GROUP * KINDS + kind.number()) })
    }

    /// Says so of a chunk that has been made.
    pub(super) fn set(&self, kind: Kind, number: usize) {
        if let Some(word) = self.word(kind, number) {
            // Relaxed: for `Full` a fence orders it [ID-3]; for the others it matters as little as
            // in `Bits`.
            word.fetch_or(1 << (number % GROUP), Relaxed);
        }
    }

    /// Says of a chunk that it is not so.
    pub(super) fn clear(&self, kind: Kind, number: usize) {
        if let Some(word) = self.word(kind, number) {
            word.fetch_and(!(1 << (number % GROUP)), Relaxed); // as in `set`
        }
    }

    /// Clears the bit of a chunk if it is set. Only a load otherwise, so that threads that work on
    /// other chunks of the group do not contend for the word. To be called right after an atomic
    /// read-modify-write [ID-3].
    pub(super) fn clear_if_set(&self, kind: Kind, number: usize) {
        fence::full_after_locked(); // [ID-3] //~ id-no-release-fence
        // Relaxed: the fence orders it.
        let is_set = |word: &AtomicU64| word.load(Relaxed) >> (number % GROUP) & 1 != 0;
        if self.word(kind, number).is_some_and(is_set) {
            self.clear(kind, number);
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

    /// The numbers of the chunks that have been made, or are being made, before `end`.
    fn made_before(&self, end: usize) -> impl Iterator<Item = usize> {
        let mut number = 0;
        std::iter::from_fn(move || {
            let found = self.next(Kind::Made, true, number, end)?;
            number = found + 1;
            Some(found)
        })
    }

    /// All chunks.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk<V>> {
        self.made_before(CHUNKS_MAX).filter_map(|number| self.chunk(number))
    }
}

impl<V> Drop for Directory<V> {
    fn drop(&mut self) {
        for number in self.made_before(CHUNKS_MAX) {
            let chunk = self.pointer(number);
            if !chunk.is_null() {
                // SAFETY: the box of `make`; no other thread is here.
                drop(unsafe { Box::from_raw(chunk) });
            }
        }
        for table in 0..TABLES {
            // Relaxed: no other thread is here.
            let (chunks, summary) =
                (self.tables[table].load(Relaxed), self.summaries[table].load(Relaxed));
            // SAFETY: null, or what `zeroed` made with this length.
            unsafe { free(chunks, end_of(table)) };
            // SAFETY: as above.
            unsafe { free(summary, words_of(table)) };
        }
    }
}

/// So many atomics of a word, all zero, in a box. Those that are not written take no memory of the
/// system.
fn zeroed<T: Default>(count: usize) -> *mut T {
    if cfg!(loom) {
        let all: Box<[T]> = (0..count).map(|_| T::default()).collect();
        return Box::into_raw(all).cast();
    }
    const { assert!(cfg!(loom) || size_of::<T>() == 8 && align_of::<T>() == 8) };
    Box::into_raw(vec![0_u64; count].into_boxed_slice()).cast()
}

/// # Safety
/// `array` is null, or of [`zeroed`] with this count and used no more.
unsafe fn free<T>(array: *mut T, count: usize) {
    if !array.is_null() {
        // SAFETY: by the contract; zero is a value of an atomic.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(array, count)) });
    }
}
