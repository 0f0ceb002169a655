//! The table: who owns an index, and which entry is there.
//!
//! **Invariants.**
//! - *Only its owner changes a slot from empty to an entry*: the thread that has claimed the index.
//!   Changes from an entry to another one, or to empty, are exchanges that name the entry. The
//!   thread that takes an entry out then owns the slot, and gives the index back. So the
//!   generations of a slot's entries ascend (until they wrap), and an id names one entry.
//! - *While an entry is in a slot, the slot's generation is its own*: the owner stores the
//!   generation before the entry, and the next owner stores another one after the entry was taken
//!   out [ID-5].
//! - *An entry's marks go with it*: they are in the word that is exchanged. An entry that replaces
//!   it by `replace` has the same marks; an entry that comes to the index later has none.
//! - *Searches find everything that a slot has*: the bits of a mark, in the chunk and in the
//!   directory, are set before the slot gets the mark, and cleared after it has lost the mark, both
//!   under the lock of the chunk's marks. The bit of a used index is set before there is an entry.
//! - *A chunk that is marked full is full*, whenever no thread claims an index or gives one back:
//!   the thread that marks it checks a second time [ID-3].
//!
//! Entries are pointers here. `map` determines who owns them, and when they are freed.

use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;

use super::chunk::{Chunk, Entry, SLOTS, Word};
use super::directory::{CHUNKS_MAX, Directory, Kind};
use super::given_back;
use super::id::{Id, Mark};
use crate::os::fence;
use crate::os::sync::{AtomicU32, AtomicU64, array_of, const_unless_loom, lock};

/// Indexes that there are.
pub(super) const INDEXES: u64 = (CHUNKS_MAX * SLOTS) as u64;

/// Places that remember where CPUs insert.
const HOMES: usize = if cfg!(loom) { 1 } else { 8 };

const NO_HOME: u32 = u32::MAX;

/// The last generation of an index that an insertion chooses. Those of [`Table::claim_at`] go on
/// behind it, and wrap to the first one there: so none of those before is had twice.
pub(super) const LAST: u32 = u32::MAX / 2;

/// The table of a map.
pub(super) struct Table<V> {
    pub(super) directory: Directory<V>,
    /// The chunk where the CPUs of each place insert, so that they seldom meet; [`NO_HOME`], which
    /// is the first one, until that is full.
    homes: [AtomicU32; HOMES],
    /// The last chunk where one of them has inserted.
    reach: AtomicU32,
    /// Indexes that no insertion gets again, and no entry has: see [`Table::claim`].
    worn: AtomicU64,
}

/// An index that is the caller's: the slot is empty. Dropping it gives the index back.
pub(super) struct Claim<'t, V> {
    table: &'t Table<V>,
    chunk: &'t Chunk<V>,
    /// The id of the entry that will be there.
    pub(super) id: Id,
}

/// The chunk of an index.
#[inline(always)]
const fn chunk_of(index: u32) -> usize {
    index as usize / SLOTS
}

#[inline(always)]
const fn place_of(index: u32) -> usize {
    index as usize % SLOTS
}

impl<V> Table<V> {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self {
                directory: Directory::new(),
                homes: array_of![AtomicU32::new(NO_HOME); HOMES],
                reach: AtomicU32::new(0),
                worn: AtomicU64::new(0),
            }
        }
    }

    /// The content of an index.
    #[inline(always)]
    pub(super) fn load(&self, index: u32) -> Word<V> {
        match self.directory.chunk(chunk_of(index)) {
            Some(chunk) => chunk.load(place_of(index)),
            None => Word(ptr::null_mut()),
        }
    }

    /// Claims an index that is free: one that this thread has given back, or a low one near those
    /// that this CPU has claimed before; either way in a chunk that insertions have reached.
    #[inline(always)]
    pub(super) fn claim(&self, cpu: impl FnOnce() -> usize) -> Option<Claim<'_, V>> {
        while let Some(index) = given_back::pop(ptr::from_ref(self).addr()) {
            // Not one that was far away: that `insert_at` has had, or a table that was here before.
            // Relaxed: which indexes are low, and no more.
            if chunk_of(index) as u32 <= self.reach.load(Relaxed)
                && let Some(claim) = self.claim_at(index)
                && let Some(claim) = self.unless_worn(claim)
            {
                return Some(claim);
            }
        }
        self.claim_near(cpu())
    }

    /// Claims a low index near those that this CPU has claimed before.
    #[inline(never)]
    fn claim_near(&self, cpu: usize) -> Option<Claim<'_, V>> {
        let home = &self.homes[cpu % HOMES];
        // Relaxed: where it is best to look, and no more.
        let number = match home.load(Relaxed) {
            NO_HOME => 0,
            number => number as usize,
        };
        loop {
            let claim = self
                .claim_in(number, 0..SLOTS)
                .or_else(|| self.claim_away_from_home(home, number))?;
            if let Some(claim) = self.unless_worn(claim) {
                return Some(claim);
            }
        }
    }

    /// Claims the lowest free index of a range.
    pub(super) fn claim_in_range(&self, range: Range<u64>) -> Option<Claim<'_, V>> {
        self.claim_but(|_| false, range)
    }

    /// The same, but in no chunk that is to be left out.
    fn claim_but(
        &self,
        is_left_out: impl Fn(usize) -> bool,
        range: Range<u64>,
    ) -> Option<Claim<'_, V>> {
        let (mut from, end) = (range.start, range.end.min(INDEXES));
        while from < end {
            let last = (end - 1) as usize / SLOTS;
            let number = from as usize / SLOTS;
            let found = self.directory.next(Kind::Full, false, number, last + 1)?;
            let first = (found * SLOTS) as u64;
            from = from.max(first);
            let places = (from - first) as usize..(end - first).min(SLOTS as u64) as usize;
            let whole = places.len() == SLOTS;
            let is_left_out = is_left_out(found);
            match self.claim_in(found, if is_left_out { 0..0 } else { places }) {
                Some(claim) => {
                    if let Some(claim) = self.unless_worn(claim) {
                        return Some(claim);
                    }
                }
                None if whole && !is_left_out && !self.say_full(found) => {}
                None => from = first + SLOTS as u64,
            }
        }
        None
    }

    /// Claims this index, if it is free. Its generation after the last of all is [`LAST`]'s next.
    pub(super) fn claim_at(&self, index: u32) -> Option<Claim<'_, V>> {
        let chunk = self.directory.made(chunk_of(index));
        chunk.claim_one(place_of(index)).then(|| self.claimed(chunk, index))
    }

    fn claim_in(&self, number: usize, places: Range<usize>) -> Option<Claim<'_, V>> {
        let chunk = self.directory.made(number);
        let place = chunk.claim(places)?;
        Some(self.claimed(chunk, (number * SLOTS + place) as u32))
    }

    fn claimed<'t>(&'t self, chunk: &'t Chunk<V>, index: u32) -> Claim<'t, V> {
        let generation = chunk.generation(place_of(index)).checked_add(1).unwrap_or(LAST + 1);
        Claim { table: self, chunk, id: Id::new(index, generation).expect("not 0") }
    }

    /// An index whose generations have all been had is given to no insertion again, so that no id
    /// names two entries: it stays claimed. (One that the caller asks for by its number is; there
    /// the ids wrap.)
    fn unless_worn<'t>(&self, claim: Claim<'t, V>) -> Option<Claim<'t, V>> {
        if claim.id.generation() <= LAST {
            return Some(claim);
        }
        self.worn.fetch_add(1, Relaxed); // a count
        std::mem::forget(claim);
        None
    }

    /// Claims an index in the first chunk that has a free one and where no other CPU inserts, if
    /// there is one; and inserts there from now on.
    #[cold]
    fn claim_away_from_home(&self, home: &AtomicU32, full: usize) -> Option<Claim<'_, V>> {
        self.say_full(full);
        // Relaxed: as in `claim`.
        let is_anothers = |number: usize| {
            let is_at = |other: &AtomicU32| other.load(Relaxed) as usize == number;
            self.homes.iter().any(|other| !ptr::eq(other, home) && is_at(other))
        };
        let claim = self.claim_but(is_anothers, 0..INDEXES);
        let claim = claim.or_else(|| self.claim_in_range(0..INDEXES))?;
        let found = chunk_of(claim.id.index()) as u32;
        home.store(found, Relaxed);
        self.reach.fetch_max(found, Relaxed);
        Some(claim)
    }

    /// Says that a chunk is full, and looks once more whether it is. Returns whether it was.
    fn say_full(&self, number: usize) -> bool {
        let chunk = self.directory.made(number);
        self.directory.set(Kind::Full, number);
        fence::full_after_locked(); // [ID-3] //~ id-no-full-fence

        //~ id-full-unchecked:
        if !chunk.is_full() {
            self.directory.clear(Kind::Full, number);
            return false;
        }
        true
    }

    /// Gives back an index whose slot is the caller's, and empty.
    fn release(&self, chunk: &Chunk<V>, index: u32) {
        if chunk.release(place_of(index)) {
            self.directory.clear_if_set(Kind::Full, chunk_of(index)); // [ID-3]
        }
        given_back::push(ptr::from_ref(self).addr(), index);
    }

    /// Takes the entry of an index out, if it is one that is meant, by its generation or address.
    /// The caller retires it.
    ///
    /// In a section under which entries are not freed: so no other entry has its address, and if
    /// the exchange finds it here still, the slot's generation was its own in between [ID-5]. The
    /// entry is not read: it may be in no cache.
    #[inline(always)]
    pub(super) fn unlink(
        &self,
        index: u32,
        is_meant: impl Fn(u32, NonNull<Entry<V>>) -> bool,
    ) -> Option<NonNull<Entry<V>>> {
        let chunk = self.directory.chunk(chunk_of(index))?;
        let place = place_of(index);
        let seen = chunk.update(place, |seen| {
            let entry = NonNull::new(seen.entry())?;
            //~ id-any-generation:
            if !is_meant(chunk.generation(place), entry) {
                return None;
            }
            Some(Word(ptr::null_mut()))
        })?;
        let entry = NonNull::new(seen.entry())?;
        if seen.marks() != 0 {
            // Before the index is anybody's again, whose marks these bits would be.
            let _held = lock(&chunk.marking);
            for mark in Mark::ALL.into_iter().filter(|mark| seen.has(*mark)) {
                self.clear_bit(chunk, index, mark);
            }
        }
        self.release(chunk, index);
        Some(entry)
    }

    /// Puts `new`, which has the same generation, in the place of an entry; of `current`, if that
    /// is given. The marks stay. Returns what was there, for the caller to retire.
    ///
    /// # Errors
    /// `new`, if the entry is another one, or none.
    ///
    /// # Safety
    /// The caller is in a section under which entries are not freed.
    pub(super) unsafe fn replace(
        &self,
        id: Id,
        current: Option<&Entry<V>>,
        new: Box<Entry<V>>,
    ) -> Result<NonNull<Entry<V>>, Box<Entry<V>>> {
        let new = Box::into_raw(new);
        let exchange = |seen: Word<V>| {
            let entry = NonNull::new(seen.entry())?;
            // SAFETY: by the contract.
            let is_same = unsafe { entry.as_ref() }.generation == id.generation()
                && current.is_none_or(|current| ptr::eq(current, entry.as_ptr()));
            is_same.then(|| Word::of(new, seen.marks()))
        };
        let chunk = self.directory.chunk(chunk_of(id.index()));
        let seen = chunk.and_then(|chunk| chunk.update(place_of(id.index()), exchange));
        // SAFETY: the box of above, which was not published.
        seen.and_then(|seen| NonNull::new(seen.entry()))
            .ok_or_else(|| unsafe { Box::from_raw(new) })
    }

    /// Changes the marks of an entry: clears one and sets one, if it has the one and not the other.
    /// Returns whether it did.
    ///
    /// # Safety
    /// The caller is in a section under which entries are not freed.
    pub(super) unsafe fn change_marks(
        &self,
        id: Id,
        clear: Option<Mark>,
        set: Option<Mark>,
    ) -> bool {
        let chunk = self.directory.chunk(chunk_of(id.index())).filter(|_| clear != set);
        let Some(chunk) = chunk else { return false };
        let (place, index) = (place_of(id.index()), id.index());
        let bit = |mark: Option<Mark>| mark.map_or(0, Mark::bit);
        let held = lock(&chunk.marking); //~ id-marks-unlocked
        let mut is_first = true;
        let changed = chunk.update(place, |seen| {
            let entry = NonNull::new(seen.entry())?;
            // SAFETY: by the contract.
            let is_other = unsafe { entry.as_ref() }.generation != id.generation();
            //~ id-marks-another:
            if is_other {
                return None;
            }
            if seen.marks() & (bit(clear) | bit(set)) != bit(clear) {
                return None;
            }
            if is_first && let Some(mark) = set {
                self.set_bit(chunk, index, mark);
            }
            is_first = false;
            Some(Word::of(entry.as_ptr(), seen.marks() & !bit(clear) | bit(set)))
        });
        if !is_first {
            let now = chunk.load(place);
            for mark in [clear, set].into_iter().flatten().filter(|mark| !now.has(*mark)) {
                self.clear_bit(chunk, index, mark);
            }
        }
        drop(held);
        changed.is_some()
    }

    /// Makes searches look for a mark in a slot, before the slot has it [ID-4]. The caller holds
    /// the chunk's lock.
    fn set_bit(&self, chunk: &Chunk<V>, index: u32, mark: Mark) {
        if chunk.marked[mark as usize].set(place_of(index)) {
            self.directory.set(Kind::Marked(mark), chunk_of(index));
        }
    }

    /// Has them not look there any more, after it has lost it [ID-4]. The caller holds the chunk's
    /// lock.
    fn clear_bit(&self, chunk: &Chunk<V>, index: u32, mark: Mark) {
        if chunk.marked[mark as usize].clear(place_of(index)) {
            self.directory.clear(Kind::Marked(mark), chunk_of(index));
        }
    }

    /// How many indexes are claimed, without those that are worn.
    pub(super) fn count(&self) -> u64 {
        let count: u64 = self.directory.chunks().map(|chunk| chunk.used.count()).sum();
        count.saturating_sub(self.worn.load(Relaxed)) // two counts, one after the other
    }

    /// Takes the entries out: for the end.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = *mut Entry<V>> {
        let places =
            self.directory.chunks().flat_map(|chunk| (0..SLOTS).map(move |at| (chunk, at)));
        places.filter_map(|(chunk, place)| {
            let entry = NonNull::new(chunk.load(place).entry())?;
            chunk.publish(place, ptr::null_mut());
            Some(entry.as_ptr())
        })
    }

    /// Has the next claim of an index be of this generation: for tests of the last ones.
    #[cfg(test)]
    pub(super) fn wear(&self, index: u32, generation: u32) {
        self.directory.made(chunk_of(index)).set_generation(place_of(index), generation);
    }
}

impl<V> Claim<'_, V> {
    /// Puts an entry of this id there.
    #[inline(always)]
    pub(super) fn publish(self, value: V) -> Id {
        let (id, place) = (self.id, place_of(self.id.index()));
        let entry = Box::into_raw(Entry::boxed(id, value));
        self.chunk.set_generation(place, id.generation()); // first [ID-5]
        self.chunk.publish(place, entry);
        std::mem::forget(self);
        id
    }
}

impl<V> Drop for Claim<'_, V> {
    fn drop(&mut self) {
        // Its id has perhaps been told: it is no entry's.
        self.chunk.set_generation(place_of(self.id.index()), self.id.generation());
        self.table.release(self.chunk, self.id.index());
    }
}
