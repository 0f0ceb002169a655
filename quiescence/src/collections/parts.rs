//! Iterators that rayon's threads can split into parts.

use rayon::iter::{FlatMapIter, ParallelIterator, Split, split};

/// An iterator in parts.
pub(super) type Parts<I> = FlatMapIter<Split<I, SplitOff<I>>, fn(I) -> I>;

/// Splits off a part of an iterator, if it has more than one.
pub(super) type SplitOff<I> = fn(I) -> (I, Option<I>);

/// Divides an iterator, as often as there are threads for its parts.
pub(super) fn parts<I: Iterator<Item: Send> + Send>(all: I, split_off: SplitOff<I>) -> Parts<I> {
    split(all, split_off).flat_map_iter(|part| part)
}
