//! `fork`: the child has the forking thread only, and can go on with every flavour.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::c::*;

/// Calls `f` while another thread is in a section of every flavour, and another one sleeps until
/// they end.
fn beside_readers(f: impl FnOnce()) {
    let (inside, is_inside) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let reader = thread::spawn(move || {
        SECTIONS.into_iter().for_each(register);
        SECTIONS.into_iter().for_each(read_lock);
        register(QSBR);
        inside.send(()).unwrap();
        may_end.recv().unwrap();
        SECTIONS.into_iter().for_each(read_unlock);
        SECTIONS.into_iter().for_each(unregister);
        unregister(QSBR);
    });
    is_inside.recv().unwrap();
    let updaters = ALL.map(|flavor| {
        let updater = thread::spawn(move || quiescence_urcu_synchronize(flavor));
        // Somebody sleeps for the section, if not that one. (bp's scan again after naps.)
        let futex = &GP[flavor as usize].futex;
        until(|| flavor == BP || futex.load(SeqCst) == u32::MAX);
        updater
    });
    f();
    end.send(()).unwrap();
    reader.join().unwrap();
    updaters.into_iter().for_each(|updater| updater.join().unwrap());
}

/// The one that forks stays what it was.
#[test]
fn a_section_goes_on_in_the_child() {
    attach();
    thread::spawn(|| {
        ALL.into_iter().for_each(register);
        SECTIONS.into_iter().for_each(read_lock);
        let code = in_child(|| {
            for flavor in ALL {
                let state = quiescence_urcu_start_poll(flavor);
                assert_not_over(flavor, state);
                match flavor {
                    QSBR => offline(),
                    _ => read_unlock(flavor),
                }
                quiescence_urcu_synchronize(flavor);
                if !quiescence_urcu_poll_state(flavor, state) {
                    return false;
                }
                unregister(flavor);
            }
            true
        });
        assert_eq!(code, 0);
        SECTIONS.into_iter().for_each(read_unlock);
        ALL.into_iter().for_each(unregister);
    })
    .join()
    .unwrap();
}

/// A record of a thread that the child does not have is free there, and each is one reader's. No
/// flavour waits for those threads.
#[test]
fn the_child_has_all_records_of_bp() {
    attach();
    read_lock(BP); // the forking thread keeps its own
    read_unlock(BP);
    beside_readers(|| {
        let code = in_child(|| {
            read_lock(BP);
            let own = bp_pointer().addr();
            let readers = BpReaders::begin(70);
            let all: BTreeSet<usize> = readers.records.iter().copied().chain([own]).collect();
            let state = quiescence_urcu_start_poll(BP);
            read_unlock(BP);
            readers.end(|| assert_not_over(BP, state));
            ALL.into_iter().for_each(|flavor| quiescence_urcu_synchronize(flavor));
            all.len() == 71
        });
        assert_eq!(code, 0);
    });
}

#[test]
fn the_hooks_of_bp_keep_signals_away_and_deadlock_nowhere() {
    attach();
    thread::spawn(|| {
        quiescence_urcu_before_fork(BP);
        quiescence_urcu_before_fork(BP); // a library's, and its program's
        assert!(is_blocked(libc::SIGUSR1));
        quiescence_urcu_synchronize(BP);
        let code = in_child(|| {
            assert!(is_blocked(libc::SIGUSR1));
            quiescence_urcu_after_fork_child(BP);
            assert!(is_blocked(libc::SIGUSR1));
            quiescence_urcu_after_fork_child(BP);
            quiescence_urcu_synchronize(BP);
            !is_blocked(libc::SIGUSR1)
        });
        assert_eq!(code, 0);
        quiescence_urcu_after_fork_parent(BP);
        assert!(is_blocked(libc::SIGUSR1));
        quiescence_urcu_after_fork_parent(BP);
        assert!(!is_blocked(libc::SIGUSR1));
    })
    .join()
    .unwrap();
}

#[test]
fn forks_leave_the_signal_mask_as_it_was() {
    attach();
    thread::spawn(|| {
        quiescence_urcu_synchronize(MEMB);
        assert_eq!(in_child(|| !is_blocked(libc::SIGUSR1)), 0);
        assert!(!is_blocked(libc::SIGUSR1));
    })
    .join()
    .unwrap();
}

/// Threads register and defer all the time while others fork: no lock is left locked in a child.
#[test]
fn the_child_finds_no_lock_held() {
    attach();
    let stop = Arc::new(AtomicBool::new(false));
    let busy = [MEMB, QSBR, BP].map(|flavor| {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            while !stop.load(Relaxed) {
                thread::spawn(move || {
                    register(flavor);
                    quiescence_urcu_defer_register_thread(flavor);
                    defer(flavor, || ());
                    unregister(flavor);
                })
                .join()
                .unwrap();
            }
        })
    });
    for _ in 0..20 {
        let code = in_child(|| {
            for flavor in [MEMB, QSBR, BP] {
                register(flavor);
                defer(flavor, || ());
                quiescence_urcu_defer_barrier(flavor);
                unregister(flavor);
            }
            true
        });
        assert_eq!(code, 0);
    }
    stop.store(true, Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
}

static COPIED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

extern "C" fn looks_before() {
    COPIED[0].store(is_blocked(libc::SIGUSR1), SeqCst);
}

extern "C" fn looks_after_in_parent() {
    COPIED[1].store(is_blocked(libc::SIGUSR1), SeqCst);
}

extern "C" fn looks_after_in_child() {
    COPIED[2].store(is_blocked(libc::SIGUSR1), SeqCst);
}

/// A handler that reads for the first time would register its thread, for which it would wait for a
/// lock that the fork holds. Ours are called before and after those handlers that were installed
/// earlier, as quiescence's own are.
#[test]
fn no_handler_runs_while_the_memory_is_copied() {
    alone!();
    let handlers: [unsafe extern "C" fn(); 3] =
        [looks_before, looks_after_in_parent, looks_after_in_child];
    let [before, parent, child] = handlers.map(Some);
    // SAFETY: three functions that live for ever.
    assert_eq!(unsafe { libc::pthread_atfork(before, parent, child) }, 0);
    attach();
    quiescence_urcu_synchronize(MEMB);
    assert_eq!(in_child(|| COPIED[0].load(SeqCst) && COPIED[2].load(SeqCst)), 0);
    assert!(COPIED[0].load(SeqCst) && COPIED[1].load(SeqCst));
    assert!(!is_blocked(libc::SIGUSR1));
}
