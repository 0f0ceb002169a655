//! Threads that retire one object and end: what they leave behind costs little more than what it
//! is.

#![cfg_attr(not(target_os = "linux"), allow(unused_imports))]

use crate::common::*;
use quiescence::collections::{HashMap, IdMap};

/// A thread that does so much and ends.
fn short(f: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(64 << 10).spawn(f).unwrap().join().unwrap();
}

/// Each kept a page and a queue of its own: 4.8 KB, and twice that with a closure.
#[test]
#[cfg(target_os = "linux")]
fn a_short_thread_costs_no_page() {
    const THREADS: u64 = 3_000;
    in_its_own_process!();
    let domain = domain_with_limit(1 << 20, 1 << 30);
    let run = |threads: u64| {
        for number in 0..threads {
            let domain = domain.clone();
            short(move || {
                domain.retire(Box::new(number)).unwrap();
                domain.call(|| ()).unwrap();
            });
        }
    };
    let (each, waiting) = beside_a_section(&domain, |leave| {
        run(300);
        let before = memory::written() as u64;
        run(THREADS);
        let each = (memory::written() as u64).saturating_sub(before) / THREADS;
        let waiting = domain.statistics().callbacks_waiting();
        leave();
        (each, waiting)
    });
    // In debug builds each object that waits is in a table, with its place.
    let most = if cfg!(debug_assertions) { 500 } else { 200 };
    assert!(each <= most, "{each} bytes a thread, for an object and a closure");
    assert_eq!(waiting, 2 * (300 + THREADS));
    assert_all_has_run(&domain);
}

/// What moves to the shared queues is neither lost nor run twice, nor out of its thread's order;
/// and is counted once.
#[test]
fn what_short_threads_leave_runs_in_their_order() {
    const THREADS: u64 = rounds(50, 6);
    let domain = Domain::new();
    let seen: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
    beside_a_section(&domain, |_| {
        for thread in 0..THREADS {
            let (domain, seen) = (domain.clone(), Arc::clone(&seen));
            short(move || {
                for number in 0..3 {
                    let seen = Arc::clone(&seen);
                    domain.call(move || seen.lock().unwrap().push((thread, number))).unwrap();
                }
            });
        }
    });
    domain.barrier();
    let seen = seen.lock().unwrap();
    for thread in 0..THREADS {
        let own: Vec<u64> = seen.iter().filter(|one| one.0 == thread).map(|one| one.1).collect();
        assert_eq!(own, [0, 1, 2], "thread {thread}");
    }
    let statistics = domain.statistics();
    assert_eq!((statistics.callbacks_queued, statistics.callbacks_run), (3 * THREADS, 3 * THREADS));
    assert_eq!(statistics.bytes_waiting, 0);
}

/// Threads may come and go while others wait for what they left.
#[test]
fn barriers_beside_short_threads_miss_nothing() {
    let domain = Domain::new();
    let leave_and_wait = |_| {
        for _ in 0..rounds(300, 3) {
            let done = Arc::new(AtomicUsize::new(0));
            let (count, domain_of_it) = (counting(&done), domain.clone());
            short(move || domain_of_it.call(count).unwrap());
            assert_eq!(settled(&domain, &done), 1, "the barrier is over");
        }
    };
    let read = |_| || drop(domain.read());
    beside(1, read, || threads(2, leave_and_wait));
}

/// What dead threads left counts as anything else: at the limit there is no room for more.
#[test]
fn what_short_threads_leave_is_held_against_the_limit() {
    const LIMIT: u64 = rounds(64, 4);
    const THREADS: u64 = rounds(100, 7);
    let domain = domain_with_limit(LIMIT, 1 << 20);
    let refused = Arc::new(AtomicU64::new(0));
    beside_a_section(&domain, |_| {
        for _ in 0..THREADS {
            let (domain, refused) = (domain.clone(), Arc::clone(&refused));
            short(move || {
                let is_refused = domain.try_call(|| ()).is_err();
                refused.fetch_add(u64::from(is_refused), SeqCst);
            });
        }
    });
    assert_eq!(refused.load(SeqCst), THREADS - LIMIT);
    domain.barrier();
    domain.try_call(|| ()).expect("there is room again");
}

/// A closure that captures nothing holds two words of the library's, and a large value a box.
#[test]
fn what_the_library_holds_is_held_against_the_limit() {
    const CLOSURES: usize = rounds(1_024, 128);
    let domain = domain_with_limit(1 << 20, 16 * CLOSURES as u64);
    let (closures, boxed) = beside_a_section(&domain, |leave| {
        let guard = domain.read();
        let closures = (0..2 * CLOSURES).take_while(|_| domain.try_call(|| ()).is_ok()).count();
        leave();
        drop(guard);
        domain.barrier();
        let guard = domain.read();
        let large = [0_u8; 1_000];
        domain.retire_sized(large, 0).unwrap();
        let boxed = domain.statistics().bytes_waiting;
        drop(guard);
        (closures, boxed)
    });
    domain.barrier();
    assert_eq!(closures, CLOSURES, "of 16 bytes each");
    assert!((1_000..1_100).contains(&boxed), "{boxed} bytes");
    assert_eq!(domain.statistics().bytes_waiting, 0);
}

/// Updates that find room before they take something out were refused where the thread's own queue
/// was gone, whatever room there was.
#[test]
fn try_forms_found_no_room_in_a_thread_locals_destructor() {
    let srcu = Srcu::new();
    let value = Rcu::new_in(0, srcu.domain());
    let (map, ids) = (HashMap::new_in(srcu.domain()), IdMap::new_in(srcu.domain()));
    // (The key goes on to the next box: less is retired than there is room for.)
    map.insert(String::from("key"), String::from("a"));
    let id = ids.insert(String::from("a"));
    let (sender, done) = mpsc::channel();
    let inside = srcu.domain();
    let thread = thread::spawn(move || {
        // Made before the library's own thread-locals, and so destroyed after them.
        at_thread_end(move || {
            let replaced = map.try_update("key", |old| format!("{old} {old}"));
            let longer = ids.try_replace(id, "b".repeat(100)).is_ok();
            let both = [map.try_remove("none"), ids.try_remove(id)];
            let stored = value.try_store(1).is_ok();
            sender.send((replaced, longer, both, stored)).unwrap();
        });
        inside.retire(Box::new(1)).unwrap();
    });
    thread.join().unwrap();
    let updated = done.recv().unwrap();
    assert_eq!(updated, (Ok(true), true, [Ok(false), Ok(true)], true));
    srcu.barrier();
    let domain = srcu.domain();
    assert_eq!(domain.statistics().bytes_waiting, 0);
    // All room was given back: what is too large for the limit finds room only where there is all.
    set_limit(&domain, 1, 1);
    assert!(domain.try_retire(Box::new(1)).is_ok());
}
