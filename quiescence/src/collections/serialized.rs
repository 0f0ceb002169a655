//! Serde: maps and sets are serialised as what is in them.

use std::collections;
use std::hash::{BuildHasher, Hash};

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use super::copy_map::CopyMap;
use super::hash_map::{HashMap, HashSet};
use crate::domain::tag::DomainTag;
use crate::reclaim::weigh::Weigh;
use crate::sync::NoUninit;

/// All that is in a collection, by the serializer's function for that; and a collection of what the
/// standard library's has.
macro_rules! serialized {
    (
        [$($generics:tt)*] $type:ty, $shape:ident, |$this:ident| $all:expr,
        [$($made_generics:tt)*] $made:ty, $standard:ty
    ) => {
        impl<$($generics)*> Serialize for $type {
            fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
                let $this = self;
                // Items may come and go meanwhile, and formats ask for the number first.
                serializer.$shape($all.collect::<Vec<_>>())
            }
        }

        impl<'de, $($made_generics)*> Deserialize<'de> for $made {
            fn deserialize<Z: Deserializer<'de>>(deserializer: Z) -> Result<Self, Z::Error> {
                Ok(<$standard>::deserialize(deserializer)?.into_iter().collect())
            }
        }
    };
}

serialized!(
    [K: Serialize + Hash + Eq, V: Serialize, S: BuildHasher, D: DomainTag]
    HashMap<K, V, S, D>, collect_map, |map| map.read().iter(),
    [
        K: Deserialize<'de> + Weigh + Hash + Eq + Send + Sync + 'static,
        V: Deserialize<'de> + Weigh + Send + Sync + 'static,
        S: BuildHasher + Default
    ]
    HashMap<K, V, S>, collections::HashMap<K, V, S>
);

serialized!(
    [T: Serialize + Hash + Eq, S: BuildHasher, D: DomainTag]
    HashSet<T, S, D>, collect_seq, |set| set.read().iter(),
    [
        T: Deserialize<'de> + Weigh + Hash + Eq + Send + Sync + 'static,
        S: BuildHasher + Default
    ]
    HashSet<T, S>, collections::HashSet<T, S>
);

serialized!(
    [K: NoUninit + Serialize + Hash + Eq, V: NoUninit + Serialize, S: BuildHasher]
    CopyMap<K, V, S>, collect_map, |map| map.iter(),
    [
        K: NoUninit + Deserialize<'de> + Hash + Eq,
        V: NoUninit + Deserialize<'de>,
        S: BuildHasher + Default
    ]
    CopyMap<K, V, S>, collections::HashMap<K, V, S>
);
