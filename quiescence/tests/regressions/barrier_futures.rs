//! Barriers that tasks wait for: the end of their threads, and children of the process.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use quiescence::{Cookie, Domain, Guard, tag::Private};

#[cfg(unix)]
use crate::common::in_child;
use crate::common::{again_in_time, beside_a_section, role};

thread_local! {
    static KEPT: RefCell<Option<Guard<'static, Private>>> = const { RefCell::new(None) };
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(mut future: Pin<&mut impl Future<Output = ()>>) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    while future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
        thread::park();
    }
}

/// Keeps the worker in a callback until `f` has returned.
fn without_the_worker<R>(f: impl FnOnce() -> R) -> R {
    let (entered, is_inside) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    let busy = Domain::new();
    let blocks = move || {
        entered.send(()).unwrap();
        let _ = may_leave.recv();
    };
    busy.call_hurry(blocks).expect("the first");
    is_inside.recv().unwrap();
    let result = f();
    drop(leave);
    result
}

/// The thread that made the barrier panicked, since a callback had begun a section on it; the task
/// was never told.
#[test]
#[cfg_attr(miri, ignore = "a child process")]
fn a_barrier_whose_thread_panics_ends_with_the_panic() {
    const TEST: &str = "barrier_futures::a_barrier_whose_thread_panics_ends_with_the_panic";
    if role().is_none() {
        let output = again_in_time(TEST, "barrier", &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let domain: &'static Domain = Box::leak(Box::new(Domain::new()));
    let mut barrier = pin!(domain.barrier_async());
    let ended = beside_a_section(domain, |leave| {
        // It waits for the first grace period, and the next callback for the second.
        domain.call_hurry(|| KEPT.set(Some(domain.read()))).expect("the first");
        while domain.statistics().batches == 0 {
            thread::yield_now();
        }
        without_the_worker(|| {
            // Under way, so that what is asked for now is another one.
            let _: Cookie = domain.start_poll();
            domain.call(|| ()).expect("there is room");
            assert!(barrier.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            leave();
            catch_unwind(AssertUnwindSafe(|| block_on(barrier.as_mut())))
        })
    });
    let panic = *ended.unwrap_err().downcast::<String>().unwrap();
    assert!(panic.contains("barrier() at"), "{panic}");
    domain.barrier();
}

static DROPPED: AtomicU32 = AtomicU32::new(0);

struct Counts;

impl Wake for Counts {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Counts {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, SeqCst);
    }
}

/// The child took the lock that the thread, which is gone there, might have held, and dropped the
/// parent's waker.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "forks")]
fn a_barrier_that_is_dropped_in_a_child_leaves_the_parents_waker_alone() {
    let domain = Domain::new();
    beside_a_section(&domain, |leave| {
        domain.call(|| ()).expect("the first");
        let mut barrier = Box::pin(domain.barrier_async());
        let waker = Waker::from(Arc::new(Counts));
        assert!(barrier.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker); // the barrier has the last one
        let mut barrier = Some(barrier);
        in_child(|| {
            drop(barrier.take());
            assert_eq!(DROPPED.load(SeqCst), 0);
        });
        drop(barrier.take());
        assert_eq!(DROPPED.load(SeqCst), 1);
        leave();
    });
}
