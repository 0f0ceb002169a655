//! Sections, registration and the end of threads.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::*;
use quiescence::{Guard, tuning::Fences};

#[test]
fn a_section_holds_up_a_grace_period_until_its_outermost_guard_goes() {
    holds_up_until_the_last_guard_goes(&Domain::new(), false);
}

#[test]
fn a_section_that_fences_holds_up_a_grace_period() {
    holds_up_until_the_last_guard_goes(&Domain::builder().fences(Fences::Portable).build(), true);
}

/// This thread asks and another one, in this order or the other one first.
fn holds_up_until_the_last_guard_goes(domain: &Domain, other_first: bool) {
    let outer = domain.read();
    let inner = domain.read();
    let cookie = domain.start_poll();
    let here = || domain.poll(cookie);
    let answers = || {
        let first = if other_first { elsewhere(here) } else { here() };
        [first, here(), elsewhere(here)]
    };
    assert_eq!(answers(), [false; 3]);
    drop(outer); // in any order: the other guard still is a section
    assert_eq!(answers(), [false; 3]);
    drop(inner);
    assert_eq!(answers(), [true; 3]);
}

#[test]
fn a_section_that_begins_later_holds_nothing_up() {
    let domain = Domain::new();
    let early = domain.read();
    let cookie = domain.start_poll();
    assert!(!domain.poll(cookie), "a section of before the request must be waited for");
    beside_a_section(&domain, |_| {
        drop(early);
        domain.wait(cookie);
    });
}

#[test]
fn threads_register_on_first_use_and_unregister_at_exit() {
    let domain = Domain::new();
    assert_eq!(domain.statistics().readers, 0);
    elsewhere(|| {
        (0..2).for_each(|_| drop(domain.read()));
        assert_eq!(domain.statistics().readers, 1);
    });
    assert_eq!(domain.statistics().readers, 0);
}

#[test]
fn the_explicit_handle_shares_the_word_and_unregisters_when_dropped() {
    let domain = Domain::new();
    let reader = domain.reader();
    let second = domain.reader();
    assert_eq!(domain.statistics().readers, 1);
    let guard = reader.read();
    let nested = second.read();
    let cookie = domain.start_poll();
    drop(guard);
    assert!(!domain.poll(cookie));
    drop(nested);
    assert!(domain.poll(cookie));
    drop(reader);
    assert_eq!(domain.statistics().readers, 1);
    drop(second);
    assert_eq!(domain.statistics().readers, 0);
}

/// Also one that a thread-local's destructor drops after the thread has left the library.
#[test]
fn each_qsbr_handle_is_a_reader_until_it_is_dropped() {
    let domain = Domain::new();
    let readers = || domain.statistics().readers;
    elsewhere(|| {
        let late = Rc::new(Cell::new(None));
        let held = Rc::clone(&late);
        at_thread_end(move || drop(held.take()));
        let (first, ordinary, second) = (domain.qsbr(), domain.reader(), domain.qsbr());
        let offline = domain.qsbr().offline();
        drop(domain.read());
        assert_eq!(readers(), 4);
        drop(first);
        assert_eq!(readers(), 3);
        let cookie = domain.start_poll();
        drop(offline);
        assert!(!domain.poll(cookie), "the second one is online still");
        assert_eq!(readers(), 2);
        drop(ordinary); // the thread's own registration stays
        assert_eq!(readers(), 2);
        drop(second);
        assert!(domain.poll(cookie));
        assert_eq!(readers(), 1);
        late.set(Some((domain.qsbr(), domain.qsbr().offline())));
        assert_eq!(readers(), 3);
    });
    assert_eq!(readers(), 0);
    domain.synchronize();
}

#[test]
fn a_thread_that_registers_while_a_grace_period_waits_is_not_kept_waiting() {
    let domain = Domain::new();
    beside_a_sleeper(&domain, || domain.synchronize(), || elsewhere(|| drop(domain.read())));
}

#[test]
fn the_last_holdout_wakes_a_sleeping_updater() {
    let domain = Domain::new();
    let (entered, leave) = (Barrier::new(4), Barrier::new(4));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let guard = domain.read();
                entered.wait();
                leave.wait();
                drop(guard);
            });
        }
        entered.wait();
        let waiter = scope.spawn(|| domain.synchronize());
        until_an_updater_sleeps(&domain);
        assert!(!waiter.is_finished());
        leave.wait();
        waiter.join().unwrap(); // a lost wake-up would hang here
    });
}

/// Reads, while the thread's locals are being destroyed.
fn read_late(domain: &Domain) -> u64 {
    let value = Rcu::new_in(5, domain.clone());
    let (outer, inner) = (domain.read(), domain.read());
    let sum = *value.load(&outer) + *value.load(&inner);
    drop((outer, inner));
    let global = Rcu::new(6);
    let (outer, inner) = (quiescence::read(), quiescence::read());
    let sum = sum + *global.load(&outer) + *global.load(&inner);
    drop((outer, inner));
    // Retiring works as well; nothing of it is lost.
    let run = Arc::new(AtomicUsize::new(0));
    domain.retire(Box::new(Dropped(run.clone()))).unwrap();
    elsewhere(|| domain.barrier());
    assert_eq!(run.load(SeqCst), 1);
    sum
}

/// Both orders: the library's own thread-local is destroyed before ours, or is made only by it.
fn read_in_a_destructor(register_before: bool, register_after: bool) {
    let domain = Domain::new();
    let (sender, receiver) = mpsc::channel();
    let inside = domain.clone();
    elsewhere(move || {
        let register = || drop((inside.read(), quiescence::read()));
        if register_before {
            register();
        }
        let late = inside.clone();
        at_thread_end(move || sender.send(read_late(&late)).unwrap());
        if register_after {
            register();
        }
    });
    assert_eq!(receiver.recv().unwrap(), 22);
    assert_eq!(domain.statistics().readers, 0, "the thread is gone and must not be registered");
    domain.synchronize();
    domain.barrier();
}

#[test]
fn reading_in_the_destructor_of_a_thread_local() {
    read_in_a_destructor(false, false);
    read_in_a_destructor(true, false);
    read_in_a_destructor(false, true);
}

thread_local! {
    static KEPT: RefCell<Option<Guard<'static>>> = const { RefCell::new(None) };
}

#[test]
fn a_guard_that_a_thread_local_keeps_ends_with_the_thread() {
    for register_first in [false, true] {
        elsewhere(|| {
            if register_first {
                drop(quiescence::read());
            }
            KEPT.set(Some(quiescence::read()));
        });
        quiescence::synchronize(); // would hang if the section had not ended
    }
}

#[test]
fn a_panic_ends_the_section() {
    let domain = Domain::new();
    panic_of(|| {
        let _guard = domain.read();
        panic!("inside a section");
    });
    domain.synchronize();
}

#[test]
fn an_online_qsbr_reader_that_does_nothing_holds_up() {
    let domain = Domain::new();
    let mut reader = domain.qsbr();
    let cookie = domain.start_poll();
    assert!(!domain.poll(cookie));
    reader.quiescent_state();
    assert!(domain.poll(cookie));
    let cookie = domain.start_poll();
    assert!(!domain.poll(cookie));
    reader.while_offline(|| assert!(domain.poll(cookie)));
    let cookie = domain.start_poll();
    let offline = reader.offline();
    elsewhere(|| domain.wait(cookie));
    offline.online().synchronize();
}

#[test]
fn a_qsbr_domain_needs_no_membarrier() {
    let domain = Domain::new();
    let ready = Barrier::new(2);
    let read = |_| {
        let mut reader = domain.qsbr();
        ready.wait();
        move || reader.quiescent_state()
    };
    beside(1, read, || {
        ready.wait();
        let before = domain.statistics();
        (0..20).for_each(|_| domain.synchronize());
        let after = domain.statistics();
        assert!(after.grace_periods >= before.grace_periods + 20);
        // Only a driver that went to sleep executes one.
        assert!(after.heavy_fences <= after.sleeps);
    });
    drop(Domain::global().qsbr());
}

#[test]
fn nobody_else_registered_means_no_fence() {
    let domain = Domain::new();
    domain.synchronize();
    drop(domain.read()); // registers this very thread
    domain.synchronize();
    assert_eq!(domain.statistics().heavy_fences, 0);
    assert_eq!(domain.statistics().grace_periods, 2);
}

#[test]
fn one_heavy_fence_a_grace_period() {
    let domain = Domain::new();
    while_held(
        || drop(domain.read()),
        |_| {
            (0..10).for_each(|_| domain.synchronize());
            let statistics = domain.statistics();
            assert_eq!((statistics.grace_periods, statistics.heavy_fences), (10, 10));
        },
    );
}

/// Busy ordinary readers, a nested one and a QSBR one, with updaters that wait, some asleep.
#[test]
fn a_domain_whose_readers_fence_executes_no_membarrier() {
    let domain = Domain::builder().fences(Fences::Portable).build();
    let value = Rcu::new_in(Box::new(7_u64), domain.clone());
    let ready = Barrier::new(4);
    let read = |thread| {
        let reader = (thread == 1).then(|| domain.reader());
        let mut online = (thread == 2).then(|| domain.qsbr());
        ready.wait();
        let (domain, value) = (&domain, &value);
        move || {
            if let Some(reader) = &reader {
                assert_eq!(**value.load(&reader.read()), 7);
            } else if let Some(reader) = &mut online {
                assert_eq!(**value.load(&reader.read()), 7);
                reader.quiescent_state();
            } else {
                let outer = domain.read();
                let inner = domain.read();
                assert_eq!(**value.load(&inner), 7);
                drop(outer);
                assert_eq!(**value.load(&inner), 7);
            }
        }
    };
    beside(3, read, || {
        ready.wait();
        for _ in 0..rounds(40, 3) {
            value.store(Box::new(7));
            domain.synchronize();
        }
    });
    // One that sleeps until a reader leaves.
    beside_a_sleeper(&domain, || domain.synchronize(), || ());
    let statistics = domain.statistics();
    assert!(statistics.sleeps != 0 && statistics.grace_periods != 0);
    assert_eq!(statistics.heavy_fences, 0);
}
