//! Traits of the standard library and of serde for maps.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use super::iter::Iter;
use super::map::CopyMap;
use crate::collections::impls::{collected, extended, iterated, shown_as_all};
use crate::sync::NoUninit;

impl<K: NoUninit, V: NoUninit, S: Default> Default for CopyMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

collected!([K: NoUninit + Hash + Eq, V: NoUninit] CopyMap<K, V>, (K, V));

extended!(
    [K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher]
    CopyMap<K, V, S>, (K, V), |map, pairs| map.extend(pairs)
);

iterated!(
    ['m, K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher]
    &'m CopyMap<K, V, S>, (K, V), Iter<'m, K, V, S>
);

shown_as_all!(
    [K: NoUninit + Hash + Eq + fmt::Debug, V: NoUninit + fmt::Debug, S: BuildHasher]
    CopyMap<K, V, S>, debug_map, |map| map.iter()
);

/// The same keys with the same values; of maps that do not change meanwhile.
impl<K, V, S> PartialEq for CopyMap<K, V, S>
where
    K: NoUninit + Hash + Eq,
    V: NoUninit + PartialEq,
    S: BuildHasher,
{
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(&key) == Some(value))
    }
}

impl<K, V, S> Eq for CopyMap<K, V, S>
where
    K: NoUninit + Hash + Eq,
    V: NoUninit + Eq,
    S: BuildHasher,
{
}
