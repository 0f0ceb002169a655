//! A subscriber of `tracing` that reads under guards of the collector of whose grace periods it is
//! told.

#[path = "../../../quiescence/tests/common/subscriber.rs"]
mod subscriber;

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::thread;

use seize::{Collector, Guard, reclaim};
use tracing::Event;

static COLLECTOR: OnceLock<Collector> = OnceLock::new();
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// Does what a subscriber does that keeps its spans in a map of the collector.
fn reads(_: &Event<'_>) {
    EVENTS.fetch_add(1, Relaxed);
    drop(COLLECTOR.get().expect("made before").enter());
}

/// A fault: the step of a grace period was taken under the lock of the batches, for which the end
/// of the subscriber's guard waited.
#[test]
fn a_subscriber_may_end_guards_of_the_collector() {
    let collector = COLLECTOR.get_or_init(|| Collector::new().batch_size(2));
    tracing::subscriber::set_global_default(subscriber::Hears(reads))
        .expect("no other test here sets one");
    let place = AtomicPtr::new(Box::into_raw(Box::new(0_u64)));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for number in 0..2_000 {
                    let guard = collector.enter();
                    let new = Box::into_raw(Box::new(number));
                    let old = guard.swap(&place, new, AcqRel);
                    // SAFETY: from a box, and no thread can load it any more.
                    unsafe { guard.defer_retire(old, reclaim::boxed) };
                }
            });
        }
    });
    assert!(EVENTS.load(Relaxed) != 0);
    // SAFETY: from a box, and no thread is left.
    drop(unsafe { Box::from_raw(place.into_inner()) });
}
