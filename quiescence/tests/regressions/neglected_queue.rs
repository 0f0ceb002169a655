//! A callback queue that a barrier attends to, and whose own thread could not be started.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use quiescence::Domain;
use quiescence::callback_queue::{CallbackQueue, Pushed, Wakes};
use quiescence::raw::Head;

use crate::common::until_an_updater_sleeps;

/// A head with a count: first, so that a pointer to it is one to both.
#[repr(C)]
struct Counted {
    head: Head,
    ran: Arc<AtomicU64>,
}

unsafe extern "C" fn count(head: *mut Head) {
    // SAFETY: from a box, in `push`.
    let counted = unsafe { Box::from_raw(head.cast::<Counted>()) };
    counted.ran.fetch_add(1, SeqCst);
}

fn push(queue: &CallbackQueue, ran: &Arc<AtomicU64>) -> Pushed {
    let counted = Box::into_raw(Box::new(Counted { head: Head::new(), ran: Arc::clone(ran) }));
    // SAFETY: a head in a box that no reader knows.
    unsafe { queue.push(counted.cast(), count) }.unwrap()
}

/// A section in a thread of its own, until `leave` is called.
fn section<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    domain: &'scope Domain,
) -> impl FnOnce() {
    let (entered, has_entered) = mpsc::channel::<()>();
    let (leave, may_leave) = mpsc::channel::<()>();
    let reader = scope.spawn(move || {
        let guard = domain.read();
        entered.send(()).unwrap();
        may_leave.recv().unwrap();
        drop(guard);
    });
    has_entered.recv().unwrap();
    move || {
        leave.send(()).unwrap();
        reader.join().unwrap();
    }
}

/// A barrier ran what was put to its heads while it waited for their grace period: with `neglect`,
/// where the thread that was to attend could not be started.
#[test]
fn what_is_pushed_beside_a_visitor_waits_for_its_own_grace_period() {
    let domain = Domain::new();
    let queue = CallbackQueue::new(&domain, Wakes::Runner);
    let (first, second) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    thread::scope(|scope| {
        let leave = section(scope, &domain);
        assert!(push(&queue, &first).unattended);
        let barrier = scope.spawn(|| domain.barrier());
        until_an_updater_sleeps(&domain);
        // One that the grace period in progress does not wait for.
        let leave_late = section(scope, &domain);
        assert!(push(&queue, &second).unattended, "the visitor leaves it to others");
        queue.expect();
        queue.neglect().unwrap();
        leave();
        barrier.join().unwrap();
        let ran = [&first, &second].map(|ran| ran.load(SeqCst));
        leave_late();
        assert_eq!(ran, [1, 0], "run beside a section that began before it was pushed");
    });
    domain.barrier();
    assert_eq!(second.load(SeqCst), 1);
}
