//! What the timed loop works on: the shared state of a design, whatever its shape.
//!
//! Each shape (table, counter, queue, ids) is one [`Subject`]; it turns an operation into the calls
//! of the design, and notices what the design does wrong.

use super::plan::{Operation, Plan};
use super::table::Key;
use super::value::{Ledger, Value};
use crate::cases::maps::Map;

/// What all operations of a round have in common.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) ledger: &'static Ledger,
}

impl Job<'_> {
    /// The value that update number `serial` gives to `key`.
    #[inline]
    pub(crate) fn value(&self, key: u32, serial: u32) -> Value {
        Value::new(key, serial, self.plan.value_bytes, self.ledger)
    }
}

/// Shared state of some shape, and the operations on it.
pub(crate) trait Subject: Sized + Send + Sync + 'static {
    /// Whether each change is timed. Where a change is shorter than the reading of a clock, it is
    /// not: the clock would be what is measured.
    const TIMED: bool = true;
    /// What a thread holds while it works.
    type Thread: 'static;

    fn new(job: &Job<'_>) -> Self;
    fn thread(&self) -> Self::Thread;

    /// Reads; true if what was read is wrong.
    fn read(&self, job: &Job<'_>, operation: Operation, thread: &mut Self::Thread) -> bool;

    /// Changes; true if a value was given up, which the design has to free.
    fn change(
        &self,
        job: &Job<'_>,
        operation: Operation,
        thread: &mut Self::Thread,
        serial: u32,
    ) -> bool;

    /// Called every few operations, outside every section.
    fn pause(&self, _thread: &mut Self::Thread) {}

    /// Called by each thread after its last operation.
    fn leave(&self, _thread: Self::Thread) {}

    /// What is wrong while no thread works.
    fn errors_at_rest(&self, _ledger: &Ledger) -> u64 {
        0
    }

    /// Frees some of what was given up, if the design can be asked to.
    fn flush(&self) {}

    /// The serial number of the update that made the value of this key.
    #[cfg(test)]
    fn serial(&self, _key: &Key) -> Option<u32> {
        None
    }
}

/// A table, whose keys come and go if it churns, and else stay.
pub(crate) struct Keyed<T, const CHURNS: bool> {
    table: T,
    none: Key,
}

impl<T: Map<Key, Value>, const CHURNS: bool> Keyed<T, CHURNS> {
    /// The number of the key, and its bytes: of none where the design has no keys, whose loop is
    /// not to touch them either.
    #[inline]
    fn key<'k>(&'k self, job: &'k Job<'_>, operation: Operation) -> (u32, &'k Key) {
        match T::KEYED {
            true => (operation.key(), &job.plan.keys[operation.key() as usize]),
            false => (0, &self.none),
        }
    }
}

impl<T: Map<Key, Value>, const CHURNS: bool> Subject for Keyed<T, CHURNS> {
    type Thread = T::Thread;

    fn new(job: &Job<'_>) -> Self {
        let none = Key::default();
        let keys = if T::KEYED { &*job.plan.keys } else { std::slice::from_ref(&none) };
        let entries = keys.iter().cloned().zip(0..);
        Self { table: T::of(entries.map(|(bytes, key)| (bytes, job.value(key, 0)))), none }
    }

    fn thread(&self) -> T::Thread {
        self.table.thread()
    }

    #[inline]
    fn read(&self, job: &Job<'_>, operation: Operation, thread: &mut T::Thread) -> bool {
        let (key, bytes) = self.key(job, operation);
        let wrong = self.table.read(thread, bytes, |value| value.is_wrong(key, job.plan.work));
        // Where keys stay, one that is not found is an error too.
        wrong.unwrap_or(!CHURNS)
    }

    #[inline]
    fn change(
        &self,
        job: &Job<'_>,
        operation: Operation,
        thread: &mut T::Thread,
        serial: u32,
    ) -> bool {
        let (key, bytes) = self.key(job, operation);
        if !CHURNS {
            self.table.replace(thread, bytes, job.value(key, serial));
            true
        } else if operation.is_remove() {
            self.table.remove(thread, bytes)
        } else {
            self.table.put(thread, bytes, job.value(key, serial))
        }
    }

    #[inline]
    fn pause(&self, thread: &mut T::Thread) {
        T::pause(thread);
    }

    fn flush(&self) {
        self.table.flush();
    }

    #[cfg(test)]
    fn serial(&self, key: &Key) -> Option<u32> {
        self.table.read(&mut self.table.thread(), key, Value::serial)
    }
}
