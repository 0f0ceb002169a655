//! `retire`, `call` and `barrier`: work that is done when no reader is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

struct Connection {
    closed: Arc<AtomicU32>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() {
    let closed = Arc::new(AtomicU32::new(0));

    // Dropped after a grace period. Does not wait, and allocates nothing.
    for _ in 0..3 {
        quiescence::retire(Box::new(Connection { closed: Arc::clone(&closed) })).unwrap();
    }
    // Any code, after a grace period.
    let seen = Arc::clone(&closed);
    quiescence::call(move || println!("{} are closed", seen.load(Ordering::Relaxed))).unwrap();

    // Waits until all of that has been done.
    quiescence::barrier();
    assert_eq!(closed.load(Ordering::Relaxed), 3);
}
