//! Nodes that are in no chain: those of the map, and those that a thread has taken.

use std::mem::{self, ManuallyDrop};

use super::bucket::Bucket;
use crate::collections::lines::Lines;
use crate::os::sync::{self, Mutex};
use crate::sync::NoUninit;

/// The nodes of a map, freed with it [CM-I1].
pub(super) struct Nodes<K, V> {
    pub(super) all: Vec<Lines>,
    /// Those that no chain and no thread has.
    pub(super) spare: Vec<Bucket<K, V>>,
}

/// Nodes that a thread is about to use, or has taken out of a chain. They go back to the map,
/// whatever ends the thread's work.
pub(super) struct Spare<'m, K, V> {
    /// Dropped in `give_back`: so an update that takes none, as most, calls nothing at its end.
    pub(super) taken: ManuallyDrop<Vec<Bucket<K, V>>>,
    nodes: &'m Mutex<Nodes<K, V>>,
}

impl<'m, K: NoUninit, V: NoUninit> Spare<'m, K, V> {
    /// None, yet.
    #[inline(always)]
    pub(super) fn of(nodes: &'m Mutex<Nodes<K, V>>) -> Self {
        Self { taken: ManuallyDrop::new(Vec::new()), nodes }
    }

    /// Takes nodes until there are `enough`. Takes no lock if there are already.
    #[cold]
    #[inline(never)]
    pub(super) fn fill(&mut self, enough: usize) {
        if self.taken.len() >= enough {
            return;
        }
        let mut nodes = sync::lock(self.nodes);
        while self.taken.len() < enough {
            let node = nodes.spare.pop().unwrap_or_else(|| {
                let lines = Bucket::<K, V>::lines(1);
                // SAFETY: the first one; it stays as long as the map.
                let node = unsafe { Bucket::at(&lines, 0) };
                nodes.all.push(lines);
                node
            });
            self.taken.push(node);
        }
    }
}

impl<K, V> Spare<'_, K, V> {
    #[cold]
    #[inline(never)]
    fn give_back(&mut self) {
        let mut taken = mem::take(&mut *self.taken);
        if !taken.is_empty() {
            sync::lock(self.nodes).spare.append(&mut taken);
        }
    }
}

impl<K, V> Drop for Spare<'_, K, V> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.taken.capacity() != 0 {
            self.give_back();
        }
    }
}
