//! Rayon's parallel iterators over maps and sets.

use std::hash::{BuildHasher, Hash};

use rayon::iter::{IntoParallelIterator, Map, ParallelExtend, ParallelIterator};

use super::map::HashMap;
use super::set::{HashSet, HashSetRef};
use super::view::{HashMapRef, Iter};
use crate::collections::parts::{Parts, extended_in_parallel, parts};
use crate::domain::tag::{DomainTag, Section};
use crate::reclaim::weigh::Weigh;

/// The entries of a map, visited by several threads: the parallel iterator of `&HashMapRef`.
///
/// The threads need no section of their own. The section of the [`HashMapRef`] begins before and
/// ends after their work, so no grace period that could free what they find ends meanwhile. **They
/// must not wait for a grace period:** an update that waits at the domain's limit would wait for
/// that section and deadlock. Use the `try_` methods there.
pub type ParIter<'s, K, V, S, D> = Parts<Iter<'s, K, V, S, D>>;

impl<'s, K, V, S, D, G> IntoParallelIterator for &'s HashMapRef<'_, K, V, S, D, G>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Sync,
    D: DomainTag,
    G: Section<D>,
{
    type Iter = ParIter<'s, K, V, S, D>;
    type Item = (&'s K, &'s V);

    fn into_par_iter(self) -> Self::Iter {
        parts(self.iter(), |mut first| {
            let second = first.walk.split().map(|walk| Iter { map: first.map, walk });
            (first, second)
        })
    }
}

extended_in_parallel!(
    /// At the domain's limit rayon's threads wait, as [`insert`](HashMap::insert) does: **not to be
    /// used in a section**, which they would wait for.
    [
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Sync,
        D: DomainTag
    ]
    &HashMap<K, V, S, D>, (K, V), |map, (key, value)| map.insert(key, value),
    /// Not in a section, as it is extended: of keys that come again entries are replaced.
    [
        K: Weigh + Hash + Eq + Send + Sync + 'static,
        V: Weigh + Send + Sync + 'static,
        S: BuildHasher + Default + Sync
    ]
    HashMap<K, V, S>
);

/// The elements of a set, gone over by several threads: as [`ParIter`].
impl<'s, T, S, D, G> IntoParallelIterator for &'s HashSetRef<'_, T, S, D, G>
where
    T: Hash + Eq + Send + Sync + 'static,
    S: BuildHasher + Sync,
    D: DomainTag,
    G: Section<D>,
{
    type Iter = Map<ParIter<'s, T, (), S, D>, fn((&'s T, &'s ())) -> &'s T>;
    type Item = &'s T;

    fn into_par_iter(self) -> Self::Iter {
        (&self.elements).into_par_iter().map(|(element, ())| element)
    }
}

extended_in_parallel!(
    /// As for the map: not in a section.
    [T: Hash + Eq + Send + Sync + 'static, S: BuildHasher + Sync, D: DomainTag]
    &HashSet<T, S, D>, T, |set, element| set.insert(element),
    /// Not in a section, as it is extended: overflow nodes are replaced.
    [T: Weigh + Hash + Eq + Send + Sync + 'static, S: BuildHasher + Default + Sync]
    HashSet<T, S>
);
