//! Traits of the standard library and of serde for maps.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use super::map::HashMap;
use crate::collections::impls::{collected, extended, shown_as_all};
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

collected!(
    [K: Weigh + Hash + Eq + Send + Sync + 'static, V: Weigh + Send + Sync + 'static]
    HashMap<K, V>, (K, V)
);

extended!(
    [K: Hash + Eq + Send + Sync + 'static, V: Send + Sync + 'static, S: BuildHasher, D: DomainTag]
    HashMap<K, V, S, D>, (K, V), |map, entries| map.extend(entries)
);

shown_as_all!(
    [K: Hash + Eq + fmt::Debug, V: fmt::Debug, S: BuildHasher, D: DomainTag]
    HashMap<K, V, S, D>, debug_map, |map| map.read().iter()
);

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
