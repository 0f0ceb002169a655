//! Values by ids that the table gives out: look-ups, and updates that remove a value and insert
//! another one, under a new id.
//!
//! A map is such a table by numbers that are counted up. The current id of a key is in an array
//! that all tables pay alike for. So a look-up may have an id that is gone; then it takes the next.

use super::hash::{Operation, Table, run};
use crate::shapes::{Ids, Numbered};

impl<T: Ids<u64>> Table for Numbered<T> {
    fn run(&self, operations: &[Operation], rounds: usize) {
        let search = |(): &mut (), key| {
            let mut id = self.id(key as usize);
            loop {
                let found = self.table.read(id, |value| *value);
                let now = self.id(key as usize);
                if found.is_some() || now == id {
                    return found;
                }
                id = now;
            }
        };
        let replace = |(): &mut (), key: u64| {
            assert!(self.renew(key as usize, key), "an id is removed once");
        };
        run(operations, rounds, &mut (), search, replace, |()| ());
    }

    fn flush(&self) {
        self.table.flush();
    }
}
