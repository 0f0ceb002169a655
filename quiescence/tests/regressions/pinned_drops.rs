//! What runs in a pinned thread: nothing that was deferred, though the collector ends there.

use crate::common::*;
use quiescence::epoch::{self, Collector};

/// They ran in the drop.
#[test]
fn what_a_collector_has_deferred_does_not_run_in_a_pinned_thread_that_ends_it() {
    let (sender, ran) = mpsc::channel();
    let (collector, pinned) = (Collector::new(), epoch::pin());
    let handle = collector.register();
    for _ in 0..10 {
        let sender = sender.clone();
        let say = move || sender.send((thread::current().id(), epoch::is_pinned())).unwrap();
        handle.pin().defer(say);
    }
    drop((handle, collector, sender));
    for (id, was_pinned) in ran {
        assert!(id != thread::current().id() && !was_pinned);
    }
    drop(pinned); // all have run beside it
}
