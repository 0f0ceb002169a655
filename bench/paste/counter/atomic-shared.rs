use std::sync::atomic::{AtomicU64, Ordering};

static EVENTS: AtomicU64 = AtomicU64::new(0);

fn main() {
    // Relaxed: the count orders nothing else.
    EVENTS.fetch_add(1, Ordering::Relaxed);
    assert_eq!(EVENTS.load(Ordering::Relaxed), 1);
}
