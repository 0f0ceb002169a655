//! The library's queue, and its stack, which has no order but is a pool as well.

use quiescence::collections::{Queue, Stack};

use crate::advise::{Queueing, Value};

/// Both have the same methods, and wait in the same domain.
macro_rules! queueing {
    ($($kind:ident),*) => {$(
        impl Queueing for $kind<Value> {
            fn new() -> Self {
                Self::new()
            }

            #[inline]
            fn push(&self, value: Value) {
                self.push(value);
            }

            #[inline]
            fn pop(&self) -> Option<Value> {
                self.pop()
            }

            fn flush(&self) {
                quiescence::barrier();
            }
        }
    )*};
}

queueing!(Queue, Stack);
