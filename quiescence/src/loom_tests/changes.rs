//! Versions of a cell beside its updates.

use super::*;
use crate::domain::rcu::changes::{Version, tell};

/// Where the cell is, as the table of versions knows it.
const PLACE: usize = 64;

/// One more update of the cell, whose values are numbers.
fn update(cell: &AtomicUsize) {
    cell.fetch_add(1, AcqRel);
    tell(PLACE);
}

/// Waits until the cell has a value, as a program does: a version first, then the value.
fn wait_for(cell: &AtomicUsize, value: usize) {
    let mut version = Version::of(PLACE);
    while cell.load(Acquire) != value {
        version.wait(PLACE);
    }
}

/// Else the model ends with all threads asleep.
#[test]
fn who_makes_a_version_sees_an_update_or_is_woken() {
    bounded(4, || {
        let cell = &Arc::new(AtomicUsize::new(0));
        beside(cell, update, |cell| wait_for(cell, 1));
    });
}

/// An update that comes while a wait ends by another one ends the next wait, or is seen.
#[test]
fn the_last_of_several_updates_is_not_missed() {
    bounded(3, || {
        let cell = &Arc::new(AtomicUsize::new(0));
        beside_two(cell, update, update, |cell| wait_for(cell, 2));
    });
}

/// The slot has an entry before the second version is made, and after it is dropped.
#[test]
fn a_version_counts_beside_another_that_ends() {
    bounded(3, || {
        let cell = &Arc::new(AtomicUsize::new(0));
        let other = Version::of(PLACE);
        beside_two(cell, |cell| wait_for(cell, 1), update, |_| drop(other));
    });
}
