//! Misuse is named, and ends the process: each case in one of its own. What liburcu survives is in
//! `regressions`; most of what programs do wrong is in `programs/misuse.c`.

use crate::c::*;
use crate::call_rcu;

/// A case: its name, what it does, what is said of it.
type Case = (&'static str, fn(), &'static str);

const CASES: [Case; 15] = [
    (
        "again",
        || {
            register(MB);
            unregister(MB);
            unregister(MB)
        },
        "by a thread that is not registered",
    ),
    (
        "enter inside",
        || {
            read_lock(MB);
            register(MB)
        },
        "urcu_mb_register_thread() in a read-side",
    ),
    (
        "debug unknown",
        || {
            read_lock(MEMB);
            quiescence_urcu_synchronize(MEMB)
        },
        "of a thread that is not registered",
    ),
    ("number", || quiescence_urcu_synchronize(5), "there is no flavour 5"),
    // Before its library's constructor has run, a flavour has no words.
    (EARLY, || quiescence_urcu_synchronize(MEMB), "urcu_memb: a function was called before"),
    (
        "fatal",
        || {
            // SAFETY: a C string.
            unsafe { quiescence_urcu_fatal(QSBR, c"what a library finds".as_ptr()) }
        },
        "liburcu (quiescence): urcu_qsbr: what a library finds",
    ),
    (
        "defer inside",
        || {
            register(MEMB);
            read_lock(MEMB);
            defer(MEMB, || ());
            quiescence_urcu_defer_barrier_thread(MEMB);
        },
        "urcu_memb_defer_barrier_thread() inside",
    ),
    ("hook child", || quiescence_urcu_after_fork_child(BP), "urcu_bp_after_fork_child() without"),
    ("copies", || attach_as(MB, &GP[MEMB as usize]), "two copies of this flavour"),
    ("portable signal", || register(SIGNAL), "urcu_signal: its readers execute no fences"),
    ("portable signal update", || quiescence_urcu_synchronize(SIGNAL), "urcu_signal: its readers"),
    (
        "debug state",
        || _ = quiescence_urcu_poll_state(MB, 1 << 40),
        "urcu_mb_poll_state_synchronize_rcu: the state 0x10000000000 was not returned",
    ),
    (
        "debug exit",
        || {
            quiescence_urcu_defer_register_thread(MEMB);
            quiescence_urcu_defer_exit(MEMB);
        },
        "urcu_memb_defer_exit() while 1 threads",
    ),
    ("freed twice", call_rcu::freed_twice, "was it freed before?"),
    ("no worker", call_rcu::no_worker_freed, "there is no such worker"),
];

/// Of this one, the thin libraries' constructors have not run.
const EARLY: &str = "early";

fn ends_in_section(flavor: u32) {
    elsewhere(|| {
        register(flavor);
        read_lock(flavor);
    });
}

fn environment(case: &str) -> &'static [(&'static str, &'static str)] {
    match case.split(' ').next() {
        Some("portable") => &[("QUIESCENCE_FENCES", "portable")],
        Some("debug") => &[("QUIESCENCE_DEBUG", "1")],
        _ => &[],
    }
}

#[test]
fn it_is_named_and_ends_the_process() {
    if let Some(role) = role() {
        if role != EARLY {
            attach();
        }
        let (_, act, _) =
            CASES.iter().find(|(case, _, _)| *case == role).expect("one of the cases");
        act();
        return;
    }
    for (case, _, said) in CASES {
        let output = again(this_test!(), case, environment(case));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("liburcu (quiescence):") && error.contains(said), "{case}: {error}");
        assert!(!error.contains("panicked"), "{case}: {error}");
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{case}: {:?}", output.status);
    }
}

/// What costs something to find is looked for only where that is asked for.
#[test]
fn without_being_asked_nobody_looks() {
    attach();
    assert!(!quiescence_urcu_debugging());
    ends_in_section(MEMB);
    quiescence_urcu_synchronize(MEMB);
    quiescence_urcu_defer_register_thread(MB);
    quiescence_urcu_defer_exit(MB);
    quiescence_urcu_defer_unregister_thread(MB);
}

/// A state from elsewhere is never over, and holds nothing up: callbacks, grace periods, the end.
#[test]
fn a_state_from_elsewhere_is_said_once_and_never_over() {
    if role().is_some() {
        attach();
        register(MEMB);
        assert_not_over(MEMB, 1 << 40);
        quiescence_urcu_synchronize(MEMB);
        let state = quiescence_urcu_start_poll(MEMB);
        until(|| quiescence_urcu_poll_state(MEMB, state));
        assert_not_over(MEMB, state + 2);
        assert!(quiescence_urcu_poll_state(MEMB, 0), "long ago");
        return unregister(MEMB);
    }
    let error = ends_again(this_test!(), "child", 0);
    assert_eq!(error.matches("not returned by urcu_memb_start_poll").count(), 1, "{error}");
}
