//! Rayon: iterators that its threads can split into parts, and collections that they extend.

use rayon::iter::{FlatMapIter, ParallelIterator, Split, split};

/// An iterator in parts.
pub(super) type Parts<I> = FlatMapIter<Split<I, SplitOff<I>>, fn(I) -> I>;

/// Splits off a part of an iterator, if it has more than one.
pub(super) type SplitOff<I> = fn(I) -> (I, Option<I>);

/// Divides an iterator, as often as there are threads for its parts.
pub(super) fn parts<I: Iterator<Item: Send> + Send>(all: I, split_off: SplitOff<I>) -> Parts<I> {
    split(all, split_off).flat_map_iter(|part| part)
}

/// How threads extend a collection through a shared reference, each item by `insert`; and how they
/// make one.
macro_rules! extended_in_parallel {
    (
        $(#[$of_extending:meta])*
        [$($generics:tt)*] $type:ty, $item:ty, |$this:ident, $one:pat_param| $insert:expr,
        $(#[$of_making:meta])*
        [$($made_generics:tt)*] $made:ty
    ) => {
        $(#[$of_extending])*
        impl<$($generics)*> rayon::iter::ParallelExtend<$item> for $type {
            fn par_extend<I>(&mut self, items: I)
            where
                I: rayon::iter::IntoParallelIterator<Item = $item>,
            {
                let $this = *self;
                items.into_par_iter().for_each(|$one| _ = $insert);
            }
        }

        $(#[$of_making])*
        impl<$($made_generics)*> rayon::iter::FromParallelIterator<$item> for $made {
            fn from_par_iter<I>(items: I) -> Self
            where
                I: rayon::iter::IntoParallelIterator<Item = $item>,
            {
                let made = Self::default();
                (&made).par_extend(items);
                made
            }
        }
    };
}
pub(super) use extended_in_parallel;
