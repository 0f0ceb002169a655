//! Some of the indexes that a thread has given back. Its next insertion tries these first.
//!
//! Otherwise an insertion into an almost full table would scan a full chunk, then search for
//! another one. These are hints, not claims: any thread may claim such an index. A thread has hints
//! for one table at a time: the one to which it last gave an index back.

use std::cell::Cell;

/// How many a thread remembers: none under loom, whose threads share one thread-local.
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

/// Notes an index of the table at this address, unless [`MOST`] are noted already.
#[inline]
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

/// Takes the index that was noted last for the table at this address.
#[inline]
pub(super) fn pop(table: usize) -> Option<u32> {
    GIVEN_BACK.with(|given_back| {
        let is_of_it = given_back.table.get() == table;
        let last = given_back.count.get().checked_sub(1).filter(|_| is_of_it)?;
        given_back.count.set(last);
        Some(given_back.indexes[last].get())
    })
}
