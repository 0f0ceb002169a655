use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static IN_USE: AtomicU64 = AtomicU64::new(0);
const LIMIT: u64 = 100;

fn try_take() -> bool {
    let next = |count: u64| (count < LIMIT).then_some(count + 1);
    IN_USE.fetch_update(Relaxed, Relaxed, next).is_ok()
}

fn main() {
    assert!(try_take());
    IN_USE.fetch_sub(1, Relaxed);
}
