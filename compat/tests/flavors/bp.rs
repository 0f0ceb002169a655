//! Readers that register by themselves.

use crate::c::*;

/// Threads that come and go do not use up memory.
#[test]
fn records_are_used_again() {
    attached_in_its_own_process!();
    let records: std::collections::BTreeSet<usize> = (0..100)
        .map(|_| {
            elsewhere(|| {
                read_lock(BP);
                read_unlock(BP);
                // As often as one likes, and without any effect.
                let record = bp_pointer();
                register(BP);
                quiescence_urcu_bp_register();
                assert_eq!(bp_pointer(), record);
                unregister(BP);
                assert_eq!(bp_pointer(), record);
                record.addr()
            })
        })
        .collect();
    assert_eq!(records.len(), 1, "one after the other they have the same");
    // More at once than were made at first.
    let readers = BpReaders::begin(70);
    let records = &readers.records;
    assert_eq!(records.len(), 70, "each its own");
    assert!(records.iter().all(|record| record % 128 == 0));
    let state = quiescence_urcu_start_poll(BP);
    readers.end(|| assert_not_over(BP, state));
    until(|| quiescence_urcu_poll_state(BP, state));
}

/// A handler that reads for the first time would register its thread, in the midst of what the
/// thread is doing under the library's locks: so a thread that calls the library, for whatever
/// flavour, is registered before.
#[test]
fn who_calls_the_library_is_registered_ahead_of_signal_handlers() {
    attach();
    let calls: [fn(); 4] = [
        || quiescence_urcu_synchronize(MEMB),
        || register(MB),
        || _ = quiescence_urcu_start_poll(BP),
        || defer(QSBR, || ()),
    ];
    for call in calls {
        elsewhere(|| {
            assert!(bp_pointer().is_null());
            call();
            assert!(!bp_pointer().is_null());
        });
    }
}

thread_local! {
    static READ: Cell<u32> = const { Cell::new(0) };
}

extern "C" fn handler(_signal: i32) {
    read_lock(BP);
    READ.set(READ.get() + 1);
    read_unlock(BP);
}

/// Signals come at any moment of registering and waiting, on threads that have never read.
#[test]
fn handlers_read_whatever_they_interrupt() {
    attach();
    storm::handle(libc::SIGUSR2, handler);
    for _ in 0..200 {
        let (started, is_started) = mpsc::channel();
        let thread = thread::spawn(move || {
            // SAFETY: asks for its own number.
            started.send(unsafe { libc::pthread_self() }).unwrap();
            quiescence_urcu_synchronize(MEMB);
            quiescence_urcu_synchronize(BP);
            until(|| READ.get() != 0);
        });
        let id = is_started.recv().unwrap();
        // SAFETY: the thread has not been joined.
        assert_eq!(unsafe { libc::pthread_kill(id, libc::SIGUSR2) }, 0);
        thread.join().unwrap();
    }
}

/// Whenever the pointer is written, no handler can find it half done.
#[test]
fn signals_are_blocked_while_a_thread_registers_and_unregisters() {
    attached_in_its_own_process!();
    elsewhere(|| {
        assert!(!is_blocked(libc::SIGUSR1));
        quiescence_urcu_bp_register();
        assert!(!is_blocked(libc::SIGUSR1));
    });
    assert_eq!(BP_ASKED_UNBLOCKED.load(Relaxed), 0);
}

/// A handler may have interrupted `malloc`: what registers its thread must not allocate. Nor when a
/// hundred threads have done so, as long as somebody calls the library now and then.
#[test]
fn the_first_section_allocates_nothing() {
    attached_in_its_own_process!();
    let first_section = || {
        allocations(|| {
            read_lock(BP);
            read_unlock(BP);
        })
    };
    let (told, is_told) = mpsc::channel();
    let readers: Vec<_> = (0..200)
        .map(|number| {
            let (end, may_end) = mpsc::channel::<()>();
            let told = told.clone();
            let reader = thread::spawn(move || {
                told.send(first_section()).unwrap();
                may_end.recv().unwrap();
            });
            assert_eq!(is_told.recv().unwrap(), 0, "reader {number}");
            if number % 30 == 0 {
                let _ = quiescence_urcu_start_poll(MEMB);
            }
            (end, reader)
        })
        .collect();
    for (end, reader) in readers {
        end.send(()).unwrap();
        reader.join().unwrap();
    }
    quiescence_urcu_synchronize(BP);
}

/// What has no result leaves `errno` alone; and a thread that is cancelled while it may be driving
/// a grace period for others comes to its end after that.
#[test]
fn callers_are_not_disturbed() {
    attach();
    elsewhere(|| {
        keeps_errno(&|| quiescence_urcu_bp_register());
        for flavor in [MEMB, MB, QSBR, SIGNAL] {
            keeps_errno(&|| register(flavor));
            keeps_errno(&|| unregister(flavor));
            register(flavor);
            let synchronize = || quiescence_urcu_synchronize(flavor);
            assert_eq!(keeps_errno(&synchronize), 0, "flavour {flavor} can be cancelled");
            let poll =
                || _ = quiescence_urcu_poll_state(flavor, quiescence_urcu_start_poll(flavor));
            assert_eq!(keeps_errno(&poll), 0, "flavour {flavor} can be cancelled");
            // Some of these run what was deferred before, and a grace period for that.
            let (asked, cancellable) = looks(|| (0..10_000).for_each(|_| defer(flavor, look)));
            assert!(asked != 0, "flavour {flavor} calls on another thread");
            assert_eq!((errno().load(Relaxed), cancellable), (7, 0), "flavour {flavor}");
            defer(flavor, look);
            let (_, cancellable) = looks(|| quiescence_urcu_defer_barrier_thread(flavor));
            assert_eq!((errno().load(Relaxed), cancellable), (7, 0), "flavour {flavor}");
            unregister(flavor);
        }
    });
}
