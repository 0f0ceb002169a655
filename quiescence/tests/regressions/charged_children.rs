//! What a child process was charged: what a callback had queued in the room of those that had run
//! was counted twice where the next step of it was a fork.

use crate::common::*;

#[test]
fn a_callback_that_queued_another_one_and_forked_took_room_for_good() {
    in_its_own_process!();
    let (domain, forks) = (domain_with_limit(1, u64::MAX), ForksHere::new());
    // Until no other thread, the worker say, is the one that runs it.
    while !forks.has_forked() {
        let (within, forks) = (domain.clone(), forks.clone());
        let queues = move || {
            if forks.is_here() {
                within.try_call(|| ()).expect("the room that this one had");
                forks.fork();
            }
        };
        domain.call(queues).unwrap();
        domain.barrier();
    }
    domain.barrier();
    forks.assert_in_both(domain.try_call(|| ()).is_ok(), "there is room");
}

/// Callbacks share a catch: one that panics, and one behind it that forks.
#[test]
fn a_callback_that_forked_behind_one_that_panicked_leaves_room_and_counts() {
    /// Whether the last panic was on the main thread of the test.
    static PANICKED: AtomicBool = AtomicBool::new(false);
    in_its_own_process!();
    let (domain, forks) = (domain_with_limit(2, u64::MAX), ForksHere::new());
    let mut rounds = 0;
    // Until no other thread, the worker say, is the one that runs both.
    while !forks.has_forked() {
        rounds += 1;
        let (within, forks, other) = (domain.clone(), forks.clone(), forks.clone());
        let panics = move || {
            PANICKED.store(other.is_here(), SeqCst);
            panic!("a callback panics, as it should in this test");
        };
        let queues = move || {
            if forks.is_here() && PANICKED.load(SeqCst) {
                (0..2).for_each(|_| within.try_call(|| ()).expect("the room that both had"));
                forks.fork();
            }
        };
        domain.call(panics).unwrap();
        domain.call(queues).unwrap();
        domain.barrier();
    }
    domain.barrier();
    let guard = domain.read();
    let has_room = (0..3).filter(|_| domain.try_call(|| ()).is_ok()).count() == 2;
    drop(guard);
    domain.barrier();
    let statistics = domain.statistics();
    let is_counted = statistics.callbacks_panicked == rounds && statistics.bytes_waiting == 0;
    forks.assert_in_both(has_room && is_counted, "there is room, and the counts are right");
}
