//! Which updates help to move the entries of a map.
//!
//! A thread that moves entries hashes their keys, and `Hash` may update a map. If that update
//! helped, too, it would hash keys whose `Hash` may do the same, and so without end.

use std::cell::Cell;

use crate::os::on_drop::OnDrop;

thread_local! {
    /// Whether this thread is helping.
    static HELPS: Cell<bool> = const { Cell::new(false) };
}

/// Has the thread help, by `move_some`, unless it is helping already. (Loom's threads share one
/// thread-local.)
#[cold]
#[inline(never)]
pub(super) fn help(move_some: impl FnOnce()) {
    if cfg!(loom) || !HELPS.replace(true) {
        let _helped = OnDrop(|| HELPS.set(false));
        move_some();
    }
}
