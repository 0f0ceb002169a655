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
        elsewhere(|| {
            // Made and set after ours, so its destructor runs after ours in each round.
            register(flavor as u32);
            // SAFETY: a key; the value is the flavour, plus 1 as it may not be null.
            unsafe { libc::pthread_setspecific(key, (flavor + 1) as *const _) };
        });
        quiescence_urcu_synchronize(flavor as u32);
        // SAFETY: no thread uses it any more.
        unsafe { libc::pthread_key_delete(key) };
    }
    assert_eq!(LATE_READS.load(SeqCst), SECTIONS.len() as u32);
}

static LATE_READS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn reads(value: *mut std::ffi::c_void) {
    let flavor = value.addr() as u32 - 1;
    register(flavor);
    read_lock(flavor);
    let state = quiescence_urcu_start_poll(flavor);
    assert_not_over(flavor, state);
    // It does not even leave.
    LATE_READS.fetch_add(1, SeqCst);
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
            read_lock(flavor);
            let state = quiescence_urcu_start_poll(flavor);
            assert_not_over(flavor, state);
            read_unlock(flavor);
            register(flavor);
            quiescence_urcu_reader(flavor);
            unregister(flavor);
            assert!(!is_marked(flavor));
        }
    });
}
