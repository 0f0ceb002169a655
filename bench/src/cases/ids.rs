//! Values by ids that the table gives out: look-ups, and updates that remove a value and insert
//! another one, under a new id.
//!
//! A map is such a table by numbers that are counted up. The current id of a key is in an array
//! that all tables pay alike for. So a look-up may have an id that is gone; then it takes the next.

use std::sync::atomic::{AtomicU64, Ordering};

use super::hash::{Operation, Table, run};
use crate::shapes::Ids;

/// A table, and the current id of each key, whose value is the key.
pub(crate) struct Numbers<T> {
    table: T,
    ids: Vec<AtomicU64>,
}

impl<T: Ids<u64>> Numbers<T> {
    pub(crate) fn boxed(keys: &[u64]) -> Box<dyn Table> {
        let table = T::new();
        let ids = keys.iter().map(|&key| AtomicU64::new(table.insert(key))).collect();
        Box::new(Self { table, ids })
    }

    fn id(&self, key: u64) -> u64 {
        // Acquire: pairs with the AcqRel in `run`; an id is looked up after its insertion.
        self.ids[key as usize].load(Ordering::Acquire)
    }
}

impl<T: Ids<u64>> Table for Numbers<T> {
    fn run(&self, operations: &[Operation], rounds: usize) {
        let search = |(): &mut (), key| {
            let mut id = self.id(key);
            loop {
                let found = self.table.read(id, |value| *value);
                let now = self.id(key);
                if found.is_some() || now == id {
                    return found;
                }
                id = now;
            }
        };
        let replace = |(): &mut (), key: u64| {
            let new = self.table.insert(key);
            // AcqRel: publishes the new id, and takes the old one from the thread that did so.
            let old = self.ids[key as usize].swap(new, Ordering::AcqRel);
            assert!(self.table.remove(old), "an id is removed once");
        };
        run(operations, rounds, &mut (), search, replace, |()| ());
    }

    fn flush(&self) {
        self.table.flush();
    }
}
