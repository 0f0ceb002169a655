//! A chunk: the slots of 512 consecutive indexes, and bits about them.
//!
//! A slot is a pointer to an entry, or null. The marks are the lowest bits of the pointer, so one
//! exchange covers the entry and its marks. For searches a chunk also has bits for each slot:
//! whether the index is *used*, and, for each mark, whether the slot may have it.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::id::{Id, MARKS, Mark};
use crate::os::sync::{AtomicPtr, AtomicU32, AtomicU64, Mutex, Rank};
use crate::reclaim::cache;

/// Bits of a word; loom has few, so that it need not look at many places.
pub(super) const WORD_BITS: usize = if cfg!(loom) { 2 } else { 64 };
/// A word with all bits set.
pub(super) const ALL: u64 = u64::MAX >> (64 - WORD_BITS);
/// Words of a chunk: as many as fill a cache line with the words of one mark.
pub(super) const WORDS: usize = if cfg!(loom) { 1 } else { 8 };
/// Slots of a chunk.
pub(super) const SLOTS: usize = WORDS * WORD_BITS;

/// The bits of a slot that are no address.
const TAG: usize = (1 << MARKS) - 1;

/// A value, with the generation of its id. Neither changes as long as a reader can see it.
#[repr(align(8))]
pub(super) struct Entry<V> {
    pub(super) generation: u32,
    pub(super) value: V,
}

const _: () = assert!(align_of::<Entry<()>>() > TAG);

impl<V> Entry<V> {
    /// The entry of an id.
    pub(super) fn boxed(id: Id, value: V) -> Box<Self> {
        cache::boxed(Self { generation: id.generation(), value })
    }
}

/// The content of a slot: an entry with its marks, or nothing.
pub(super) struct Word<V>(pub(super) *mut Entry<V>);

impl<V> Word<V> {
    /// The entry, or null.
    #[inline(always)]
    pub(super) fn entry(&self) -> *mut Entry<V> {
        self.0.map_addr(|address| address & !TAG)
    }

    /// The bits of its marks.
    #[inline(always)]
    pub(super) fn marks(&self) -> usize {
        self.0.addr() & TAG
    }

    pub(super) fn has(&self, mark: Mark) -> bool {
        self.marks() & mark.bit() != 0
    }

    /// An entry with these marks.
    pub(super) fn of(entry: *mut Entry<V>, marks: usize) -> Self {
        Self(entry.map_addr(|address| address | marks))
    }
}

/// A cache line of bits, one a slot.
#[repr(align(64))]
pub(super) struct Bits([AtomicU64; WORDS]);

impl Bits {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    // Relaxed, all of these: a search that begins after an insertion, or after a mark was set, has
    // that from where it knows of it; what it finds beside one is looked up in the slot [ID-4].

    pub(super) fn word(&self, word: usize) -> u64 {
        self.0[word].load(Relaxed)
    }

    /// Sets a bit. Returns whether none was set before, if no other thread changes them.
    pub(super) fn set(&self, place: usize) -> bool {
        let were_clear = self.are(0);
        self.0[place / WORD_BITS].fetch_or(bit(place), Relaxed);
        were_clear
    }

    /// Clears a bit. Returns whether none is set now, if no other thread changes them.
    pub(super) fn clear(&self, place: usize) -> bool {
        self.0[place / WORD_BITS].fetch_and(!bit(place), Relaxed);
        self.are(0)
    }

    /// Whether all words are this one.
    fn are(&self, bits: u64) -> bool {
        self.0.iter().all(|word| word.load(Relaxed) == bits)
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.load(Relaxed).count_ones())).sum()
    }
}

#[inline(always)]
fn bit(place: usize) -> u64 {
    1 << (place % WORD_BITS)
}

/// The slots of [`SLOTS`] indexes.
#[repr(C)]
pub(super) struct Chunk<V> {
    slots: [AtomicPtr<Entry<V>>; SLOTS],
    /// The generation of the last entry of each slot. The thread that has claimed the index writes
    /// it, before there is an entry.
    generations: [AtomicU32; SLOTS],
    /// Which indexes are claimed. **The thread that sets a bit owns the slot until it has an entry;
    /// the thread that takes the entry out owns it until the bit is cleared.**
    pub(super) used: Bits,
    /// By mark.
    pub(super) marked: [Bits; MARKS],
    /// Held by threads that change marks: so the bits in `marked`, and that of the chunk in the
    /// directory, are those of the slots whenever no thread holds it.
    pub(super) marking: Mutex<()>,
}

impl<V> Chunk<V> {
    pub(super) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            generations: std::array::from_fn(|_| AtomicU32::new(0)),
            used: Bits::new(),
            marked: std::array::from_fn(|_| Bits::new()),
            marking: Mutex::new(Rank::IdMarks, ()),
        }
    }

    /// The content of a slot.
    #[inline(always)]
    pub(super) fn load(&self, place: usize) -> Word<V> {
        // Acquire: pairs with the Release in `publish` and `update` [ID-1]; the entry was made
        // before it was published. The section's begin comes before this load [GP-1].
        Word(self.slots[place].load(Acquire))
    }

    /// Puts an entry into a slot that the caller owns.
    pub(super) fn publish(&self, place: usize, entry: *mut Entry<V>) {
        // Release: pairs with the Acquire in `load` [ID-1].
        self.slots[place].store(entry, Release); //~ unseen-node
    }

    /// Puts what `f` makes of a slot's content there; again, if another thread comes first; nothing
    /// if `f` gives none. Returns what was there.
    pub(super) fn update(
        &self,
        place: usize,
        mut f: impl FnMut(Word<V>) -> Option<Word<V>>,
    ) -> Option<Word<V>> {
        // AcqRel: the Release pairs with the Acquire in `load` [ID-1]; by the Acquire, as there, a
        // thread that takes an entry out sees how it was made, and its generation.
        let f = |seen| f(Word(seen)).map(|new| new.0);
        fetch_update!(self.slots[place], AcqRel, Acquire, f).ok().map(Word)
    }

    /// Claims the lowest free index of `places`.
    pub(super) fn claim(&self, places: std::ops::Range<usize>) -> Option<usize> {
        if places.is_empty() {
            return None;
        }
        for word in places.start / WORD_BITS..=(places.end - 1) / WORD_BITS {
            let asked = in_word(&places, word);
            let place = &self.used.0[word];
            let mut used = place.load(Relaxed);
            while let free @ 1.. = !used & asked {
                let lowest = free & free.wrapping_neg();
                // Acquire: pairs with the Release in `release` [ID-2]; the slot is empty, and its
                // generation the last one. What was released before that comes with it, through
                // the exchanges of other claims.
                match place.compare_exchange_weak(used, used | lowest, Acquire, Relaxed) {
                    Ok(_) => return Some(word * WORD_BITS + lowest.trailing_zeros() as usize),
                    Err(now) => used = now,
                }
            }
        }
        None
    }

    /// Claims this index. Returns whether it was free.
    pub(super) fn claim_one(&self, place: usize) -> bool {
        // Acquire: as in `claim` [ID-2].
        self.used.0[place / WORD_BITS].fetch_or(bit(place), Acquire) & bit(place) == 0
    }

    /// Gives an index back whose slot the caller owns, and which is empty. Returns whether the
    /// chunk may have been full.
    pub(super) fn release(&self, place: usize) -> bool {
        // Release: pairs with the Acquire in `claim` [ID-2]. (A subtraction of the bit, which is
        // set: that is one instruction, where `and` with its result is a loop.)
        //~ id-relaxed-release:
        let used = self.used.0[place / WORD_BITS].fetch_sub(bit(place), Release);
        debug_assert!(used & bit(place) != 0, "it was claimed");
        used == ALL
    }

    /// Whether all indexes are claimed.
    pub(super) fn is_full(&self) -> bool {
        self.used.are(ALL)
    }

    /// The generation of the last entry in a slot that the caller owns, or of the entry that the
    /// caller has found there and takes out.
    pub(super) fn generation(&self, place: usize) -> u32 {
        // Relaxed: owners hand it on [ID-2]; a thread that finds an entry sees what comes before it
        // [ID-5].
        self.generations[place].load(Relaxed)
    }

    pub(super) fn set_generation(&self, place: usize, generation: u32) {
        self.generations[place].store(generation, Relaxed); // as above
    }
}

/// Those bits of a word that are in a range of places.
pub(super) fn in_word(places: &std::ops::Range<usize>, word: usize) -> u64 {
    let first = word * WORD_BITS;
    let from = places.start.saturating_sub(first).min(WORD_BITS);
    let to = places.end.saturating_sub(first).min(WORD_BITS);
    let below = |bits: usize| if bits == 0 { 0 } else { ALL >> (WORD_BITS - bits) };
    below(to) & !below(from)
}
