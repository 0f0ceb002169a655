//! A program whose domains begin with a small limit.

use std::sync::Arc;
use std::thread;

use seize::{Collector, Guard, reclaim};

/// papaya#60: while a guard lived, the memory of objects retired by other threads grew without
/// bound. Here a thread waits for 10 ms at the end of its guard, so the rate is bounded; and then
/// it goes on.
#[test]
fn beside_a_guard_that_lives_threads_are_slowed_and_go_on() {
    const OBJECTS: usize = 40;
    // SAFETY: this is the program's only test, and its first statement.
    unsafe { std::env::set_var("QUIESCENCE_LIMIT_BYTES", "65536") };
    let collector = Collector::new();
    let counted = Arc::new(());
    let guard = collector.enter();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..OBJECTS {
                let value = Box::into_raw(Box::new((Arc::clone(&counted), [0_u8; 4_096])));
                // SAFETY: from a box, and no thread knows of it.
                unsafe { collector.enter().defer_retire(value, reclaim::boxed) };
            }
        });
    });
    assert_eq!(Arc::strong_count(&counted), 1 + OBJECTS);
    drop(guard);
    assert!(Arc::strong_count(&counted) <= 1 + 16);
}
