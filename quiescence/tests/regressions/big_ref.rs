//! Faults of `sync::BigRef`.

use crate::common::*;

use quiescence::sync::BigRef;

/// The thread that gave the last handle back was still in functions whose argument was a reference
/// into the memory that the other one freed. Only Miri sees that, and only if threads are seldom
/// preempted: see `.ci/miri`.
#[test]
fn memory_was_freed_that_a_function_had_a_reference_to() {
    for _ in 0..rounds(1_000, 12) {
        let released = Arc::new(AtomicUsize::new(0));
        let big = BigRef::new(Dropped(Arc::clone(&released)));
        (0..40).for_each(|_| drop(big.get())); // so that each CPU has words
        let (handle, begun) = (big.get(), AtomicBool::new(false));
        thread::scope(|scope| {
            let begun = &begun;
            scope.spawn(move || {
                begun.store(true, Relaxed);
                drop(handle);
            });
            until(|| begun.load(Relaxed));
            drop(big);
        });
        assert_eq!(released.load(Relaxed), 1);
    }
}
