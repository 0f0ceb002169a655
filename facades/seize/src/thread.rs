//! Thread numbers. They are dense: the smallest free number is reused first.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::collector::lock;

/// The numbers that were given back.
static FREE: Mutex<BinaryHeap<Reverse<usize>>> = Mutex::new(BinaryHeap::new());
/// The first number that was never used.
static UNUSED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The thread's number. Without a destructor: it is asked for to the very end.
    static ID: Cell<Option<usize>> = const { Cell::new(None) };
    static OWNER: Owner = const { Owner };
}

/// Gives the number back when the thread ends.
struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        lock(&FREE).extend(ID.take().map(Reverse));
    }
}

/// The number of the calling thread. After it was given back, later destructors of thread-locals
/// get another one, which is not used again.
#[inline]
pub(crate) fn id() -> usize {
    ID.get().unwrap_or_else(first)
}

#[cold]
fn first() -> usize {
    // Relaxed: each caller gets another one.
    let id = lock(&FREE).pop().map_or_else(|| UNUSED.fetch_add(1, Relaxed), |Reverse(id)| id);
    ID.set(Some(id));
    let _ = OWNER.try_with(|_| ()); // it may be gone
    id
}
