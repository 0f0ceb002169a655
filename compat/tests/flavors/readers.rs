//! Readers with sections: they are waited for while they are registered, and not afterwards.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc;
use std::thread;

use crate::c::*;

/// Calls `f` while another thread, registered as a reader, is in a section; it ends when `f` has.
fn beside_section<R>(flavor: u32, f: impl FnOnce() -> R) -> R {
    let (inside, is_inside) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let reader = thread::spawn(move || {
        register(flavor);
        read_lock(flavor);
        read_lock(flavor);
        read_unlock(flavor);
        inside.send(()).unwrap();
        may_end.recv().unwrap();
        read_unlock(flavor);
        unregister(flavor);
    });
    is_inside.recv().unwrap();
    let result = f();
    end.send(()).unwrap();
    reader.join().unwrap();
    result
}

#[test]
fn a_grace_period_waits_for_a_section_and_not_for_later_ones() {
    attach();
    for flavor in SECTIONS {
        let first = beside_section(flavor, || {
            let state = quiescence_urcu_start_poll(flavor);
            assert_not_over(flavor, state);
            state
        });
        quiescence_urcu_synchronize(flavor);
        assert!(quiescence_urcu_poll_state(flavor, first), "flavour {flavor}");
        // A section that began after the update is not waited for.
        let state = quiescence_urcu_start_poll(flavor);
        beside_section(flavor, || until(|| quiescence_urcu_poll_state(flavor, state)));
    }
}

/// A sleeper is woken: the reader leaves only when the updater says that it sleeps.
#[test]
fn an_updater_that_sleeps_is_woken() {
    attach();
    for flavor in [MEMB, MB, SIGNAL] {
        let (inside, is_inside) = mpsc::channel();
        let reader = thread::spawn(move || {
            register(flavor);
            read_lock(flavor);
            inside.send(()).unwrap();
            until(|| GP[flavor as usize].futex.load(SeqCst) == u32::MAX);
            read_unlock(flavor);
            unregister(flavor);
        });
        is_inside.recv().unwrap();
        quiescence_urcu_synchronize(flavor);
        reader.join().unwrap();
    }
}

#[test]
fn flavours_do_not_wait_for_each_other() {
    attach();
    for (reads, updates) in [(MEMB, SIGNAL), (MEMB, MB), (MB, MEMB), (SIGNAL, BP), (BP, QSBR)] {
        beside_section(reads, || quiescence_urcu_synchronize(updates));
    }
}

#[test]
fn a_thread_in_a_section_of_one_flavour_waits_for_another() {
    attach();
    register(MEMB);
    read_lock(MEMB);
    quiescence_urcu_synchronize(MB);
    read_unlock(MEMB);
    quiescence_urcu_synchronize(MEMB);
    unregister(MEMB);
}

#[test]
fn readers_are_told_how_to_fence() {
    attach();
    let light = quiescence::tuning::fences() == quiescence::tuning::Fences::Membarrier;
    let said = HAS_SYS_MEMBARRIER.each_ref().map(|said| said.load(Relaxed));
    assert_eq!(said, [i32::from(light); 2]);
}

#[test]
fn a_thread_may_register_again_and_again() {
    attach();
    for flavor in SECTIONS {
        for _ in 0..3 {
            beside_section(flavor, || ());
            reader_passes(flavor, 3);
        }
        quiescence_urcu_synchronize(flavor);
    }
}

/// Nothing of a thread that has ended is waited for, though it never unregistered, nor even left
/// its section.
#[test]
fn a_thread_that_ends_is_no_reader_any_more() {
    attach();
    for flavor in SECTIONS {
        thread::spawn(move || {
            register(flavor);
            read_lock(flavor);
        })
        .join()
        .unwrap();
        quiescence_urcu_synchronize(flavor);
    }
}

/// `pthread_key_create`'s destructors run in rounds: one that comes after ours may read, and
/// register for it.
#[test]
fn destructors_that_run_later_may_read() {
    attach();
    for flavor in SECTIONS {
        let flavor = flavor as usize;
        let mut key = 0;
        // SAFETY: a place for a key, and a function that lives for ever.
        assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(reads)) }, 0);
        thread::spawn(move || {
            // Made and set after ours, so its destructor runs after ours in each round.
            register(flavor as u32);
            // SAFETY: a key; the value is the flavour, plus 1 as it may not be null.
            unsafe { libc::pthread_setspecific(key, (flavor + 1) as *const _) };
        })
        .join()
        .unwrap();
        quiescence_urcu_synchronize(flavor as u32);
        // SAFETY: no thread uses it any more.
        unsafe { libc::pthread_key_delete(key) };
    }
    assert_eq!(LATE_READS.load(SeqCst), SECTIONS.len() as u32);
}

static LATE_READS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

unsafe extern "C" fn reads(value: *mut std::ffi::c_void) {
    let flavor = value.addr() as u32 - 1;
    register(flavor);
    read_lock(flavor);
    let state = quiescence_urcu_start_poll(flavor);
    assert_not_over(flavor, state);
    // It does not even leave.
    LATE_READS.fetch_add(1, SeqCst);
}

#[test]
fn threads_register_while_a_grace_period_waits() {
    attach();
    for flavor in SECTIONS {
        let updater = beside_section(flavor, || {
            let (polled, is_polled) = mpsc::channel();
            let updater = thread::spawn(move || {
                let state = quiescence_urcu_start_poll(flavor);
                assert_not_over(flavor, state); // it is in progress
                polled.send(()).unwrap();
                quiescence_urcu_synchronize(flavor);
            });
            is_polled.recv().unwrap();
            for _ in 0..10 {
                reader_passes(flavor, 1);
            }
            updater
        });
        updater.join().unwrap();
    }
}

/// What C++ has inlined looks at the record, and registers a thread that the program may register
/// later.
#[test]
fn a_reader_may_be_registered_by_its_first_section() {
    attach();
    thread::spawn(|| {
        for flavor in [MEMB, MB, SIGNAL] {
            assert!(!is_marked(flavor));
            quiescence_urcu_reader(flavor);
            quiescence_urcu_reader(flavor);
            assert!(is_marked(flavor));
            read_lock(flavor);
            let state = quiescence_urcu_start_poll(flavor);
            assert_not_over(flavor, state);
            read_unlock(flavor);
            register(flavor);
            quiescence_urcu_reader(flavor);
            unregister(flavor);
            assert!(!is_marked(flavor));
        }
    })
    .join()
    .unwrap();
}
