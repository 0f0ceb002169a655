//! What a child process was charged: what a callback had queued in the room of those that had run
//! was counted twice where the next step of it was a fork.

use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use crate::common::{again_in_time, domain_with_limit, role};

/// What `fork` has returned, once it has.
static FORKED: AtomicI32 = AtomicI32::new(-1);

#[test]
#[cfg_attr(miri, ignore = "a child process")]
fn a_callback_that_queued_another_one_and_forked_took_room_for_good() {
    const TEST: &str =
        "charged_children::a_callback_that_queued_another_one_and_forked_took_room_for_good";
    if role().is_none() {
        let output = again_in_time(TEST, "parent", &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {error}", output.status);
        return;
    }
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
    let child = FORKED.load(SeqCst);
    if child == 0 {
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(i32::from(!has_room)) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(has_room);
    assert_eq!(status, 0, "the child has no room");
}
