//! An ordered list of numbers, from which any number can be removed.

use std::collections::BTreeMap;

/// The numbers by their places.
#[derive(Clone, Debug, Default)]
pub(super) struct List(BTreeMap<i64, u32>);

impl List {
    /// Puts a number in front. Returns its place.
    pub(super) fn push(&mut self, number: u32) -> i64 {
        let place = self.0.first_key_value().map_or(0, |(first, _)| first - 1);
        self.0.insert(place, number);
        place
    }

    /// Puts a number behind all others. Returns its place.
    pub(super) fn append(&mut self, number: u32) -> i64 {
        let place = self.0.last_key_value().map_or(0, |(last, _)| last + 1);
        self.0.insert(place, number);
        place
    }

    /// Takes out the number at this place.
    pub(super) fn remove(&mut self, place: i64) {
        self.0.remove(&place);
    }

    /// Takes the first number.
    pub(super) fn pop(&mut self) -> Option<u32> {
        self.0.pop_first().map(|(_, number)| number)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.0.values().copied().collect()
    }
}
