//! A callback queue that a barrier attends to, and whose own thread could not be started.

use crate::common::*;
use quiescence::callback_queue::{CallbackQueue, Wakes};

use crate::heads::push;

/// A barrier ran what was put to its heads while it waited for their grace period: with `neglect`,
/// where the thread that was to attend could not be started.
#[test]
fn what_is_pushed_beside_a_visitor_waits_for_its_own_grace_period() {
    let domain = Domain::new();
    let queue = CallbackQueue::new(&domain, Wakes::Runner);
    let (first, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    thread::scope(|scope| {
        beside_a_section(&domain, |leave| {
            assert!(push(&queue, counting(&first)).unattended);
            let barrier = scope.spawn(|| domain.barrier());
            until_an_updater_sleeps(&domain);
            // In a section that the grace period in progress does not wait for.
            let ran = beside_a_section(&domain, |_| {
                let pushed = push(&queue, counting(&second));
                assert!(pushed.unattended, "the visitor leaves it to others");
                queue.expect();
                queue.neglect().unwrap();
                leave();
                barrier.join().unwrap();
                [&first, &second].map(|ran| ran.load(SeqCst))
            });
            assert_eq!(ran, [1, 0], "run beside a section that began before it was pushed");
        });
    });
    assert_eq!(settled(&domain, &second), 1);
}
