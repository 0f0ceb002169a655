//! Where the engines keep what they have for each CPU, here and in the explorer: on the heap.

use kernel::engine::store::{Item, Store};

/// Memory for so many CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heap(pub usize);

impl Store for Heap {
    type Of<T: Item> = Vec<T>;

    const CAPACITY: usize = usize::MAX;

    fn cpus(self) -> usize {
        self.0
    }

    fn of<T: Item>(self, count: usize, value: T) -> Vec<T> {
        vec![value; count]
    }
}
