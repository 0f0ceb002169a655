//! Values by ids that the table gives out: sessions, handles, file descriptors.
//!
//! A read looks an id up, an update removes a value with its id and inserts another one under a new
//! id. Which id is current is written in a word for each key, that all designs pay alike. A reader
//! may have an id whose value is gone: then it finds nothing, and never the value of another id.

use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::Operation;
use super::subject::{Job, Subject};
use super::value::Value;

/// A table that gives out ids.
pub(crate) trait Ids: Send + Sync + 'static {
    fn new() -> Self;
    fn insert(&self, value: Value) -> u64;
    /// True if it was there.
    fn remove(&self, id: u64) -> bool;
    /// Hands the value to `look`. Nothing if there is none of this id.
    fn read<R>(&self, id: u64, look: impl FnOnce(&Value) -> R) -> Option<R>;

    /// Frees some of what was removed, if the design can be asked to.
    fn flush(&self) {}
}

/// A table, and the current id of each key.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    table: T,
    ids: Box<[AtomicU64]>,
}

impl<T: Ids> Subject for Numbered<T> {
    type Thread<'a> = ();

    fn new(job: &Job<'_>) -> Self {
        let table = T::new();
        let ids = (0..job.plan.keys.len() as u32).map(|key| table.insert(job.value(key, 0)));
        Self { ids: ids.map(AtomicU64::new).collect(), table }
    }

    fn thread(&self) {}

    #[inline]
    fn read(&self, job: &Job<'_>, operation: Operation, (): &mut ()) -> bool {
        let key = operation.key();
        // Acquire: pairs with the AcqRel in `change`; an id is looked up after its insertion.
        let id = self.ids[key as usize].load(Ordering::Acquire);
        let wrong = self.table.read(id, |value| value.is_wrong(key, job.plan.work));
        // What is not found was removed since the id was read. Then the id is another one by now.
        wrong.unwrap_or_else(|| self.ids[key as usize].load(Ordering::Acquire) == id)
    }

    #[inline]
    fn change(&self, job: &Job<'_>, operation: Operation, (): &mut (), serial: u32) -> bool {
        let key = operation.key();
        let new = self.table.insert(job.value(key, serial));
        // AcqRel: publishes the new id, and takes the old one from the thread that published it.
        let old = self.ids[key as usize].swap(new, Ordering::AcqRel);
        self.table.remove(old)
    }

    fn errors_at_rest(&self) -> u64 {
        let is_gone = |id: &&AtomicU64| {
            // Relaxed: no thread writes any more.
            self.table.read(id.load(Ordering::Relaxed), |_| ()).is_none()
        };
        self.ids.iter().filter(is_gone).count() as u64
    }

    fn flush(&self) {
        self.table.flush();
    }
}

/// The slab that is put under a lock: slots with generations, and a list of free ones.
#[derive(Debug)]
pub(crate) struct Slab<V> {
    slots: Vec<(u32, Option<V>)>,
    free: Vec<u32>,
}

impl<V> Default for Slab<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<V> Slab<V> {
    pub(crate) fn insert(&mut self, value: V) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (generation, slot) = &mut self.slots[index as usize];
        *generation = generation.wrapping_add(1);
        *slot = Some(value);
        u64::from(*generation) << 32 | u64::from(index)
    }

    pub(crate) fn get(&self, id: u64) -> Option<&V> {
        let (generation, slot) = self.slots.get(id as u32 as usize)?;
        slot.as_ref().filter(|_| *generation == (id >> 32) as u32)
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<V> {
        let (generation, slot) = self.slots.get_mut(id as u32 as usize)?;
        let value = if *generation == (id >> 32) as u32 { slot.take() } else { None };
        self.free.extend(value.is_some().then_some(id as u32));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_slab_finds_its_value_and_never_the_next_one_of_its_slot() {
        let mut slab = Slab::default();
        let first = slab.insert("a");
        let second = slab.insert("b");
        assert_eq!((slab.get(first), slab.get(second)), (Some(&"a"), Some(&"b")));
        assert_eq!((slab.remove(first), slab.remove(first)), (Some("a"), None));
        let third = slab.insert("c");
        assert_eq!((first as u32, first == third), (third as u32, false));
        assert_eq!((slab.get(first), slab.get(third)), (None, Some(&"c")));
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.slots.len(), 2);
    }
}
