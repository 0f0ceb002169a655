//! A table of what was given a number, each one greater than all before.
//!
//! The entries stand in the order of their numbers. One that is taken out leaves a gap, until there
//! are more gaps than entries: so to add one, to find one and to take one out costs a number of
//! steps that is logarithmic in the number of entries, on average. (`BTreeMap` does the same. Its
//! code was an eighth of the library's, and 40 KB of every program.)

/// Gaps, and places, that are kept however few entries there are: a task that waits, is woken and
/// waits again allocates nothing.
const SLACK: usize = 8;

/// Entries by their numbers, which begin with 1.
#[derive(Debug)]
pub(crate) struct ByNumber<T> {
    /// In ascending order; `None` where an entry was taken out. Invariant: `entries.len() <= 2 *
    /// len + SLACK`.
    entries: Vec<(u64, Option<T>)>,
    len: usize,
    /// The number that was given last.
    last: u64,
}

impl<T> ByNumber<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), len: 0, last: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number that was given last.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Adds an entry, and returns its number.
    pub(crate) fn add(&mut self, entry: T) -> u64 {
        self.put(self.last + 1, entry)
    }

    /// Adds an entry with this number, which is greater than all before, and returns the number.
    pub(crate) fn put(&mut self, number: u64, entry: T) -> u64 {
        self.last = number;
        self.entries.push((number, Some(entry)));
        self.len += 1;
        number
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number)?;
        self.entries[place].1.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let place = self.place(number)?;
        let removed = self.entries[place].1.take()?;
        self.len -= 1;
        if self.entries.len() > 2 * self.len + SLACK {
            self.retain(&mut |_| true);
        }
        Some(removed)
    }

    /// Takes out the entries of which `keep` says no, oldest first.
    pub(crate) fn retain(&mut self, keep: &mut dyn FnMut(&mut T) -> bool) {
        self.entries.retain_mut(|(_, entry)| entry.as_mut().is_some_and(&mut *keep));
        self.len = self.entries.len();
        self.entries.shrink_to(2 * self.len + SLACK);
    }

    /// Takes out everything, oldest first.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.len = 0;
        std::mem::take(&mut self.entries).into_iter().filter_map(|(_, entry)| entry)
    }

    /// All entries, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|(_, entry)| entry.as_ref())
    }

    fn place(&self, number: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |(of_entry, _)| *of_entry).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::common::random::Random;

    /// Whatever is added and taken out in whatever order: it has what a map has, and gaps are few.
    #[test]
    fn it_is_a_map() {
        let (mut table, mut map) = (ByNumber::new(), BTreeMap::new());
        let mut random = Random(1);
        for step in 0..4_000_u64 {
            let number = random.below(table.last() + 2);
            match random.below(8) {
                0..=3 => assert_eq!(map.insert(table.add(step), step), None),
                4..=5 => assert_eq!(table.remove(number), map.remove(&number)),
                6 => assert_eq!(table.get_mut(number), map.get_mut(&number)),
                _ if step % 64 == 0 => {
                    table.retain(&mut |entry| *entry % 3 != 0);
                    map.retain(|_, entry| *entry % 3 != 0);
                }
                _ => {}
            }
            assert_eq!(table.len(), map.len());
            assert!(table.entries.len() <= 2 * table.len() + SLACK, "{step}: too many gaps");
        }
        assert!(table.len() > 100 && table.iter().eq(map.values()));
        assert!(table.take_all().eq(map.into_values()) && table.len() == 0);
    }
}
