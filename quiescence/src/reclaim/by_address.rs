//! Tables with at most one entry for each address: found, added and removed in constant time,
//! however many entries there are.
//!
//! The address is mostly that of a domain's state. A thread has a table of what it keeps in each
//! domain ([`crate::reclaim::local`]), the worker one of the domains with something to do, and
//! [`crate::reclaim::domain_state`] one of those in use. A program may have a domain for each of
//! its objects, so no table is searched or copied as a whole for one domain.
//!
//! The entries are in a list, in no order. A map of the standard library's, with a hash that is
//! made for addresses, has their places.
//!
//! An entry that a thread keeps after the end of its domain holds a weak handle, so that no other
//! domain gets the address. A table that finds no entry makes a thread slow, or has it register
//! twice; if it finds a wrong one, [`local::own`](crate::reclaim::local) refuses what it got.

#![deny(unsafe_code)]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Room that is kept however few entries there are.
const SLACK: usize = 28;

/// A table of at most one entry for each address.
#[derive(Debug)]
pub(crate) struct ByAddress<T> {
    /// Each with its address.
    entries: Vec<(usize, T)>,
    places: Places,
}

/// Where in the list of entries that of an address is.
type Places = HashMap<usize, usize, BuildHasherDefault<Spread>>;

/// The hash of an address. Its best bits come from the product with the golden ratio, which spreads
/// neighbours (Knuth, 6.4), and are put where the map looks first.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only addresses are hashed");
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T> ByAddress<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), places: HashMap::with_hasher(BuildHasherDefault::new()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, entry)| entry)
    }

    pub(crate) fn get<A>(&self, address: *const A) -> Option<&T> {
        self.place(address).map(|place| &self.entries[place].1)
    }

    pub(crate) fn get_mut<A>(&mut self, address: *const A) -> Option<&mut T> {
        self.place(address).map(|place| &mut self.entries[place].1)
    }

    fn place<A>(&self, address: *const A) -> Option<usize> {
        place(&self.places, address.addr())
    }

    /// Adds an entry for an address that has none.
    pub(crate) fn insert<A>(&mut self, address: *const A, entry: T) -> &mut T {
        debug_assert!(self.place(address).is_none());
        let place = self.entries.len();
        self.entries.push((address.addr(), entry));
        self.note(place);
        &mut self.entries[place].1
    }

    /// Notes which entry is at this place.
    fn note(&mut self, place: usize) {
        note(&mut self.places, self.entries[place].0, place);
    }

    /// Removes an entry; the last one takes its place.
    pub(crate) fn remove<A>(&mut self, address: *const A) -> Option<T> {
        let place = self.place(address)?;
        self.places.remove(&address.addr());
        let removed = self.entries.swap_remove(place);
        if place < self.entries.len() {
            self.note(place);
        }
        // Not at each removal, so that a removal takes a constant number of steps on average.
        if 8 * self.entries.len() + SLACK < self.entries.capacity() {
            self.shrink();
        }
        Some(removed.1)
    }

    /// Removes the entries for which `keep` is false. Goes through the whole table.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.entries.retain(|(_, entry)| keep(entry));
        if self.entries.len() != self.places.len() {
            self.shrink();
        }
    }

    /// Removes and returns all entries.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::replace(self, Self::new()).entries.into_iter().map(|(_, entry)| entry)
    }

    /// Returns memory that is not needed any more, and notes all places anew.
    #[cold]
    #[inline(never)]
    pub(crate) fn shrink(&mut self) {
        self.entries.shrink_to(2 * self.entries.len());
        self.places = Places::default();
        (0..self.entries.len()).for_each(|place| self.note(place));
    }

    /// How many entries a look-up begins with, at most, if the index has so many bits.
    #[cfg(test)]
    pub(crate) fn crowd(&self, bits: u32) -> usize {
        let mut homes = std::collections::BTreeMap::new();
        for (address, _) in &self.entries {
            let mut spread = Spread::default();
            spread.write_usize(*address);
            *homes.entry(spread.finish() % (1 << bits)).or_insert(0) += 1;
        }
        homes.into_values().max().unwrap_or(0)
    }

    /// Bytes that the table has allocated, about.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(usize, T)>()
            + self.places.capacity() * size_of::<[usize; 2]>()
    }
}

// Out of line, so that a program has them once, not once for each kind of entry.

#[inline(never)]
fn place(places: &Places, address: usize) -> Option<usize> {
    places.get(&address).copied()
}

#[inline(never)]
fn note(places: &mut Places, address: usize, place: usize) {
    places.insert(address, place);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::common::random::Random;

    /// The address again, and a value.
    struct Entry(usize, u64);

    /// The address of domain number `n`, as an allocator might choose it.
    fn address(n: usize) -> *const () {
        std::ptr::without_provenance(0x5555_0000_0080 + n * 2_176)
    }

    fn filled(domains: usize) -> ByAddress<Entry> {
        let mut table = ByAddress::new();
        for n in 0..domains {
            table.insert(address(n), Entry(address(n).addr(), n as u64));
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
                        table.insert(domain, Entry(domain.addr(), step));
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
                let domain = std::ptr::without_provenance::<()>(*address);
                assert_eq!(table.get_mut(domain).map(|entry| entry.1), Some(*value));
            }
            assert_eq!(table.iter().count(), map.len());
            assert_eq!(table.take_all().count(), map.len());
            assert!(table.get(address(0)).is_none() && table.bytes() == 0);
        }
    }

    /// However many there are, a look-up compares a few entries: hashes of addresses, of neighbours
    /// and of those that are far apart, are spread over the index.
    #[test]
    #[cfg_attr(miri, ignore = "tens of thousands of entries")]
    fn a_look_up_among_twenty_thousand_takes_a_few_steps() {
        for stride in [8, 128, 2_176, 4_096, 1 << 20, 1 << 24] {
            let mut table = ByAddress::new();
            for n in 0..20_000 {
                table.insert(std::ptr::without_provenance::<()>(0x5555_0000_0080 + n * stride), ());
            }
            let crowd = table.crowd(15);
            assert!(crowd <= 8, "{crowd} entries {stride} bytes apart are looked for in one place");
        }
    }

    /// Memory comes back as the table empties, and what is left is still found.
    #[test]
    #[cfg_attr(miri, ignore = "tens of thousands of entries")]
    fn memory_goes_back_as_entries_do() {
        let mut table = filled(20_000);
        let most = table.bytes();
        assert!(most <= 20_000 * 2 * size_of::<(usize, Entry)>() + 32 * 20_000, "{most}");
        for n in (0..20_000).rev().filter(|n| n % 100 != 0) {
            assert!(table.remove(address(n)).is_some());
        }
        assert_eq!(table.len(), 200);
        assert!(table.bytes() <= most / 40, "{} of {most}", table.bytes());
        (0..20_000).for_each(|n| assert_eq!(table.get(address(n)).is_some(), n % 100 == 0));
        (0..20_000).for_each(|n| assert_eq!(table.remove(address(n)).is_some(), n % 100 == 0));
        let left = table.bytes();
        assert!(table.is_empty() && left <= SLACK * (16 + size_of::<(usize, Entry)>()), "{left}");
    }
}
