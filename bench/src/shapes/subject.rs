//! What the timed loop works on: the shared state of a design, whatever its shape.
//!
//! Each shape (table, counter, queue, ids) is one [`Subject`]; it turns an operation into the calls
//! of the design, and notices what the design does wrong.

use super::ledger::Ledger;
use super::plan::{Operation, Plan};
use super::table::Table;
use super::value::Value;

/// What all operations of a round have in common.
#[derive(Debug)]
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
    type Thread<'a>;

    fn new(job: &Job<'_>) -> Self;
    fn thread(&self) -> Self::Thread<'_>;

    /// Reads; true if what was read is wrong.
    fn read(&self, job: &Job<'_>, operation: Operation, thread: &mut Self::Thread<'_>) -> bool;

    /// Changes; true if a value was given up, which the design has to free.
    fn change(
        &self,
        job: &Job<'_>,
        operation: Operation,
        thread: &mut Self::Thread<'_>,
        serial: u32,
    ) -> bool;

    /// Called every few operations, outside every section.
    fn pause(&self, _thread: &mut Self::Thread<'_>) {}

    /// Called by each thread after its last operation.
    fn leave(&self, _thread: Self::Thread<'_>) {}

    /// What is wrong while no thread works.
    fn errors_at_rest(&self) -> u64 {
        0
    }

    /// Frees some of what was given up, if the design can be asked to.
    fn flush(&self) {}

    /// The serial number of the update that made the value of this key.
    #[cfg(test)]
    fn serial(&self, _key: &[u8]) -> Option<u32> {
        None
    }
}

/// A table, whose keys come and go if it churns, and else stay.
#[derive(Debug)]
pub(crate) struct Keyed<T, const CHURNS: bool>(T);

/// The number of the key, and its bytes: of none where the design has no keys, whose loop is not
/// to touch them either.
#[inline]
fn key_of<'p, T: Table>(job: &Job<'p>, operation: Operation) -> (u32, &'p [u8]) {
    if T::KEYED { (operation.key(), &job.plan.keys[operation.key() as usize]) } else { (0, &[]) }
}

impl<T: Table, const CHURNS: bool> Subject for Keyed<T, CHURNS> {
    type Thread<'a> = T::Thread<'a>;

    fn new(job: &Job<'_>) -> Self {
        if !T::KEYED {
            return Self(T::new(std::iter::once((Box::default(), job.value(0, 0)))));
        }
        let keys = job.plan.keys.iter().cloned().zip(0..);
        Self(T::new(keys.map(|(bytes, key)| (bytes, job.value(key, 0)))))
    }

    fn thread(&self) -> T::Thread<'_> {
        self.0.thread()
    }

    #[inline]
    fn read(&self, job: &Job<'_>, operation: Operation, thread: &mut T::Thread<'_>) -> bool {
        let (key, bytes) = key_of::<T>(job, operation);
        let wrong = self.0.read(thread, bytes, |value| value.is_wrong(key, job.plan.work));
        // Where keys stay, one that is not found is an error too.
        wrong.unwrap_or(!CHURNS)
    }

    #[inline]
    fn change(
        &self,
        job: &Job<'_>,
        operation: Operation,
        thread: &mut T::Thread<'_>,
        serial: u32,
    ) -> bool {
        let (key, bytes) = key_of::<T>(job, operation);
        if !CHURNS {
            self.0.update(thread, bytes, job.value(key, serial));
            true
        } else if operation.is_remove() {
            self.0.remove(thread, bytes)
        } else {
            self.0.put(thread, bytes, job.value(key, serial))
        }
    }

    #[inline]
    fn pause(&self, thread: &mut T::Thread<'_>) {
        self.0.pause(thread);
    }

    fn flush(&self) {
        self.0.flush();
    }

    #[cfg(test)]
    fn serial(&self, key: &[u8]) -> Option<u32> {
        self.0.read(&mut self.0.thread(), key, Value::serial)
    }
}
