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
