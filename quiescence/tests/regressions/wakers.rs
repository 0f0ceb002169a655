//! Wakers are code of the user's: what one does to the thread that calls or drops it, and how many
//! of them there may be.

use crate::common::*;
use std::task::{RawWaker, RawWakerVTable};
use std::thread::{JoinHandle, ThreadId};

use quiescence::{Cookie, Guard, SrcuGuard};

thread_local! {
    static KEPT: RefCell<Option<Guard<'static, Private>>> = const { RefCell::new(None) };
}

/// Begins a section on the thread that it is woken on, if that is `main`, and keeps it.
struct Begins {
    domain: &'static Domain,
    main: ThreadId,
    /// The other reader, which is to be gone.
    other: Mutex<Option<JoinHandle<()>>>,
    /// From after the section has begun.
    cookie: Mutex<Option<Cookie>>,
}

impl Wake for Begins {
    fn wake(self: Arc<Self>) {
        if thread::current().id() != self.main {
            return;
        }
        if let Some(other) = self.other.lock().unwrap().take() {
            other.join().unwrap();
        }
        KEPT.set(Some(self.domain.read()));
        *self.cookie.lock().unwrap() = Some(self.domain.cookie());
    }
}

/// A driver knew how many readers its thread had, all of them quiescent, from before it had called
/// the waker: the next grace period found no other reader, and waited for none. Now it looks, and
/// the wait that would never end is refused.
#[test]
fn a_section_that_a_waker_begins_is_waited_for() {
    // The worker may be the one that calls the waker, or both wait for the same grace period.
    while !a_waker_begins_a_section() {}
}

fn a_waker_begins_a_section() -> bool {
    let domain = lasting_domain();
    drop(domain.read()); // registered
    let (entered, is_inside) = mpsc::channel();
    let other = thread::spawn(move || {
        let guard = domain.read();
        entered.send(()).unwrap();
        until_an_updater_sleeps(domain);
        drop(guard);
    });
    is_inside.recv().unwrap();
    let begins = Arc::new(Begins {
        domain,
        main: thread::current().id(),
        other: Mutex::new(Some(other)),
        cookie: Mutex::new(None),
    });
    let waker = Waker::from(Arc::clone(&begins));
    let mut task = pin!(domain.synchronize_async());
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // If the task's grace period is in progress, this waits for the one after it as well.
    let waits = catch_unwind(AssertUnwindSafe(|| domain.synchronize()));
    let Some(cookie) = begins.cookie.lock().unwrap().take() else { return false };
    assert!(!domain.poll(cookie), "a grace period has ended in the midst of a section");
    let Err(refused) = waits else {
        KEPT.set(None);
        return false;
    };
    let refused = *refused.downcast::<String>().unwrap();
    assert!(refused.contains("inside a read-side critical section"), "{refused}");
    KEPT.set(None);
    domain.wait(cookie);
    true
}

static SRCU: Srcu = Srcu::new();

thread_local! {
    static SECTION: Cell<Option<SrcuGuard<'static>>> = const { Cell::new(None) };
}

/// Ends the section that the grace period waits for, and the grace period, before it is noted.
fn clone_late(data: *const ()) -> RawWaker {
    SECTION.set(None);
    SRCU.synchronize();
    RawWaker::new(data, &LATE)
}

/// Takes the lock of the domain.
fn drop_in_domain(_: *const ()) {
    let _: Cookie = SRCU.start_poll();
}

const LATE: RawWakerVTable = RawWakerVTable::new(clone_late, |_| (), |_| (), drop_in_domain);

/// A waker that came too late was dropped under the lock of the domain, and waited for itself.
#[test]
fn a_waker_may_use_the_domain_where_it_is_dropped() {
    in_its_own_process!();
    SECTION.set(Some(SRCU.read()));
    let mut task = pin!(SRCU.synchronize_async());
    // SAFETY: it has no data.
    let waker = unsafe { Waker::from_raw(RawWaker::new(ptr::null(), &LATE)) };
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

/// Forks where it is woken on the main thread of the test.
#[cfg(unix)]
struct Forks {
    main: ThreadId,
    /// The child, or 0 in the child; -1 until then.
    child: AtomicI32,
}

#[cfg(unix)]
impl Wake for Forks {
    fn wake(self: Arc<Self>) {
        if thread::current().id() == self.main {
            // SAFETY: the child continues with this one thread, and ends by `_exit`.
            self.child.store(unsafe { libc::fork() }, SeqCst);
        }
    }
}

/// Notes that it has been woken.
#[cfg(unix)]
struct Notes(AtomicBool);

#[cfg(unix)]
impl Wake for Notes {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// What was to be woken after a waker that forks was woken in the child as well, where whatever it
/// wakes may be in the midst of something for ever.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "forks")]
fn a_child_that_a_waker_makes_wakes_nobody() {
    while !a_waker_forks() {}
}

#[cfg(unix)]
fn a_waker_forks() -> bool {
    let domain = Domain::new();
    let forks = Arc::new(Forks { main: thread::current().id(), child: AtomicI32::new(-1) });
    let notes = Arc::new(Notes(AtomicBool::new(false)));
    let (first, second) = (Waker::from(Arc::clone(&forks)), Waker::from(Arc::clone(&notes)));
    let mut tasks = [(); 2].map(|()| Box::pin(domain.synchronize_async()));
    beside_a_section(&domain, |leave| {
        for (task, waker) in tasks.iter_mut().zip([&first, &second]) {
            assert!(task.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        leave();
    });
    domain.synchronize();
    match forks.child.load(SeqCst) {
        0 => end_child(!notes.0.load(SeqCst)),
        -1 => return false, // the worker was faster
        child => assert_eq!(status_of(child), 0, "the child has woken a task of the parent's"),
    }
    assert!(notes.0.load(SeqCst), "and so has the parent");
    true
}
