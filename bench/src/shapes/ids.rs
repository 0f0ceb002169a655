//! Values by ids that the table gives out: sessions, handles, file descriptors.
//!
//! A read looks an id up, an update removes a value with its id and inserts another one under a new
//! id. Which id is current is written in a word for each key, that all designs pay alike. A reader
//! may have an id whose value is gone: then it finds nothing, and never the value of another id.

use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::Operation;
use super::subject::{Job, Subject};
use super::value::{Ledger, Value};
use crate::cases::maps::Map;

/// A table that gives out ids.
pub(crate) trait Ids<V = Value>: Send + Sync + 'static {
    fn new() -> Self;
    fn insert(&self, value: V) -> u64;
    /// True if it was there.
    fn remove(&self, id: u64) -> bool;
    /// Hands the value to `look`. Nothing if there is none of this id.
    fn read<R>(&self, id: u64, look: impl FnOnce(&V) -> R) -> Option<R>;

    /// Frees some of what was removed, if the design can be asked to.
    fn flush(&self) {}
}

/// A map whose ids are numbers that are counted up.
pub(crate) struct CountedUp<M> {
    map: M,
    next: AtomicU64,
}

impl<V: 'static, M: Map<u64, V, Thread = ()>> Ids<V> for CountedUp<M> {
    fn new() -> Self {
        Self { map: M::with_capacity(0), next: AtomicU64::new(0) }
    }

    #[inline]
    fn insert(&self, value: V) -> u64 {
        // Relaxed: it hands out numbers and orders nothing.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.map.insert(&mut (), &id, value);
        id
    }

    #[inline]
    fn remove(&self, id: u64) -> bool {
        self.map.remove(&mut (), &id)
    }

    #[inline]
    fn read<R>(&self, id: u64, look: impl FnOnce(&V) -> R) -> Option<R> {
        self.map.read(&mut (), &id, look)
    }

    fn flush(&self) {
        self.map.flush();
    }
}

/// A table, and the current id of each key.
pub(crate) struct Numbered<T> {
    pub(crate) table: T,
    ids: Box<[AtomicU64]>,
}

impl<T> Numbered<T> {
    /// With the value of each key.
    pub(crate) fn of<V>(values: impl Iterator<Item = V>) -> Self
    where
        T: Ids<V>,
    {
        let table = T::new();
        let ids = values.map(|value| AtomicU64::new(table.insert(value))).collect();
        Self { table, ids }
    }

    #[inline(always)]
    pub(crate) fn id(&self, key: usize) -> u64 {
        // Acquire: pairs with the AcqRel in `renew`; an id is looked up after its insertion.
        self.ids[key].load(Ordering::Acquire)
    }

    /// Gives a key another value, under a new id. Whether the old one was there.
    #[inline(always)]
    pub(crate) fn renew<V>(&self, key: usize, value: V) -> bool
    where
        T: Ids<V>,
    {
        let new = self.table.insert(value);
        // AcqRel: publishes the new id, and takes the old one from the thread that published it.
        let old = self.ids[key].swap(new, Ordering::AcqRel);
        self.table.remove(old)
    }
}

impl<T: Ids> Subject for Numbered<T> {
    type Thread = ();

    fn new(job: &Job<'_>) -> Self {
        Self::of((0..job.plan.keys.len() as u32).map(|key| job.value(key, 0)))
    }

    fn thread(&self) {}

    #[inline]
    fn read(&self, job: &Job<'_>, operation: Operation, (): &mut ()) -> bool {
        let key = operation.key();
        let id = self.id(key as usize);
        let wrong = self.table.read(id, |value| value.is_wrong(key, job.plan.work));
        // What is not found was removed since the id was read. Then the id is another one by now.
        wrong.unwrap_or_else(|| self.id(key as usize) == id)
    }

    #[inline]
    fn change(&self, job: &Job<'_>, operation: Operation, (): &mut (), serial: u32) -> bool {
        let key = operation.key();
        self.renew(key as usize, job.value(key, serial))
    }

    fn errors_at_rest(&self, _: &Ledger) -> u64 {
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
