//! Thread numbers. They are dense: the smallest free number is reused first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

/// The free numbers, and the first one that was never used.
static FREE: Mutex<(BinaryHeap<Reverse<usize>>, usize)> = Mutex::new((BinaryHeap::new(), 0));

thread_local! {
    static ID: Id = Id::take();
}

struct Id(usize);

impl Id {
    fn take() -> Self {
        let (free, unused) = &mut *FREE.lock().unwrap_or_else(PoisonError::into_inner);
        Self(free.pop().map_or_else(
            || {
                *unused += 1;
                *unused - 1
            },
            |Reverse(id)| id,
        ))
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(Reverse(self.0));
    }
}

/// The number of the calling thread. Once its thread-local storage is gone it is 0, which another
/// thread may have too.
pub(crate) fn id() -> usize {
    ID.try_with(|id| id.0).unwrap_or(0)
}
