//! The indexes that a thread has given back last: where its next insertion looks first.
//!
//! In a table that is almost full an insertion otherwise looks through the words of a full chunk,
//! and then for one that has a free index. These are hints, and no claims: such an index is free
//! until somebody claims it, and any thread may.

use std::cell::Cell;

/// That many. In a model none: its threads share what is a thread's own.
const MOST: usize = if cfg!(loom) { 0 } else { 15 };

thread_local! {
    static GIVEN_BACK: GivenBack = const {
        let indexes = [const { Cell::new(0) }; MOST];
        GivenBack { table: Cell::new(0), count: Cell::new(0), indexes }
    };
}

struct GivenBack {
    /// The address of the table; another one may be there by now.
    table: Cell<usize>,
    count: Cell<usize>,
    indexes: [Cell<u32>; MOST],
}

/// Notes an index of the table at this address, unless there are so many already.
pub(super) fn push(table: usize, index: u32) {
    GIVEN_BACK.with(|given_back| {
        if given_back.table.replace(table) != table {
            given_back.count.set(0);
        }
        let count = given_back.count.get();
        if let Some(place) = given_back.indexes.get(count) {
            place.set(index);
            given_back.count.set(count + 1);
        }
    });
}

/// The last of those that are noted of the table at this address, which is one no more.
pub(super) fn pop(table: usize) -> Option<u32> {
    GIVEN_BACK.with(|given_back| {
        let is_noted = given_back.table.get() == table;
        let last = given_back.count.get().checked_sub(1).filter(|_| is_noted)?;
        given_back.count.set(last);
        Some(given_back.indexes[last].get())
    })
}
