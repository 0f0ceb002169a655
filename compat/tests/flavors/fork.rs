//! `fork`: the child has the forking thread only, and can go on with every flavour.

use std::collections::BTreeSet;

use crate::c::*;

/// Calls `f` while another thread is in a section of every flavour, and another one sleeps until
/// they end.
fn beside_readers(f: impl FnOnce()) {
    let sections = || {
        ALL.into_iter().for_each(register);
        SECTIONS.into_iter().for_each(read_lock);
        OnDrop(|| {
            SECTIONS.into_iter().for_each(read_unlock);
            ALL.into_iter().for_each(unregister);
        })
    };
    while_held(sections, |leave| {
        thread::scope(|scope| {
            for flavor in ALL {
                scope.spawn(move || quiescence_urcu_synchronize(flavor));
                // Somebody sleeps for the section, if not that one. (bp's scan again after naps.)
                let futex = &GP[flavor as usize].futex;
                until(|| flavor == BP || futex.load(SeqCst) == u32::MAX);
            }
            f();
            leave();
        });
    });
}

/// The one that forks stays what it was.
#[test]
fn a_section_goes_on_in_the_child() {
    attach();
    elsewhere(|| {
        ALL.into_iter().for_each(register);
        SECTIONS.into_iter().for_each(read_lock);
        in_child(|| {
            for flavor in ALL {
                let state = begun(flavor);
                match flavor {
                    QSBR => offline(),
                    _ => read_unlock(flavor),
                }
                quiescence_urcu_synchronize(flavor);
                assert!(quiescence_urcu_poll_state(flavor, state), "flavour {flavor}");
                unregister(flavor);
            }
        });
        SECTIONS.into_iter().for_each(read_unlock);
        ALL.into_iter().for_each(unregister);
    });
}

/// A record of a thread that the child does not have is free there, and each is one reader's. No
/// flavour waits for those threads.
#[test]
fn the_child_has_all_records_of_bp() {
    attach();
    read_lock(BP); // the forking thread keeps its own
    read_unlock(BP);
    beside_readers(|| {
        in_child(|| {
            read_lock(BP);
            let own = bp_pointer().addr();
            let readers = BpReaders::begin(70);
            let all: BTreeSet<usize> = readers.records.iter().copied().chain([own]).collect();
            let state = quiescence_urcu_start_poll(BP);
            read_unlock(BP);
            readers.end(|| assert_not_over(BP, state));
            ALL.into_iter().for_each(|flavor| quiescence_urcu_synchronize(flavor));
            assert_eq!(all.len(), 71);
        });
    });
}

#[test]
fn the_hooks_of_bp_keep_signals_away_and_deadlock_nowhere() {
    attach();
    elsewhere(|| {
        assert!(!is_blocked(libc::SIGUSR1));
        quiescence_urcu_before_fork(BP);
        assert!(is_blocked(libc::SIGUSR1));
        quiescence_urcu_before_fork(BP); // a library's, and its program's
        assert!(is_blocked(libc::SIGUSR1));
        quiescence_urcu_synchronize(BP);
        in_child(|| {
            assert!(is_blocked(libc::SIGUSR1));
            quiescence_urcu_after_fork_child(BP);
            assert!(is_blocked(libc::SIGUSR1));
            quiescence_urcu_after_fork_child(BP);
            quiescence_urcu_synchronize(BP);
            assert!(!is_blocked(libc::SIGUSR1));
        });
        quiescence_urcu_after_fork_parent(BP);
        assert!(is_blocked(libc::SIGUSR1));
        quiescence_urcu_after_fork_parent(BP);
        assert!(!is_blocked(libc::SIGUSR1));
    });
}

/// Threads register and defer all the time while others fork: no lock is left locked in a child.
#[test]
fn the_child_finds_no_lock_held() {
    attach();
    const FLAVORS: [u32; 3] = [MEMB, QSBR, BP];
    let come_and_go = |number: usize| {
        let flavor = FLAVORS[number];
        move || {
            elsewhere(|| {
                register(flavor);
                quiescence_urcu_defer_register_thread(flavor);
                defer(flavor, || ());
                unregister(flavor);
            });
        }
    };
    beside(FLAVORS.len(), come_and_go, || {
        for _ in 0..20 {
            in_child(|| {
                for flavor in FLAVORS {
                    register(flavor);
                    defer(flavor, || ());
                    quiescence_urcu_defer_barrier(flavor);
                    unregister(flavor);
                }
            });
        }
    });
}

static COPIED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

extern "C" fn looks<const PLACE: usize>() {
    COPIED[PLACE].store(is_blocked(libc::SIGUSR1), SeqCst);
}

/// A handler that reads for the first time would register its thread, for which it would wait for a
/// lock that the fork holds. Ours are called before and after those handlers that were installed
/// earlier, as quiescence's own are. Afterwards the mask is what it was.
#[test]
fn no_handler_runs_while_the_memory_is_copied() {
    in_its_own_process!();
    // Before, afterwards in the parent, and in the child.
    let handlers: [unsafe extern "C" fn(); 3] = [looks::<0>, looks::<1>, looks::<2>];
    let [before, parent, child] = handlers.map(Some);
    // SAFETY: three functions that live for ever.
    assert_eq!(unsafe { libc::pthread_atfork(before, parent, child) }, 0);
    attach();
    quiescence_urcu_synchronize(MEMB);
    in_child(|| {
        assert!(COPIED[0].load(SeqCst) && COPIED[2].load(SeqCst));
        assert!(!is_blocked(libc::SIGUSR1));
    });
    assert!(COPIED[0].load(SeqCst) && COPIED[1].load(SeqCst));
    assert!(!is_blocked(libc::SIGUSR1));
}
