//! What a child process was charged: what a callback had queued in the room of those that had run
//! was counted twice where the next step of it was a fork.

use crate::common::*;

/// What `fork` has returned, once it has.
static FORKED: AtomicI32 = AtomicI32::new(-1);

#[test]
fn a_callback_that_queued_another_one_and_forked_took_room_for_good() {
    in_its_own_process!();
    let (domain, main) = (domain_with_limit(1, u64::MAX), thread::current().id());
    // Until no other thread, the worker say, is the one that runs it.
    while FORKED.load(SeqCst) == -1 {
        let within = domain.clone();
        let forks = move || {
            if thread::current().id() == main {
                within.try_call(|| ()).expect("the room that this one had");
                // SAFETY: the child has this thread only, and ends by `_exit`.
                FORKED.store(unsafe { libc::fork() }, SeqCst);
            }
        };
        domain.call(forks).unwrap();
        domain.barrier();
    }
    domain.barrier();
    let has_room = domain.try_call(|| ()).is_ok();
    match FORKED.load(SeqCst) {
        0 => end_child(has_room),
        child => assert_eq!(status_of(child), 0, "the child has no room"),
    }
    assert!(has_room);
}

/// Callbacks share a catch: one that panics, and one behind it that forks.
#[test]
fn a_callback_that_forked_behind_one_that_panicked_leaves_room_and_counts() {
    /// Whether the last panic was on the main thread of the test, and then what `fork` returned.
    static PANICKED: AtomicBool = AtomicBool::new(false);
    static FORKED: AtomicI32 = AtomicI32::new(-1);
    in_its_own_process!();
    let (domain, main) = (domain_with_limit(2, u64::MAX), thread::current().id());
    let mut rounds = 0;
    // Until no other thread, the worker say, is the one that runs both.
    while FORKED.load(SeqCst) == -1 {
        rounds += 1;
        let within = domain.clone();
        let panics = move || {
            PANICKED.store(thread::current().id() == main, SeqCst);
            panic!("a callback panics, as it should in this test");
        };
        let forks = move || {
            if thread::current().id() == main && PANICKED.load(SeqCst) {
                (0..2).for_each(|_| within.try_call(|| ()).expect("the room that both had"));
                // SAFETY: the child has this thread only, and ends by `_exit`.
                FORKED.store(unsafe { libc::fork() }, SeqCst);
            }
        };
        domain.call(panics).unwrap();
        domain.call(forks).unwrap();
        domain.barrier();
    }
    domain.barrier();
    let guard = domain.read();
    let has_room = (0..3).filter(|_| domain.try_call(|| ()).is_ok()).count() == 2;
    drop(guard);
    domain.barrier();
    let statistics = domain.statistics();
    let is_counted = statistics.callbacks_panicked == rounds && statistics.bytes_waiting == 0;
    match FORKED.load(SeqCst) {
        0 => end_child(has_room && is_counted),
        child => assert_eq!(status_of(child), 0, "the child has no room, or miscounts"),
    }
    assert!(has_room && is_counted);
}
