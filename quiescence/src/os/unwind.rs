//! Where panics of the user's code end.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`, which is foreign code; a panic ends here, reported by the panic hook, and makes the
/// answer `false`.
pub(crate) fn caught(f: impl FnOnce()) -> bool {
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
