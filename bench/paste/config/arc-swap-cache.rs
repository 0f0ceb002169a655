// cargo add arc-swap
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

fn main() {
    let config = ArcSwap::from_pointee("old");
    // One for each thread that reads.
    let mut cache = Cache::new(&config);
    assert_eq!(**cache.load(), "old");
    config.store(Arc::new("new"));
    assert_eq!(**cache.load(), "new");
}
