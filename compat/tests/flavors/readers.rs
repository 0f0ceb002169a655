//! Readers with sections: they are waited for while they are registered, and not afterwards.

use crate::c::*;

/// Calls `f` while another thread, registered as a reader, is in a section; it ends when `f` has.
fn beside_section<R>(flavor: u32, f: impl FnOnce() -> R) -> R {
    let section = || {
        register(flavor);
        read_lock(flavor);
        read_lock(flavor);
        read_unlock(flavor);
        OnDrop(move || {
            read_unlock(flavor);
            unregister(flavor);
        })
    };
    while_held(section, |_| f())
}

#[test]
fn a_grace_period_waits_for_a_section_and_not_for_later_ones() {
    attach();
    for flavor in SECTIONS {
        let first = beside_section(flavor, || begun(flavor));
        quiescence_urcu_synchronize(flavor);
        assert!(quiescence_urcu_poll_state(flavor, first), "flavour {flavor}");
        // A section that began after the update is not waited for.
        let state = quiescence_urcu_start_poll(flavor);
        beside_section(flavor, || until(|| quiescence_urcu_poll_state(flavor, state)));
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
    in_section(MEMB, || quiescence_urcu_synchronize(MB));
    quiescence_urcu_synchronize(MEMB);
}

#[test]
fn readers_are_told_how_to_fence() {
    attach();
    let light = quiescence::tuning::fences() == quiescence::tuning::Fences::Membarrier;
    let said = HAS_SYS_MEMBARRIER.each_ref().map(|said| said.load(Relaxed));
    assert_eq!(said, [i32::from(light); 2]);
}

/// Nothing of a thread that has ended is waited for, though it never unregistered, nor even left
/// its section; one of QSBR's is online.
#[test]
fn a_thread_that_ends_is_no_reader_any_more() {
    attach();
    for flavor in ALL {
        elsewhere(|| {
            register(flavor);
            if flavor != QSBR {
                read_lock(flavor);
            }
        });
        quiescence_urcu_synchronize(flavor);
    }
}

/// `pthread_key_create`'s destructors run in rounds. One that comes after ours may read, and need
/// not even leave; it may unregister, and register again.
#[test]
fn destructors_that_run_later_may_read() {
    attach();
    for flavor in SECTIONS {
        for registers_again in [false, true] {
            ends_with(
                || register(flavor),
                move |_| {
                    reads(flavor);
                    if registers_again {
                        read_unlock(flavor);
                        unregister(flavor);
                        register(flavor);
                        reads(flavor);
                    }
                    false
                },
            );
            quiescence_urcu_synchronize(flavor);
        }
    }
}

/// A destructor may be the first to register its thread, whose rounds are not counted.
#[test]
fn destructors_may_register() {
    attach();
    for flavor in SECTIONS {
        for first in 1..ROUNDS {
            ends_with(
                || (),
                move |round| {
                    if round == first {
                        register(flavor);
                        assert_eq!(quiescence_urcu_defer_register_thread(flavor), 0);
                        reads(flavor);
                    }
                    round < first
                },
            );
            quiescence_urcu_synchronize(flavor);
        }
    }
}

/// In the last round the library's comes first.
#[test]
fn the_last_destructor_may_unregister() {
    attach();
    for flavor in ALL {
        ends_with(
            || {
                register(flavor);
                assert_eq!(quiescence_urcu_defer_register_thread(flavor), 0);
            },
            move |round| {
                if round == ROUNDS {
                    quiescence_urcu_defer_unregister_thread(flavor);
                    unregister(flavor);
                }
                round < ROUNDS
            },
        );
        quiescence_urcu_synchronize(flavor);
    }
}

fn reads(flavor: u32) {
    read_lock(flavor);
    begun(flavor);
}

/// glibc's rounds of destructors.
const ROUNDS: u32 = 4;

/// Begins a thread that ends with a destructor, which is called with the number of its round, and
/// again in the next one if it says so. Its key is made after ours, so it comes later in each.
fn ends_with(begin: impl FnOnce() + Send, end: impl Fn(u32) -> bool + Sync) {
    type End<'a> = (libc::pthread_key_t, AtomicU32, &'a (dyn Fn(u32) -> bool + Sync));

    unsafe extern "C" fn run(value: *mut std::ffi::c_void) {
        // SAFETY: the thread's value, which outlives it.
        let (key, round, end) = unsafe { &*value.cast::<End<'_>>() };
        if end(round.fetch_add(1, SeqCst) + 1) {
            // SAFETY: the key and its value.
            unsafe { libc::pthread_setspecific(*key, value) };
        }
    }

    let mut key = 0;
    // SAFETY: a place for a key, and a function that lives for ever.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(run)) }, 0);
    let end: End<'_> = (key, AtomicU32::new(0), &end);
    elsewhere(|| {
        begin();
        // SAFETY: a key of ours; the value stays until the thread was joined.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(&end).cast()) };
    });
    assert_ne!(end.1.load(SeqCst), 0, "the destructor has run");
    // SAFETY: no thread uses it any more.
    unsafe { libc::pthread_key_delete(key) };
}

/// What C++ has inlined looks at the record, and registers a thread that the program may register
/// later.
#[test]
fn a_reader_may_be_registered_by_its_first_section() {
    attach();
    elsewhere(|| {
        for flavor in [MEMB, MB, SIGNAL] {
            assert!(!is_marked(flavor));
            quiescence_urcu_reader(flavor);
            quiescence_urcu_reader(flavor);
            assert!(is_marked(flavor));
            reads(flavor);
            read_unlock(flavor);
            register(flavor);
            quiescence_urcu_reader(flavor);
            unregister(flavor);
            assert!(!is_marked(flavor));
        }
    });
}
