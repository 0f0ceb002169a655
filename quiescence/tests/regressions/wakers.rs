//! Wakers are code of the user's: what one does to the thread that calls or drops it, and how many
//! of them there may be.

use crate::common::*;
use std::future::{Future, poll_fn};
use std::task::{RawWaker, RawWakerVTable};

use quiescence::{Cookie, SrcuGuard};

use crate::unwinding::{keep_section, let_go};

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
    let (main, other) = (thread::current().id(), Mutex::new(Some(other)));
    let cookie = Arc::new(Mutex::new(None)); // from after the section has begun
    let begun = Arc::clone(&cookie);
    let waker = waker_of(move || {
        if thread::current().id() == main {
            if let Some(other) = other.lock().unwrap().take() {
                other.join().unwrap();
            }
            keep_section(domain);
            *begun.lock().unwrap() = Some(domain.cookie());
        }
    });
    let mut task = pin!(domain.synchronize_async());
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // If the task's grace period is in progress, this waits for the one after it as well.
    let waits = catch_unwind(AssertUnwindSafe(|| domain.synchronize()));
    let Some(cookie) = cookie.lock().unwrap().take() else { return false };
    assert!(!domain.poll(cookie), "a grace period has ended in the midst of a section");
    let Err(refused) = waits else {
        let_go();
        return false;
    };
    let refused = *refused.downcast::<String>().unwrap();
    assert!(refused.contains("inside a read-side critical section"), "{refused}");
    let_go();
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
    let (domain, forks, woken) = (Domain::new(), ForksHere::new(), Arc::new(Woken::default()));
    let first = forks.clone();
    let (first, second) = (waker_of(move || first.fork()), Waker::from(woken.clone()));
    let mut tasks = [(); 2].map(|()| Box::pin(domain.synchronize_async()));
    beside_a_section(&domain, |leave| {
        for (task, waker) in tasks.iter_mut().zip([&first, &second]) {
            assert!(task.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        leave();
    });
    domain.synchronize();
    if forks.has_forked() {
        let is_woken = woken.0.load(Acquire) != 0;
        forks.assert_in_both(is_woken != forks.is_child(), "the parent alone wakes its task");
    }
    forks.has_forked() // else the worker was faster
}

/// What `f` returns in a waker that the worker calls, since no other thread drives.
fn in_a_waker_on_the_worker<R: Send + 'static>(
    domain: &'static Domain,
    f: impl Fn() -> R + Send + Sync + 'static,
) -> R {
    let (worker, (said, called)) = (worker(), mpsc::channel());
    let waker = waker_of(move || said.send((thread::current().id() == worker, f())).unwrap());
    let (is_worker, result) = beside_a_section(domain, |leave| {
        let mut task = pin!(domain.synchronize_async());
        assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        leave();
        called.recv().unwrap()
    });
    assert!(is_worker);
    result
}

/// A waker that called at the limit on the worker waited for the worker, which was this thread.
#[test]
fn a_waker_on_the_worker_is_refused_what_only_the_worker_could_make_room_for() {
    let domain = lasting_domain();
    tune(domain, |tuning| (tuning.objects_max, tuning.lazy) = (1, Duration::MAX));
    domain.try_call(|| ()).unwrap(); // as many as there may be
    let is_refused = in_a_waker_on_the_worker(domain, move || domain.call(|| ()).is_err());
    assert!(is_refused);
}

/// What a waker on the worker had added over the limit in a section was not settled when that
/// ended, as if the waker were a callback: the next object in a section was refused, and for ever
/// if nothing else closed the worker's queue.
#[test]
fn a_waker_on_the_worker_pays_when_its_section_ends() {
    let domain = lasting_domain();
    tune(domain, |tuning| (tuning.objects_max, tuning.lazy) = (1, Duration::MAX));
    domain.try_retire(Box::new(0)).unwrap(); // as many as there may be
    let accepted = in_a_waker_on_the_worker(domain, move || {
        [1, 2].map(|number| {
            let _guard = domain.read();
            domain.retire(Box::new(number)).is_ok()
        })
    });
    assert_eq!(accepted, [true; 2]);
}

/// Awaits a future on this thread, beside a section that ends once it has been polled.
fn await_beside_a_section(domain: &Domain, future: impl Future<Output = ()>) {
    beside_a_section(domain, |leave| {
        let mut future = pin!(future);
        block_on(poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            leave();
            polled
        }));
    });
}

/// What a waker on the worker blocked on was left to the worker, which was this thread.
#[test]
fn a_waker_on_the_worker_that_awaits_does_what_only_the_worker_would_do() {
    let domain = lasting_domain();
    tune(domain, |tuning| (tuning.objects_max, tuning.lazy) = (1, Duration::MAX));
    let awaits: [fn(&Domain); 3] = [
        |domain| await_beside_a_section(domain, domain.synchronize_async()),
        |domain| await_beside_a_section(domain, domain.retire_async(Box::new(0))),
        |domain| await_beside_a_section(domain, domain.call_async(|| ())),
    ];
    for awaits in awaits {
        domain.try_call(|| ()).unwrap(); // as many as there may be
        in_a_waker_on_the_worker(domain, move || awaits(domain));
        domain.barrier();
    }
}
