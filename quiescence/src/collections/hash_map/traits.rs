//! Traits of the standard library and of serde for maps.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use super::map::HashMap;
use crate::collections::extended::extended;
use crate::domain::tag::DomainTag;
use crate::reclaim::weigh::{Weigh, owns};

impl<K, V, S> Default for HashMap<K, V, S>
where
    K: Weigh + Send + Sync + 'static,
    V: Weigh + Send + Sync + 'static,
    S: Default,
{
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> FromIterator<(K, V)> for HashMap<K, V, S>
where
    K: Weigh + Hash + Eq + Send + Sync + 'static,
    V: Weigh + Send + Sync + 'static,
    S: BuildHasher + Default,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K, V, const N: usize> From<[(K, V); N]> for HashMap<K, V>
where
    K: Weigh + Hash + Eq + Send + Sync + 'static,
    V: Weigh + Send + Sync + 'static,
{
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

extended!(
    [K: Hash + Eq + Send + Sync + 'static, V: Send + Sync + 'static, S: BuildHasher, D: DomainTag]
    HashMap<K, V, S, D>, (K, V), |map, entries| map.extend(entries)
);

impl<K, V, S, D> fmt::Debug for HashMap<K, V, S, D>
where
    K: Hash + Eq + fmt::Debug,
    V: fmt::Debug,
    S: BuildHasher,
    D: DomainTag,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.read(), f)
    }
}

/// The same keys with the same values; of maps that do not change meanwhile.
impl<K: Hash + Eq, V: PartialEq, S: BuildHasher, D: DomainTag> PartialEq for HashMap<K, V, S, D> {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (self.read(), other.read());
        one.len() == other.len() && one.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<K: Hash + Eq, V: Eq, S: BuildHasher, D: DomainTag> Eq for HashMap<K, V, S, D> {}

owns! {
    /// The table, and the boxes of its entries; not what the entries own, which is weighed where
    /// they are replaced.
    [K, V, S, D: DomainTag] HashMap<K, V, S, D>, true, |map| map.bytes();
}

#[cfg(feature = "serde")]
mod serde {
    use std::hash::{BuildHasher, Hash};

    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    use super::{HashMap, Weigh};
    use crate::domain::tag::DomainTag;

    impl<K, V, S, D> Serialize for HashMap<K, V, S, D>
    where
        K: Serialize + Hash + Eq,
        V: Serialize,
        S: BuildHasher,
        D: DomainTag,
    {
        fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
            // Entries may come and go meanwhile, and formats ask for the number first.
            let map = self.read();
            let entries: Vec<_> = map.iter().collect();
            serializer.collect_map(entries)
        }
    }

    impl<'de, K, V, S> Deserialize<'de> for HashMap<K, V, S>
    where
        K: Deserialize<'de> + Weigh + Hash + Eq + Send + Sync + 'static,
        V: Deserialize<'de> + Weigh + Send + Sync + 'static,
        S: BuildHasher + Default,
    {
        fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
            let entries = std::collections::HashMap::<K, V, S>::deserialize(deserializer)?;
            Ok(entries.into_iter().collect())
        }
    }
}
