//! Rayon's parallel iterators over maps and sets.

use std::hash::{BuildHasher, Hash};

use rayon::iter::{
    FromParallelIterator, IntoParallelIterator, Map, ParallelExtend, ParallelIterator,
};

use super::map::HashMap;
use super::set::{HashSet, HashSetRef};
use super::view::{HashMapRef, Iter};
use crate::collections::parts::{Parts, parts};
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

/// At the domain's limit rayon's threads wait, as [`insert`](HashMap::insert) does: **not to be
/// used in a section**, which they would wait for.
impl<K, V, S, D> ParallelExtend<(K, V)> for &HashMap<K, V, S, D>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Sync,
    D: DomainTag,
{
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, entries: I) {
        let map = *self;
        entries.into_par_iter().for_each(|(key, value)| {
            map.insert(key, value);
        });
    }
}

/// Not in a section, as it is extended: of keys that come again entries are replaced.
impl<K, V, S> FromParallelIterator<(K, V)> for HashMap<K, V, S>
where
    K: Weigh + Hash + Eq + Send + Sync + 'static,
    V: Weigh + Send + Sync + 'static,
    S: BuildHasher + Default + Sync,
{
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(entries: I) -> Self {
        let map = Self::default();
        (&map).par_extend(entries);
        map
    }
}

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

/// As for the map: not in a section.
impl<T, S, D> ParallelExtend<T> for &HashSet<T, S, D>
where
    T: Hash + Eq + Send + Sync + 'static,
    S: BuildHasher + Sync,
    D: DomainTag,
{
    fn par_extend<I: IntoParallelIterator<Item = T>>(&mut self, elements: I) {
        let set = *self;
        elements.into_par_iter().for_each(|element| {
            set.insert(element);
        });
    }
}

/// Not in a section, as it is extended: overflow nodes are replaced.
impl<T, S> FromParallelIterator<T> for HashSet<T, S>
where
    T: Weigh + Hash + Eq + Send + Sync + 'static,
    S: BuildHasher + Default + Sync,
{
    fn from_par_iter<I: IntoParallelIterator<Item = T>>(elements: I) -> Self {
        let set = Self::default();
        (&set).par_extend(elements);
        set
    }
}
