//! Barriers that tasks wait for: the end of their threads, and children of the process.

use crate::common::*;

use quiescence::Cookie;

use crate::unwinding::keep_section;

/// The thread that made the barrier panicked, since a callback had begun a section on it; the task
/// was never told.
#[test]
fn a_barrier_whose_thread_panics_ends_with_the_panic() {
    in_its_own_process!();
    let domain = lasting_domain();
    let mut barrier = pin!(domain.barrier_async());
    let panic = beside_a_section(domain, |leave| {
        // It waits for the first grace period, and the next callback for the second.
        domain.call_hurry(|| keep_section(domain)).expect("the first");
        until(|| domain.statistics().batches != 0);
        let _busy = occupy_the_worker();
        // Under way, so that what is asked for now is another one.
        let _: Cookie = domain.start_poll();
        domain.call(|| ()).expect("there is room");
        assert!(barrier.as_mut().poll(&mut no_context()).is_pending());
        leave();
        panic_of(|| block_on(barrier.as_mut()))
    });
    assert!(panic.contains("barrier() at"), "{panic}");
    domain.barrier();
}

/// The child took the lock that the thread, which is gone there, might have held, and dropped the
/// parent's waker.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "forks")]
fn a_barrier_that_is_dropped_in_a_child_leaves_the_parents_waker_alone() {
    let domain = Domain::new();
    beside_a_section(&domain, |_| {
        domain.call(|| ()).expect("the first");
        let mut barrier = Box::pin(domain.barrier_async());
        let dropped: Arc<AtomicUsize> = Arc::default();
        let counts = Dropped(Arc::clone(&dropped));
        let waker = waker_of(move || _ = &counts);
        assert!(barrier.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker); // the barrier has the last one
        let mut barrier = Some(barrier);
        in_child(|| {
            drop(barrier.take());
            assert_eq!(dropped.load(SeqCst), 0);
        });
        drop(barrier.take());
        assert_eq!(dropped.load(SeqCst), 1);
    });
}
