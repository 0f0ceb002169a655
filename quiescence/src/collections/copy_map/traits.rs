//! Traits of the standard library and of serde for maps.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use super::iter::Iter;
use super::map::CopyMap;
use crate::collections::extended::extended;
use crate::sync::NoUninit;

impl<K: NoUninit, V: NoUninit, S: Default> Default for CopyMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> FromIterator<(K, V)> for CopyMap<K, V, S>
where
    K: NoUninit + Hash + Eq,
    V: NoUninit,
    S: BuildHasher + Default,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        // Half of them, as in `extend`.
        let map = Self::with_capacity_and_hasher(pairs.size_hint().0.div_ceil(2), S::default());
        map.extend(pairs);
        map
    }
}

impl<K: NoUninit + Hash + Eq, V: NoUninit, const N: usize> From<[(K, V); N]> for CopyMap<K, V> {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

extended!(
    [K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher]
    CopyMap<K, V, S>, (K, V), |map, pairs| map.extend(pairs)
);

impl<'m, K, V, S> IntoIterator for &'m CopyMap<K, V, S>
where
    K: NoUninit + Hash + Eq,
    V: NoUninit,
    S: BuildHasher,
{
    type Item = (K, V);
    type IntoIter = Iter<'m, K, V, S>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K, V, S> fmt::Debug for CopyMap<K, V, S>
where
    K: NoUninit + Hash + Eq + fmt::Debug,
    V: NoUninit + fmt::Debug,
    S: BuildHasher,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

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

#[cfg(feature = "serde")]
mod serde {
    use std::hash::{BuildHasher, Hash};

    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    use super::{CopyMap, NoUninit};

    impl<K, V, S> Serialize for CopyMap<K, V, S>
    where
        K: NoUninit + Serialize + Hash + Eq,
        V: NoUninit + Serialize,
        S: BuildHasher,
    {
        fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
            // Pairs may come and go meanwhile, and formats ask for the number first.
            serializer.collect_map(self.iter().collect::<Vec<_>>())
        }
    }

    impl<'de, K, V, S> Deserialize<'de> for CopyMap<K, V, S>
    where
        K: NoUninit + Deserialize<'de> + Hash + Eq,
        V: NoUninit + Deserialize<'de>,
        S: BuildHasher + Default,
    {
        fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
            let pairs = std::collections::HashMap::<K, V, S>::deserialize(deserializer)?;
            Ok(pairs.into_iter().collect())
        }
    }
}
