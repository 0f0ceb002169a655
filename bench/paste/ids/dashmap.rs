// cargo add dashmap
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

fn main() {
    let (sessions, next) = (DashMap::new(), AtomicU64::new(0));
    let id = next.fetch_add(1, Ordering::Relaxed);
    sessions.insert(id, "alice");
    assert_eq!(*sessions.get(&id).unwrap(), "alice");
    sessions.remove(&id);
}
