//! Deferred calls: after a grace period, in order, and barriers that wait for all of them.

use crate::c::*;

/// How long a thread waits at the limit for the worker, at most.
const TICK: Duration = Duration::from_millis(10);

#[test]
fn calls_are_made_in_order_and_a_barrier_waits_for_them() {
    attach();
    for flavor in ALL {
        register(flavor);
        assert_eq!(quiescence_urcu_defer_register_thread(flavor), 0);
        let called = Arc::new(Mutex::new(Vec::new()));
        for number in 0..1_000 {
            let called = Arc::clone(&called);
            defer(flavor, move || called.lock().unwrap().push(number));
        }
        match flavor % 2 {
            0 => quiescence_urcu_defer_barrier_thread(flavor),
            _ => quiescence_urcu_defer_barrier(flavor),
        }
        assert!(called.lock().unwrap().iter().copied().eq(0..1_000), "flavour {flavor}");
        let last = Arc::clone(&called);
        defer(flavor, move || last.lock().unwrap().push(1_000));
        quiescence_urcu_defer_unregister_thread(flavor);
        assert_eq!(called.lock().unwrap().last(), Some(&1_000), "to unregister is to wait");
        unregister(flavor);
    }
}

/// Whose calls they are matters to the one barrier, and not to the other. A thread that never
/// registered is no different.
#[test]
fn a_barrier_of_all_waits_for_those_of_all_threads() {
    attach();
    for flavor in ALL {
        let count = Arc::new(AtomicUsize::new(0));
        threads(3, |thread| {
            if thread != 0 {
                quiescence_urcu_defer_register_thread(flavor);
            }
            (0..100).for_each(|_| defer(flavor, counting(&count)));
        });
        quiescence_urcu_defer_barrier_thread(flavor); // of nothing
        quiescence_urcu_defer_barrier(flavor);
        assert_eq!(count.load(SeqCst), 300, "flavour {flavor}: also of threads that have ended");
    }
}

/// They may read, defer anew, and wait for a grace period.
#[test]
fn functions_are_called_by_a_registered_reader() {
    attach();
    for flavor in ALL {
        let all_right = Arc::new(AtomicUsize::new(0));
        let in_call = Arc::clone(&all_right);
        defer(flavor, move || {
            let state = if flavor == QSBR {
                assert_ne!(word(QSBR).load(SeqCst), 0, "online");
                begun(flavor)
            } else {
                read_lock(flavor);
                let state = begun(flavor);
                read_unlock(flavor);
                state
            };
            quiescence_urcu_synchronize(flavor);
            assert!(quiescence_urcu_poll_state(flavor, state));
            defer(flavor, counting(&in_call));
            in_call.fetch_add(1, SeqCst);
        });
        quiescence_urcu_defer_barrier_thread(flavor);
        assert_eq!(all_right.load(SeqCst) & 1, 1, "flavour {flavor}: {all_right:?}");
        quiescence_urcu_defer_barrier(flavor);
        assert_eq!(all_right.load(SeqCst), 2, "what it defers is waited for by the next one");
        // The thread that ran them is no reader any more, online or not.
        quiescence_urcu_synchronize(flavor);
    }
}

/// A full ring of liburcu's: an online thread that waits for the reclaimer, which waits for it.
#[test]
fn online_threads_at_the_limit_do_not_wait_for_each_other() {
    attached_in_its_own_process!(&[("QUIESCENCE_LIMIT_OBJECTS", "64")]);
    let count = Arc::new(AtomicUsize::new(0));
    let (deferred, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Barrier::new(3);
    let began = Instant::now();
    threads(3, |_| {
        register(QSBR);
        quiescence_urcu_defer_register_thread(QSBR);
        start.wait();
        for _ in 0..500 {
            let wait = deferred.fetch_add(1, SeqCst) + 1 - count.load(SeqCst).min(1_500);
            // Three that are about to be deferred count here, and one that is being called.
            most.fetch_max(wait, SeqCst);
            defer(QSBR, counting(&count));
            assert_ne!(word(QSBR).load(SeqCst), 0, "online again");
        }
        quiescence_urcu_defer_barrier(QSBR);
        quiescence_urcu_defer_unregister_thread(QSBR);
        unregister(QSBR);
    });
    assert_eq!(count.load(SeqCst), 1_500);
    // One goes over the limit only after its thread has waited for a tick.
    let over = most.load(SeqCst).saturating_sub(64 + 3 + 1);
    assert!(began.elapsed() * 3 >= TICK * over as u32, "memory is bounded: {most:?}");
}

/// Where stock would wait for itself, nothing is waited for; and outside memory is bounded.
#[test]
fn the_limit_is_waited_for_where_that_may_be() {
    attached_in_its_own_process!(&[("QUIESCENCE_LIMIT_OBJECTS", "32")]);
    for flavor in SECTIONS {
        let waiting = Arc::new(AtomicU64::new(0));
        let most = Arc::new(AtomicU64::new(0));
        let add = || {
            most.fetch_max(waiting.fetch_add(1, SeqCst) + 1, SeqCst);
            let waiting = Arc::clone(&waiting);
            defer(flavor, move || _ = waiting.fetch_sub(1, SeqCst));
        };
        let began = Instant::now();
        (0..500).for_each(|_| add());
        // One goes over the limit only after its thread has waited for a tick, as it may have to
        // where the worker has no CPU.
        let over = most.load(SeqCst).saturating_sub(33);
        assert!(began.elapsed() >= TICK * over as u32, "flavour {flavor}: {most:?}");
        in_section(flavor, || (0..100).for_each(|_| add()));
        assert!(most.load(SeqCst) > 33, "in its own section it waits for nothing");
        quiescence_urcu_defer_barrier_thread(flavor);
        assert_eq!(waiting.load(SeqCst), 0);
    }
}

/// What waited when the process was copied is called in both.
#[test]
fn the_child_calls_what_waits_too() {
    attach();
    static CALLED: AtomicU32 = AtomicU32::new(0);
    elsewhere(|| {
        // On the stack of the thread that forks: the child's new threads may get those of others.
        let before = CALLED.load(SeqCst);
        register(MEMB);
        read_lock(MEMB);
        for _ in 0..10 {
            defer(MEMB, || _ = CALLED.fetch_add(1, SeqCst));
        }
        in_child(|| {
            assert_eq!(CALLED.load(SeqCst), before);
            read_unlock(MEMB);
            defer(MEMB, || _ = CALLED.fetch_add(1, SeqCst));
            quiescence_urcu_defer_barrier_thread(MEMB);
            assert_eq!(CALLED.load(SeqCst) - before, 11);
            defer(MEMB, || _ = CALLED.fetch_add(1, SeqCst));
            quiescence_urcu_defer_barrier(MEMB);
            assert_eq!(CALLED.load(SeqCst) - before, 12);
        });
        read_unlock(MEMB);
        quiescence_urcu_defer_barrier(MEMB);
        assert_eq!(CALLED.load(SeqCst) - before, 10);
        unregister(MEMB);
    });
}

/// At the end of a process liburcu calls nothing, and by then what the functions need may be gone.
#[test]
fn nothing_is_called_at_the_end_of_the_process() {
    if role().is_none() {
        let output = again(this_test!(), "ends", &[("QUIESCENCE_LAZY_MS", "3600000")]);
        return assert!(output.status.success(), "{output:?}");
    }
    attach();
    in_section(MEMB, || defer(MEMB, || std::process::abort()));
    // Before the worker's patience ends.
    std::process::exit(0);
}
