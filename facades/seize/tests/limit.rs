//! A program whose domains begin with a small limit.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use seize::{Collector, Guard, reclaim};

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// papaya#60: while a guard lived, the memory of objects retired by other threads grew without
/// bound. Here a thread waits for 10 ms at the end of its guard, so the rate is bounded; and then
/// it goes on.
#[test]
fn beside_a_guard_that_lives_threads_are_slowed_and_go_on() {
    const OBJECTS: usize = 40;
    // SAFETY: this is the program's only test, and its first statement.
    unsafe { std::env::set_var("QUIESCENCE_LIMIT_BYTES", "65536") };
    let collector = Collector::new();
    let drops = Arc::new(AtomicUsize::new(0));
    let guard = collector.enter();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..OBJECTS {
                let value = Box::into_raw(Box::new((Counted(Arc::clone(&drops)), [0_u8; 4_096])));
                // SAFETY: from a box, and no thread knows of it.
                unsafe { collector.enter().defer_retire(value, reclaim::boxed) };
            }
        });
    });
    assert_eq!(drops.load(SeqCst), 0);
    drop(guard);
    assert!(drops.load(SeqCst) >= OBJECTS - 16);
}
