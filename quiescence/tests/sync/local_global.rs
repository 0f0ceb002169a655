//! `quiescence::sync::LocalGlobalLock`: writers are alone, turns are fair, guards end on any
//! thread.
//!
//! Threads are moved from CPU to CPU all the time. `tools.rs` runs the whole file again in
//! processes that count portably. `cargo xtask mutants` runs tests of it where a step is missing.
#![cfg(target_os = "linux")]

use crate::common::*;
use quiescence::sync::LocalGlobalLock;

use shuffle::{cpus, move_to, random, shuffled};

/// Two words that a writer makes differ for a while.
#[derive(Default)]
struct Pair(AtomicU64, AtomicU64);

fn exclusion(threads: usize, rounds: usize) {
    let lock = LocalGlobalLock::new(Pair::default());
    let writers = AtomicUsize::new(0);
    let written = AtomicU64::new(0);
    shuffled(threads, rounds, |thread, round| {
        if random(thread, round).is_multiple_of(32) {
            let pair = lock.write();
            assert_eq!(writers.fetch_add(1, Relaxed), 0, "two writers");
            // Loads and stores, so that what another writes in between is lost.
            pair.0.store(pair.0.load(Relaxed) + 1, Relaxed);
            if round % 3 == 0 {
                thread::yield_now();
            }
            pair.1.store(pair.1.load(Relaxed) + 1, Relaxed);
            writers.fetch_sub(1, Relaxed);
            written.fetch_add(1, Relaxed);
        } else {
            let pair = lock.read();
            let second = pair.1.load(Relaxed);
            let first = pair.0.load(Relaxed);
            assert_eq!((first, writers.load(Relaxed)), (second, 0), "beside a writer");
            if round % 64 == 0 {
                thread::yield_now();
                assert_eq!(pair.0.load(Relaxed), first, "beside a writer");
            }
        }
    });
    let pair = lock.into_inner();
    let written = written.into_inner();
    assert_eq!((pair.0.into_inner(), pair.1.into_inner()), (written, written));
}

#[test]
fn writers_are_alone() {
    exclusion(6, if cfg!(miri) { 60 } else { 20_000 });
    exclusion(2, if cfg!(miri) { 60 } else { 20_000 });
}

#[test]
fn guards_end_on_other_threads() {
    const ROUNDS: u64 = if cfg!(miri) { 30 } else { 5_000 };
    let lock = Arc::new(LocalGlobalLock::new(0_u64));
    let cpus = cpus();
    thread::scope(|scope| {
        let (readers, read) = mpsc::sync_channel(4);
        let (writers, write) = mpsc::sync_channel(1);
        let lock = &*lock;
        scope.spawn({
            let cpus = cpus.clone();
            move || {
                move_to(&cpus, 0);
                for round in 0..ROUNDS {
                    if round % 50 == 0 {
                        let mut guard = lock.write();
                        *guard += 1;
                        writers.send(guard).expect("somebody ends it");
                    }
                    readers.send(lock.read()).expect("somebody ends it");
                }
            }
        });
        scope.spawn(move || {
            for guard in write {
                drop(guard); // and with it lets the reader after it in
            }
        });
        scope.spawn(move || {
            move_to(&cpus, 1);
            let mut last = 0;
            for guard in read {
                assert!(*guard >= last);
                last = *guard;
            }
        });
    });
    assert_eq!(*lock.read(), ROUNDS.div_ceil(50));
    assert!(lock.try_write().is_some());
}

#[test]
fn trying_says_no_where_waiting_would_begin() {
    let mut lock = LocalGlobalLock::new(String::from("a"));
    for _ in 0..100 {
        let reader = lock.read();
        assert!(lock.try_write().is_none());
        assert_eq!(lock.try_read().as_deref(), Some(&*reader));
        drop(reader);
        let mut writer = lock.try_write().expect("nobody is there");
        writer.push('b');
        assert!(lock.try_read().is_none());
        assert!(lock.try_write().is_none());
        assert_eq!(format!("{lock:?}"), "LocalGlobalLock { value: <locked> }");
        drop(writer);
        assert!(lock.try_read().is_some());
    }
    lock.get_mut().truncate(2);
    assert_eq!(format!("{lock:?}"), "LocalGlobalLock { value: \"ab\" }");
    assert_eq!(lock.into_inner(), "ab");
}

#[test]
fn a_writer_that_waits_is_not_passed() {
    let lock = LocalGlobalLock::new(0);
    for _ in 0..50 {
        let reader = lock.read();
        thread::scope(|scope| {
            scope.spawn(|| *lock.write() += 1);
            // From some time on no thread gets in any more, though only a reader is there. (A
            // writer that begins stops those first whose CPU has no word.)
            until(|| (0..100).all(|_| lock.try_read().is_none()));
            drop(reader);
        });
    }
    assert_eq!(*lock.read(), 50);
}
