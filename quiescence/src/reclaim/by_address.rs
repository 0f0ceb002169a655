//! Tables with at most one entry for each address: found, added and removed in constant time,
//! however many entries there are.
//!
//! The address is mostly that of a domain's state. A thread has a table of what it keeps in each
//! domain ([`crate::reclaim::local`]), the worker one of the domains with something to do, and
//! [`crate::reclaim::domain_state`] one of those in use. A program may have a domain for each of
//! its objects, so no table is searched or copied as a whole for one domain.
//!
//! The entries are in a list, in no order. The index is a hash table with open addressing and
//! linear probing, whose slots are places in the list. Up to [`SMALL`] entries there is no index:
//! comparing them all is faster, and a thread in one or two domains, as most are, pays for none.
//!
//! **Invariant [BD-1]: from each entry's home slot to the slot that has its place, no slot is
//! empty.** An insertion takes the first empty slot; a removal moves the entries after it up
//! ([`ByAddress::close_gap`]).
//!
//! An entry that a thread keeps after the end of its domain holds a weak handle, so that no other
//! domain gets the address. A table that finds no entry makes a thread slow, or has it register
//! twice; if it finds a wrong one, [`local::own`](crate::reclaim::local) refuses what it got.

#![deny(unsafe_code)]

/// Entries that are searched without an index.
const SMALL: usize = 8;

/// An empty slot of the index.
const EMPTY: u32 = u32::MAX;

/// An entry of such a table.
pub(crate) trait HasAddress {
    /// What is at the address, such as the state of a domain.
    type Of;

    /// The address; always the same.
    fn address(&self) -> *const Self::Of;
}

/// A table of at most one entry for each address.
#[derive(Debug)]
pub(crate) struct ByAddress<T> {
    entries: Vec<T>,
    /// Places in `entries`, or [`EMPTY`]. No slots while `entries.len() <= SMALL`, else a power of
    /// two, of which at most half are in use.
    index: Vec<u32>,
}

impl<T> ByAddress<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), index: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// All entries. The caller must not change an entry's address.
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }
}

impl<T: HasAddress> ByAddress<T> {
    pub(crate) fn get(&self, address: *const T::Of) -> Option<&T> {
        self.place(address).map(|place| &self.entries[place])
    }

    /// The entry, whose address the caller must not change.
    pub(crate) fn get_mut(&mut self, address: *const T::Of) -> Option<&mut T> {
        self.place(address).map(|place| &mut self.entries[place])
    }

    /// The entry at a place just returned by [`place`](Self::place) or [`insert`](Self::insert).
    pub(crate) fn at_mut(&mut self, place: usize) -> &mut T {
        &mut self.entries[place]
    }

    /// Adds an entry for an address that has none. Returns its place.
    pub(crate) fn insert(&mut self, entry: T) -> usize {
        debug_assert!(self.place(entry.address()).is_none());
        let place = self.entries.len();
        self.entries.push(entry);
        if 2 * self.entries.len() > self.index.len() && self.entries.len() > SMALL {
            self.rebuild();
        } else if !self.index.is_empty() {
            self.enter(place);
        }
        place
    }

    /// Exchanges the entries at two places.
    pub(crate) fn swap(&mut self, one: usize, other: usize) {
        if !self.index.is_empty() {
            let slots = [one, other].map(|place| self.slot_of(place));
            self.index.swap(slots[0], slots[1]);
        }
        self.entries.swap(one, other);
    }

    /// Removes an entry; the last one takes its place.
    pub(crate) fn remove(&mut self, address: *const T::Of) -> Option<T> {
        let place = self.place(address)?;
        let last = self.entries.len() - 1;
        self.swap(place, last);
        if !self.index.is_empty() {
            self.close_gap(self.slot_of(last));
        }
        let removed = self.entries.pop();
        // Not at each removal, so that a removal takes a constant number of steps on average.
        if 8 * self.entries.len() < self.index.len() {
            self.shrink();
        }
        removed
    }

    /// Removes the entries for which `keep` is false. Goes through the whole table.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        let before = self.entries.len();
        self.entries.retain(keep);
        if self.entries.len() != before {
            self.shrink();
        }
    }

    /// Removes and returns all entries.
    pub(crate) fn take_all(&mut self) -> Vec<T> {
        self.index = Vec::new();
        std::mem::take(&mut self.entries)
    }

    /// Returns memory that is not needed any more, and rebuilds the index.
    #[cold]
    #[inline(never)]
    pub(crate) fn shrink(&mut self) {
        self.entries.shrink_to(2 * self.entries.len());
        self.rebuild();
    }

    /// Rebuilds the index, in the size for the present number of entries.
    fn rebuild(&mut self) {
        let len = self.entries.len();
        let slots = if len > SMALL { (3 * len).next_power_of_two() } else { 0 };
        self.index = vec![EMPTY; slots];
        if slots != 0 {
            (0..len).for_each(|place| self.enter(place));
        }
    }

    /// Stores the place of an entry in the first empty slot from its home on [BD-1].
    fn enter(&mut self, place: usize) {
        let slot = self.probe(self.home(self.entries[place].address()), |slot| slot == EMPTY);
        self.index[slot] = to_slot(place);
    }

    /// Empties a slot, and moves up those after it that would not be found any more [BD-1].
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.index.len() - 1;
        let mut slot = gap;
        loop {
            slot = (slot + 1) & mask;
            let place = self.index[slot];
            if place == EMPTY {
                break;
            }
            let home = self.home(self.entries[place as usize].address());
            // It stays if its home is after the gap: then a probe for it does not pass the gap.
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(gap) & mask {
                self.index[gap] = place;
                gap = slot;
            }
        }
        self.index[gap] = EMPTY;
    }

    /// The place of the entry with this address; valid until an entry is removed.
    pub(crate) fn place(&self, address: *const T::Of) -> Option<usize> {
        if self.index.is_empty() {
            return self.entries.iter().position(|entry| std::ptr::eq(entry.address(), address));
        }
        let is_it = |place: u32| std::ptr::eq(self.entries[place as usize].address(), address);
        let slot = self.probe(self.home(address), |place| place == EMPTY || is_it(place));
        let place = self.index[slot];
        (place != EMPTY).then_some(place as usize)
    }

    /// The slot that has the place of an entry.
    fn slot_of(&self, place: usize) -> usize {
        let home = self.home(self.entries[place].address());
        self.probe(home, |slot| slot == to_slot(place))
    }

    /// The first slot from `home` on for whose content `is_wanted`. Half of the slots are empty, so
    /// a probe for an empty one ends.
    fn probe(&self, home: usize, is_wanted: impl Fn(u32) -> bool) -> usize {
        let mask = self.index.len() - 1;
        let mut slot = home;
        while !is_wanted(self.index[slot]) {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// The slot at which the search for an address begins.
    fn home(&self, address: *const T::Of) -> usize {
        // The golden ratio spreads neighbours (Knuth, 6.4); the top bits of the product are best.
        let spread = (address.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (spread >> (64 - self.index.len().ilog2())) as usize
    }

    /// How many entries are compared until an address is found, or found to be absent.
    #[cfg(test)]
    pub(crate) fn steps_to(&self, address: *const T::Of) -> usize {
        if self.index.is_empty() {
            return self.place(address).unwrap_or(self.entries.len());
        }
        let steps = std::cell::Cell::new(0);
        self.probe(self.home(address), |place| {
            steps.set(steps.get() + 1);
            place == EMPTY || std::ptr::eq(self.entries[place as usize].address(), address)
        });
        steps.get()
    }

    /// Bytes that the table has allocated.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<T>() + self.index.capacity() * size_of::<u32>()
    }
}

/// A place in the list, as an index slot stores it.
fn to_slot(place: usize) -> u32 {
    // 2^32 domains take more memory than a process has.
    debug_assert!(place < EMPTY as usize);
    place as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::common::random::Random;

    struct Entry(usize, u64);

    impl HasAddress for Entry {
        type Of = ();

        fn address(&self) -> *const () {
            std::ptr::without_provenance(self.0)
        }
    }

    /// The address of domain number `n`, as an allocator might choose it.
    fn address(n: usize) -> *const () {
        std::ptr::without_provenance(0x5555_0000_0080 + n * 2_176)
    }

    fn filled(domains: usize) -> ByAddress<Entry> {
        let mut table = ByAddress::new();
        for n in 0..domains {
            table.insert(Entry(address(n).addr(), n as u64));
        }
        table
    }

    /// The same operations on a map of std's: insertions, removals and look-ups in a random order,
    /// with a table that grows and shrinks. Addresses are few, so that runs in the index meet, and
    /// wrap around its end.
    #[test]
    fn it_does_what_a_map_does() {
        let mut random = Random(1);
        let mut next = |below| random.index(below);
        for most in [4, 9, 40, 700] {
            let mut table = ByAddress::new();
            let mut map = BTreeMap::new();
            for step in 0..if cfg!(miri) { 300 } else { 20_000_u64 } {
                let domain = address(next(most));
                // Mostly growing, then mostly shrinking.
                if next(10) < if step / 2_000 % 2 == 0 { 6 } else { 3 } {
                    map.entry(domain.addr()).or_insert_with(|| {
                        table.insert(Entry(domain.addr(), step));
                        step
                    });
                } else {
                    let removed = table.remove(domain).map(|entry| entry.1);
                    assert_eq!(removed, map.remove(&domain.addr()));
                }
                if step % 64 == 0 {
                    table.retain(|entry| entry.0 % 13 != 0);
                    map.retain(|address, _| address % 13 != 0);
                }
                assert_eq!(table.len(), map.len());
                assert_eq!(table.is_empty(), map.is_empty());
                let probe = address(next(most));
                assert_eq!(table.get(probe).map(|entry| entry.1), map.get(&probe.addr()).copied());
            }
            for (address, value) in &map {
                let domain = std::ptr::without_provenance(*address);
                assert_eq!(table.get_mut(domain).map(|entry| entry.1), Some(*value));
            }
            assert_eq!(table.iter().count(), map.len());
            assert_eq!(table.take_all().len(), map.len());
            assert!(table.get(address(0)).is_none() && table.bytes() == 0);
        }
    }

    /// However many there are, a look-up compares a few entries: of those that are there, and of
    /// those that are not.
    #[test]
    #[cfg_attr(miri, ignore = "tens of thousands of entries")]
    fn a_look_up_among_twenty_thousand_takes_a_few_steps() {
        let table = filled(20_000);
        let steps = |range: std::ops::Range<usize>| -> (usize, usize) {
            let all = range.map(|n| table.steps_to(address(n)));
            all.fold((0, 0), |(sum, max), one| (sum + one, max.max(one)))
        };
        let (sum, max) = steps(0..20_000);
        assert!(sum < 2 * 20_000 && max <= 32, "found: {sum} in all, {max} at most");
        let (sum, max) = steps(20_000..40_000);
        assert!(sum < 3 * 20_000 && max <= 64, "not there: {sum} in all, {max} at most");
    }

    /// One entry is removed without a walk: the entries that are touched are those in its run of
    /// the index. Memory comes back as the table empties, and what is left is still found.
    #[test]
    #[cfg_attr(miri, ignore = "tens of thousands of entries")]
    fn memory_goes_back_as_entries_do() {
        let mut table = filled(20_000);
        let most = table.bytes();
        assert!(most <= 20_000 * 2 * size_of::<Entry>() + 16 * 20_000, "{most}");
        for n in (0..20_000).rev().filter(|n| n % 100 != 0) {
            assert!(table.remove(address(n)).is_some());
        }
        assert_eq!(table.len(), 200);
        assert!(table.bytes() <= most / 40, "{} of {most}", table.bytes());
        (0..20_000).for_each(|n| assert_eq!(table.get(address(n)).is_some(), n % 100 == 0));
        (0..20_000).for_each(|n| assert_eq!(table.remove(address(n)).is_some(), n % 100 == 0));
        assert!(
            table.is_empty() && table.bytes() <= 2 * SMALL * size_of::<Entry>(),
            "{}",
            table.bytes()
        );
    }
}
