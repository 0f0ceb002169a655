//! Where an engine keeps what it has for each CPU: the memory is whoever makes it to choose.

use core::fmt::Debug;
use core::hash::Hash;
use core::ops::{Deref, DerefMut};

/// What may be kept: all that is plain.
pub trait Item: Clone + Debug + Eq + Hash {}

impl<T: Clone + Debug + Eq + Hash> Item for T {}

/// Memory for an engine over a given number of CPUs.
pub trait Store: Copy + Debug + Eq + Hash {
    /// An array of values of one type, of the requested length.
    type Of<T: Item>: Item + Deref<Target = [T]> + DerefMut;

    /// The largest number of values of a type.
    const CAPACITY: usize;

    /// The number of CPUs.
    fn cpus(self) -> usize;

    /// An array of `count` copies of a value; [`CAPACITY`](Self::CAPACITY) copies, if that is less.
    fn of<T: Item>(self, count: usize, value: T) -> Self::Of<T>;
}

/// On the heap: for as many CPUs as it says.
#[cfg(any(test, feature = "alloc"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heap(pub usize);

#[cfg(any(test, feature = "alloc"))]
impl Store for Heap {
    type Of<T: Item> = alloc::vec::Vec<T>;

    const CAPACITY: usize = usize::MAX;

    fn cpus(self) -> usize {
        self.0
    }

    fn of<T: Item>(self, count: usize, value: T) -> Self::Of<T> {
        alloc::vec![value; count]
    }
}

/// Arrays: for at most `N` CPUs, of which there are as many as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fixed<const N: usize>(pub usize);

/// At most `N` values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Array<T, const N: usize> {
    items: [T; N],
    len: usize,
}

impl<const N: usize> Store for Fixed<N> {
    type Of<T: Item> = Array<T, N>;

    const CAPACITY: usize = N;

    fn cpus(self) -> usize {
        self.0.min(N)
    }

    fn of<T: Item>(self, count: usize, value: T) -> Array<T, N> {
        Array { items: core::array::from_fn(|_| value.clone()), len: count.min(N) }
    }
}

impl<T, const N: usize> Deref for Array<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}

impl<T, const N: usize> DerefMut for Array<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[..self.len]
    }
}
