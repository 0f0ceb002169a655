//! Iteration over all pairs of a map while it changes.
//!
//! A walk goes through classes of hashes. A class has all hashes with one index in a table of some
//! size; at first the classes are the buckets of the current table. If the pairs of a class have
//! moved to a larger table, the class is split in two. If they have moved to a smaller one, their
//! bucket has pairs of other classes too, which the walk skips. Each class is copied as of one
//! moment. So a pair that is there all the time is seen once, and no key is seen twice.

use std::hash::{BuildHasher, Hash};
use std::mem;
use std::ops::Range;

use super::map::CopyMap;
use crate::domain::impls::shown_in_part;
use crate::sync::NoUninit;

/// Copies of the pairs of a map: see [`CopyMap::iter`].
pub struct Iter<'m, K: NoUninit, V: NoUninit, S> {
    map: &'m CopyMap<K, V, S>,
    /// Indexes that are left, and the mask that they are of.
    indexes: Range<usize>,
    mask: usize,
    /// Parts of a class that was divided: index and mask.
    parts: Vec<(usize, usize)>,
    /// The pairs of the current class that are left.
    pairs: Vec<(K, V)>,
}

impl<'m, K: NoUninit, V: NoUninit, S> Iter<'m, K, V, S> {
    /// Iterates over the classes that have some of the indexes of a mask.
    pub(super) fn of(map: &'m CopyMap<K, V, S>, indexes: Range<usize>, mask: usize) -> Self {
        Self { map, indexes, mask, parts: Vec::new(), pairs: Vec::new() }
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> Iter<'_, K, V, S> {
    /// Copies the next class. `None` after the last.
    fn copy_class(&mut self) -> Option<()> {
        let next = || self.indexes.next().map(|index| (index, self.mask));
        let (index, mask) = self.parts.pop().or_else(next)?;
        let now = self.map.tables.copy(index as u64, &mut self.pairs).table.mask;
        if now > mask {
            self.pairs.clear();
            let both = [index + mask + 1, index];
            self.parts.extend(both.map(|index| (index, 2 * mask + 1)));
        } else if now < mask {
            // Taken out: if `Hash` panics, the others of other classes are not seen.
            let mut pairs = mem::take(&mut self.pairs);
            pairs.retain(|(key, _)| self.map.hash(key) as usize & mask == index);
            self.pairs = pairs;
        }
        Some(())
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> Iterator for Iter<'_, K, V, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.pairs.pop() {
                return Some(pair);
            }
            self.copy_class()?;
        }
    }
}

shown_in_part!([K: NoUninit, V: NoUninit, S] Iter<'_, K, V, S>);

#[cfg(feature = "rayon")]
mod parallel {
    use std::hash::{BuildHasher, Hash};
    use std::ops::Range;

    use rayon::iter::{IntoParallelIterator, ParallelExtend, ParallelIterator};

    use super::{CopyMap, Iter};
    use crate::collections::parts::{Parts, extended_in_parallel, parts};
    use crate::sync::NoUninit;

    /// The pairs of a map, visited by several threads: the parallel iterator of `&CopyMap`.
    pub type ParIter<'m, K, V, S> = Parts<Iter<'m, K, V, S>>;

    impl<'m, K, V, S> IntoParallelIterator for &'m CopyMap<K, V, S>
    where
        K: NoUninit + Hash + Eq + Send,
        V: NoUninit + Send,
        S: BuildHasher + Sync,
    {
        type Iter = ParIter<'m, K, V, S>;
        type Item = (K, V);

        fn into_par_iter(self) -> Self::Iter {
            parts(self.iter(), |mut first| {
                let Range { start, end } = first.indexes;
                let middle = start.midpoint(end);
                let second = (middle > start).then(|| {
                    first.indexes.end = middle;
                    Iter::of(first.map, middle..end, first.mask)
                });
                (first, second)
            })
        }
    }

    extended_in_parallel!(
        [K: NoUninit + Hash + Eq + Send, V: NoUninit + Send, S: BuildHasher + Sync]
        &CopyMap<K, V, S>, (K, V), |map, (key, value)| map.insert(key, value),
        [K: NoUninit + Hash + Eq + Send, V: NoUninit + Send, S: BuildHasher + Default + Sync]
        CopyMap<K, V, S>
    );
}
#[cfg(feature = "rayon")]
pub use self::parallel::ParIter;
