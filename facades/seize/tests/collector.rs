//! What programs on seize rely on, beyond the original's own tests (`cargo xtask facades seize`).

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use seize::{Collector, Guard, OwnedGuard, reclaim};

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn boxed(drops: &Arc<AtomicUsize>) -> *mut Counted {
    Box::into_raw(Box::new(Counted(Arc::clone(drops))))
}

/// Retires a value that no thread knows of.
fn retire<T>(guard: &impl Guard, value: T) {
    // SAFETY: from a box, which no thread can reach.
    unsafe { guard.defer_retire(Box::into_raw(Box::new(value)), reclaim::boxed) };
}

/// Values that must stay on one thread may be retired: no other thread reclaims them.
#[test]
fn what_is_retired_is_reclaimed_by_threads_in_calls_on_the_collector() {
    let counted = Rc::new(());
    let collector = Collector::new().batch_size(4);
    for _ in 0..1_000 {
        retire(&collector.enter(), Rc::clone(&counted));
    }
    assert!(Rc::strong_count(&counted) <= 4);
    drop(collector);
    assert_eq!(Rc::strong_count(&counted), 1);
}

/// Retired values may borrow: they do not outlive the collector.
#[test]
fn the_end_of_a_collector_reclaims_all_at_once() {
    let drops = AtomicUsize::new(0);
    struct Borrows<'a>(&'a AtomicUsize);
    impl Drop for Borrows<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let collector = Collector::new();
    thread::scope(|scope| {
        scope.spawn(|| retire(&collector.enter(), Borrows(&drops)));
    });
    assert_eq!(drops.load(Relaxed), 0);
    drop(collector);
    assert_eq!(drops.load(Relaxed), 1);
}

#[test]
fn owned_guards_protect_on_every_thread() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let collector = Collector::new().batch_size(1);
    let drops = Arc::new(AtomicUsize::new(0));
    let place = AtomicPtr::new(boxed(&drops));
    let guard: OwnedGuard<'_> = collector.enter_owned();
    is_shared(&guard);
    thread::scope(|scope| {
        scope.spawn(|| {
            let seen = guard.protect(&place, Relaxed);
            let local = collector.enter();
            let old = local.swap(&place, ptr::null_mut(), AcqRel);
            // SAFETY: from a box, and no thread can load it any more.
            unsafe { local.defer_retire(old, reclaim::boxed) };
            drop(local);
            // SAFETY: the owned guard protects it.
            assert_eq!(unsafe { &(*seen).0 }.load(SeqCst), 0);
        });
    });
    assert_eq!(drops.load(SeqCst), 0);
    thread::scope(|scope| _ = scope.spawn(|| drop(guard)));
    assert_eq!(drops.load(SeqCst), 1, "the last that held it up is gone");
}

/// Two faults: it returned when the first batch had been reclaimed, whatever that had retired; and
/// it gave up after 10 ms, although each reclaimer retired one more object and no guard lived.
#[test]
fn reclaim_all_gave_up_while_reclaimers_retired_more() {
    struct Link {
        left: u32,
        drops: Arc<AtomicUsize>,
    }
    unsafe fn reclaim(link: *mut Link, collector: &Collector) {
        // SAFETY: from a box, and reclaimed once.
        let mut link = unsafe { Box::from_raw(link) };
        link.drops.fetch_add(1, SeqCst);
        if link.left != 0 {
            link.left -= 1;
            // SAFETY: from a box, and no thread knows of it.
            unsafe { collector.retire(Box::into_raw(link), reclaim) };
        }
    }
    const LINKS: u32 = 20_000;
    let (collector, drops) = (Collector::new(), Arc::new(AtomicUsize::new(0)));
    let first = Box::new(Link { left: LINKS - 1, drops: Arc::clone(&drops) });
    // SAFETY: from a box, and no thread knows of it.
    unsafe { collector.retire(Box::into_raw(first), reclaim) };
    // SAFETY: no thread uses any of it.
    unsafe { collector.reclaim_all() };
    assert_eq!(drops.load(SeqCst), LINKS as usize);
}

/// A thread's first owned guard during an update: each of the two sees the other.
#[test]
fn the_first_owned_guard_is_seen() {
    for _ in 0..300 {
        let collector = Collector::new().batch_size(1);
        let place = AtomicPtr::new(Box::into_raw(Box::new(7_u64)));
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                let guard = collector.enter_owned();
                let seen = guard.protect(&place, Acquire);
                // SAFETY: null, or protected.
                let value = unsafe { seen.as_ref() }.copied();
                assert!(value.is_none_or(|value| value == 7), "{value:?}");
            });
            start.wait();
            let old = place.swap(ptr::null_mut(), AcqRel);
            let poison = |value: *mut u64, collector: &Collector| {
                // SAFETY: reclaimed once.
                unsafe { value.write(0) };
                // SAFETY: from a box.
                unsafe { reclaim::boxed(value, collector) };
            };
            // SAFETY: from a box, and no thread can load it any more.
            unsafe { collector.retire(old, poison) };
        });
    }
}

#[test]
fn refresh_lets_go_also_where_a_reclaimer_panics() {
    let collector = Collector::new().batch_size(2);
    let drops = Arc::new(AtomicUsize::new(0));
    let mut guard = collector.enter();
    let panics = |value: *mut Counted, collector: &Collector| {
        // SAFETY: from a box.
        unsafe { reclaim::boxed(value, collector) };
        panic!("on purpose");
    };
    retire(&guard, Counted(Arc::clone(&drops)));
    // SAFETY: from a box, and no thread knows of it.
    unsafe { guard.defer_retire(boxed(&drops), panics) };
    assert!(catch_unwind(AssertUnwindSafe(|| guard.refresh())).is_err());
    assert_eq!(drops.load(SeqCst), 1, "the other one waits");
    guard.refresh();
    assert_eq!(drops.load(SeqCst), 2);
    let inner = collector.enter();
    retire(&guard, Counted(Arc::clone(&drops)));
    guard.flush();
    guard.refresh();
    assert_eq!(drops.load(SeqCst), 2, "another guard lives");
    drop((inner, guard));
    assert_eq!(drops.load(SeqCst), 3);
}

#[test]
fn orderings_are_what_an_atomic_takes() {
    let collector = Collector::new();
    let guard = collector.enter();
    let place = AtomicPtr::new(ptr::null_mut::<u8>());
    let orders: [Ordering; 5] = [Relaxed, Acquire, Release, AcqRel, SeqCst];
    for order in orders {
        assert!(guard.protect(&place, order).is_null());
        assert!(guard.swap(&place, ptr::null_mut(), order).is_null());
        let exchange =
            guard.compare_exchange(&place, ptr::null_mut(), ptr::null_mut(), order, order);
        assert!(exchange.is_ok());
    }
}

#[test]
fn ids_of_threads_are_small_and_used_again() {
    let collector = Collector::new();
    let mine = collector.enter().thread_id();
    let ids: Vec<_> = (0..20)
        .map(|_| thread::scope(|s| s.spawn(|| collector.enter_owned().thread_id()).join().unwrap()))
        .collect();
    assert!(ids.iter().all(|id| *id != mine && *id < 20), "{ids:?} beside {mine}");
}

/// A fault: a thread whose own number had been given back had that of another thread.
#[test]
fn ids_of_threads_that_end_were_those_of_others() {
    struct Last(Arc<Collector>, Arc<Barrier>, Arc<Mutex<Vec<usize>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let id = self.0.enter().thread_id();
            self.2.lock().unwrap().push(id);
            self.1.wait(); // both are there
        }
    }
    thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });
    let (collector, both) = (Arc::new(Collector::new()), Arc::new(Barrier::new(2)));
    let ids: Arc<Mutex<Vec<usize>>> = Arc::default();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let last = Last(Arc::clone(&collector), Arc::clone(&both), Arc::clone(&ids));
            thread::spawn(move || {
                let collector = Arc::clone(&last.0);
                // Before the thread has a number: so it is dropped after that.
                LAST.set(Some(last));
                collector.enter().thread_id()
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| _ = thread.join().unwrap());
    let ids = ids.lock().unwrap();
    assert_ne!(ids[0], ids[1]);
}
