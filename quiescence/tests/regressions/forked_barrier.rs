//! A barrier that a `fork` interrupts, in a callback that the barrier itself runs.

use crate::common::*;
use quiescence::callback_queue::{CallbackQueue, Wakes};

use crate::heads::push;

/// The mark that it had sent through another queue was lost with that queue's runner.
#[test]
fn a_barrier_waited_in_a_child_for_a_mark_that_was_being_run() {
    in_its_own_process!();
    let domain = Domain::new();
    let forks = ForksHere::new();
    let [others, own] = [0; 2].map(|_| Arc::new(CallbackQueue::new(&domain, Wakes::Runner)));
    let [visits, runs, goes_on] = [0; 3].map(|_| Arc::new(AtomicBool::new(false)));
    let (running, resumes) = (runs.clone(), goes_on.clone());
    let _ = push(&others, move || {
        running.store(true, SeqCst);
        until(|| resumes.load(SeqCst));
    });
    let (visiting, forking) = (visits.clone(), forks.clone());
    let _ = push(&own, move || {
        visiting.store(true, SeqCst);
        until(|| runs.load(SeqCst));
        forking.fork();
        if forking.is_child() {
            // SAFETY: asks for a signal, which ends a child that hangs.
            unsafe { libc::alarm(60) };
        }
        goes_on.store(true, SeqCst);
    });
    let ran = Arc::new(AtomicUsize::new(0));
    let _ = push(&own, counting(&ran));
    others.expect(); // so the barrier leaves it alone
    thread::scope(|scope| {
        let runner = others.clone();
        scope.spawn(move || {
            until(|| visits.load(SeqCst)); // by then the barrier's marks are in both
            let _ = runner.attend(None);
        });
        domain.barrier();
        others.stop();
        forks.assert_in_both(ran.load(SeqCst) == 1, "all that waited has run");
    });
}
