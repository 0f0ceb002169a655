//! Where panics of the user's code end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::lock_rank;

/// Calls `f`, which is user code, under no lock. A panic ends here, reported by the panic hook, and
/// makes the result `false`.
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn caught(f: impl FnOnce()) -> bool {
    lock_rank::assert_none_held("user code is called");
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(()) => true,
        Err(payload) => {
            // Its own drop may panic again. The payload of that one is forgotten: some day it has
            // to end.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(payload);
            }
            false
        }
    }
}
