// cargo add thread_local
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use thread_local::ThreadLocal;

static EVENTS: ThreadLocal<AtomicU64> = ThreadLocal::new();

fn main() {
    // A word that only this thread writes.
    let own = EVENTS.get_or_default();
    own.store(own.load(Relaxed) + 1, Relaxed);
    assert_eq!(EVENTS.iter().map(|word| word.load(Relaxed)).sum::<u64>(), 1);
}
