//! How a table ends: with its worker held off, wherever he is, and without a wait for readers.
//!
//! It touches the board, and the table's list while no other thread changes it. The thread that
//! ends a table may be in a section or not, so that nothing here relies on one: what keeps the
//! buckets is that the worker does not free them meanwhile.

use super::allocator;
use super::list;
use super::protection::Protection;
use super::resize::Table;
use super::worker;

/// Frees a table, or has the thread that works on it do so, which looks at its nodes no more.
/// Without a wait for readers.
///
/// # Safety
/// It came from [`Table::new`], and no thread uses it any more.
pub(super) unsafe fn give_up<R: Protection>(table: *mut Table<R>) {
    worker::hold_off(table);
    // SAFETY: as this function; it is held.
    unsafe { give_up_held(table) };
}

/// Frees a table if it is empty, as [`give_up`] does. Returns whether it was.
///
/// # Safety
/// It came from [`Table::new`], and no other thread uses it, but for the thread that works on it.
pub(super) unsafe fn give_up_if_empty<R: Protection>(table: *mut Table<R>) -> bool {
    worker::hold_off(table);
    //~ point table-held
    // SAFETY: valid as long as it is not given up.
    let this = unsafe { &*table };
    // SAFETY: by the contract; it is held.
    let is_empty = unsafe { is_empty_held(this) };
    if is_empty {
        // SAFETY: as this function; it is held.
        unsafe { give_up_held(table) };
    } else {
        worker::release(table);
    }
    is_empty
}

/// As [`give_up`].
///
/// # Safety
/// As there, and the table is held.
unsafe fn give_up_held<R: Protection>(table: *mut Table<R>) {
    let is_free = worker::lock().give_up(table);
    if is_free {
        // SAFETY: from `Table::new`, and on no board.
        unsafe { allocator::end(table) };
    }
}

/// Whether there is no node, in no section.
///
/// # Safety
/// The caller holds the table, and no other thread uses it but for the thread that works on it.
unsafe fn is_empty_held<R: Protection>(table: &Table<R>) -> bool {
    // SAFETY: buckets are freed by the thread that works on the table only, which is held off.
    let link = unsafe { table.first_link() };
    // SAFETY: as above; nodes go by the caller only.
    unsafe { list::next(link) }.is_none()
}
