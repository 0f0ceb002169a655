//! `quiescence::sync`: counters and references that keep a word for each CPU, and all of the tools
//! together; the lock alone is in `local_global.rs`.
//!
//! Threads are moved from CPU to CPU all the time. The whole file is run again in processes that
//! count portably. `cargo xtask mutants` runs tests of it where a step is missing.
#![cfg(target_os = "linux")]

use crate::common::*;
use std::collections::BTreeSet;

use quiescence::sync::{
    BigRef, BigRefHandle, Counter, ExactCounter, LimitCounter, LocalGlobalLock, PerCpu,
};
use quiescence::{ArcCell, cell::ArcCellOption};

use shuffle::{cpus, random, shuffled, unregister_rseq};

const THREADS: usize = 6;

/// Rounds of each of them.
const MANY: usize = if cfg!(miri) { 60 } else { 20_000 };

/// Steps of each that refers to what is released.
const STEPS: u64 = if cfg!(miri) { 20 } else { 200 };

/// Calls `look` on another thread all the time while `work` runs, and once after that.
fn watched(look: impl Fn() + Sync, work: impl FnOnce()) {
    beside(1, |_| &look, work);
    look();
}

#[test]
fn a_counter_that_goes_up_and_down_is_exact_in_the_end() {
    let counter = Counter::new();
    shuffled(THREADS, MANY, |thread, round| {
        counter.add(if round % 2 == 0 { 1 } else { -1 });
        if round == 0 {
            counter.add(-7 * thread as i64);
        }
    });
    assert_eq!(counter.sum(), -7 * (0..THREADS as i64).sum::<i64>());
}

/// What is incremented before it is decremented is never below zero, nor above what can be in
/// between: at no moment, and so in no sum.
#[test]
fn an_exact_sum_is_the_value_of_one_moment() {
    let counter = ExactCounter::new();
    let look = || {
        let sum = counter.sum();
        assert!((0..=THREADS as i64).contains(&sum), "{sum}");
    };
    watched(look, || {
        shuffled(THREADS, 2 * MANY, |thread, round| {
            counter.add(1);
            if (thread + round) % 64 == 0 {
                thread::yield_now(); // and continues elsewhere
            }
            counter.add(-1);
        });
    });
    assert_eq!(counter.sum(), 0);
    counter.add(1);
    assert_eq!(counter.sum(), 1);
}

#[test]
fn an_exact_sum_has_what_threads_hand_over() {
    let counter = ExactCounter::new();
    let (sender, receiver) = mpsc::channel::<i64>();
    let look = || {
        let sum = counter.sum();
        assert!(sum >= 0, "{sum}: what was sent before it was received");
    };
    watched(look, || {
        thread::scope(|scope| {
            let counter = &counter;
            scope.spawn(move || receiver.iter().for_each(|amount| counter.add(-amount)));
            scope.spawn(move || {
                for round in 0..MANY {
                    let amount = random(0, round) as i64;
                    counter.add(amount);
                    sender.send(amount).expect("somebody receives");
                }
            });
        });
    });
    assert_eq!(counter.sum(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "rseq(2)")]
fn threads_without_rseq_count_beside_those_with() {
    let (fuzzy, exact) = (Counter::new(), ExactCounter::new());
    let (limited, lock) = (LimitCounter::new(u64::MAX), LocalGlobalLock::new(0));
    let shared = BigRef::new(0);
    shuffled(4, 5_000, |thread, round| {
        if thread == 0 && round == 0 {
            unregister_rseq(); // which fails where no thread has it
        }
        fuzzy.add(3);
        exact.add(2);
        assert!(limited.try_add(4));
        limited.sub(3);
        drop(shared.get());
        match round % 100 {
            0 => *lock.write() += 1,
            1 => assert!(exact.sum() > 0),
            _ => assert!(*lock.read() >= 0),
        }
    });
    assert_eq!((fuzzy.sum(), exact.sum(), limited.value()), (60_000, 40_000, 20_000));
    assert_eq!(lock.into_inner(), 200);
    assert!(shared.kill());
}

#[test]
#[cfg_attr(miri, ignore = "signals")]
fn counting_in_a_signal_handler_that_interrupts_counting_is_exact() {
    static FUZZY: Counter = Counter::new();
    static EXACT: ExactCounter = ExactCounter::new();
    static HANDLED: AtomicU64 = AtomicU64::new(0);
    static LOCK: LocalGlobalLock<u64> = LocalGlobalLock::new(7);
    extern "C" fn handle(_: libc::c_int) {
        FUZZY.add(1);
        EXACT.add(2);
        if let Some(guard) = LOCK.try_read() {
            HANDLED.fetch_add(*guard / 7, Relaxed);
        } else {
            HANDLED.fetch_add(1, Relaxed);
        }
    }
    storm::handle(libc::SIGUSR2, handle);
    let (counts, counted) = (storm::Target::default(), AtomicI64::new(0));
    let count = |_| {
        // The first use of all of them, too, is perhaps interrupted.
        counts.is_here(|| {
            FUZZY.add(1);
            EXACT.add(2);
            drop(LOCK.read());
            if counted.fetch_add(1, Relaxed) % 1_000 == 0 {
                *LOCK.write() += 0;
            }
        })
    };
    beside(1, count, || {
        while HANDLED.load(Relaxed) < 2_000 {
            for _ in 0..8 {
                storm::send_many(libc::SIGUSR2, std::slice::from_ref(&counts));
            }
            assert!(EXACT.sum() % 2 == 0);
        }
    });
    let counted = counted.into_inner();
    let all = counted + HANDLED.load(Relaxed) as i64;
    assert_eq!((FUZZY.sum(), EXACT.sum()), (all, 2 * all));
    assert!(LOCK.try_write().is_some(), "all readers have ended");
}

/// Threads that together hold the limit at most are never refused, and those that want more never
/// get it.
fn limits(limit: u64, amount_max: u64) {
    let counter = LimitCounter::new(limit);
    let held = AtomicU64::new(0); // never more than the value
    let refused = AtomicU64::new(0);
    let look = || assert!(counter.value() <= limit);
    watched(look, || {
        shuffled(THREADS, MANY, |thread, round| {
            let amount = random(thread, round) % amount_max + 1;
            if !counter.try_add(amount) {
                refused.fetch_add(1, Relaxed);
                return;
            }
            let sum = held.fetch_add(amount, SeqCst) + amount;
            assert!(sum <= limit, "{sum} of {limit}");
            if round % 128 == 0 {
                thread::yield_now();
            }
            held.fetch_sub(amount, SeqCst);
            counter.sub(amount);
        });
    });
    assert_eq!(counter.value(), 0);
    if amount_max * THREADS as u64 <= limit {
        assert_eq!(refused.into_inner(), 0, "all of them together fit");
    }
    // All of it can be had, wherever the stocks are, and no more.
    let one = limit.div_ceil(1_000);
    let mut sum = 0;
    while counter.try_add(one.min(limit - sum)) && sum < limit {
        sum += one.min(limit - sum);
    }
    assert_eq!((sum, counter.value()), (limit, limit));
    assert!(!counter.try_add(1));
    counter.sub(1);
    assert!(!counter.try_add(2));
    assert!(counter.try_add(1));
}

#[test]
fn limits_of_all_sizes_are_kept() {
    limits(10, 5);
    limits(THREADS as u64 * 3, 3);
    // All of them together reach it.
    limits(THREADS as u64 * 1_000, 1_000);
    limits(THREADS as u64 * 1_000 - 1_500, 1_000);
    limits(u64::MAX / 2, 1 << 20);
}

#[test]
fn room_that_one_thread_gives_back_is_for_all() {
    // One adds, another subtracts: the stocks are on the wrong CPUs again and again.
    let counter = LimitCounter::new(10_000);
    let (sender, receiver) = mpsc::sync_channel::<u64>(64);
    thread::scope(|scope| {
        let counter = &counter;
        scope.spawn(move || receiver.iter().for_each(|amount| counter.sub(amount)));
        for round in 0..2 * MANY {
            let amount = random(1, round) % 8 + 1; // 64 on their way and 2 in hand: far from the limit
            assert!(counter.try_add(amount), "there is room at all times");
            sender.send(amount).expect("somebody receives");
        }
        drop(sender);
    });
    assert_eq!(counter.value(), 0);
}

/// Threads get and put while it is killed: no thread is left with what has been released, and it is
/// released once.
#[test]
fn the_last_reference_releases_once() {
    struct Value<'t> {
        is_released: AtomicBool,
        releases: &'t AtomicUsize,
    }
    impl Drop for Value<'_> {
        fn drop(&mut self) {
            self.is_released.store(true, Relaxed);
            self.releases.fetch_add(1, Relaxed);
        }
    }
    let (releases, kills) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for round in 0..if cfg!(miri) { 2 } else { 300 } {
        let big = BigRef::new(Value { is_released: AtomicBool::new(false), releases: &releases });
        for _ in 0..round % 3 * 64 {
            drop(big.get()); // with words for each CPU, or without
        }
        let begin = Barrier::new(4);
        threads(4, |thread| {
            let mut handles = Vec::new();
            begin.wait();
            for step in 0..STEPS {
                handles.extend(big.try_get());
                if let Some(handle) = handles.last() {
                    handles.push(handle.clone());
                }
                for handle in &handles {
                    assert!(!handle.is_released.load(Relaxed), "released too early");
                }
                handles.truncate((random(thread, round) + step) as usize % 5);
                if step == STEPS / 2 && thread < 2 {
                    kills.fetch_add(usize::from(big.kill()), Relaxed);
                }
            }
        });
        assert_eq!(releases.load(Relaxed), round + 1, "released once, with the last reference");
        assert_eq!(kills.load(Relaxed), round + 1, "one of two kills is the first");
        assert!(big.is_killed() && big.try_get().is_none());
    }
}

#[test]
fn the_release_is_called_with_the_value_by_whoever_is_last() {
    let (sender, receiver) = mpsc::channel();
    let big = BigRef::with_release(vec![1, 2, 3], move |value| {
        sender.send((value, thread::current().id())).expect("somebody receives");
    });
    let handle = big.get();
    assert!(!big.is_killed());
    assert!(big.kill());
    assert!(!big.kill(), "the second does nothing");
    assert!(receiver.try_recv().is_err(), "there is a reference");
    let last = handle.clone();
    drop(handle);
    let other = thread::spawn(move || {
        assert_eq!(last[1], 2);
        drop(last);
        thread::current().id()
    });
    assert_eq!(receiver.recv().expect("it is called"), (vec![1, 2, 3], other.join().unwrap()));
    drop(big);
    assert!(receiver.recv().is_err(), "called once, and dropped");
}

#[test]
fn dropping_a_big_ref_kills_it() {
    let value = Arc::new(());
    let big = BigRef::new(value.clone());
    let handle = big.get();
    drop(big);
    assert_eq!(Arc::strong_count(&value), 2, "the handle is left");
    drop(handle.clone());
    assert_eq!(Arc::strong_count(&value), 2);
    drop(handle);
    assert_eq!(Arc::strong_count(&value), 1);
    drop(BigRef::new(value.clone()));
    assert_eq!(Arc::strong_count(&value), 1, "without any handle at once");
}

#[test]
fn a_release_that_panics_leaves_nothing_behind() {
    let big = BigRef::with_release((), |()| panic!("as intended"));
    panic_of(|| big.kill());
    assert!(big.is_killed());
}

#[test]
fn there_is_one_for_each_cpu() {
    let mut numbers = PerCpu::new(|slot| AtomicUsize::new(slot * 1_000_000));
    assert!(numbers.len() >= cpus().len());
    assert_eq!(numbers.iter().len(), numbers.len());
    shuffled(THREADS, MANY, |_, _| {
        numbers.here().fetch_add(1, Relaxed);
    });
    let counted = |(slot, number): (usize, &AtomicUsize)| number.load(Relaxed) - slot * 1_000_000;
    assert_eq!(numbers.iter().enumerate().map(counted).sum::<usize>(), THREADS * MANY);
    let lines: BTreeSet<_> =
        numbers.iter().map(|number| (&raw const *number).addr() / 128).collect();
    assert_eq!(lines.len(), numbers.len(), "lines of their own");
    numbers.iter_mut().for_each(|number| *number.get_mut() = 7);
    assert!(numbers.iter().all(|number| number.load(Relaxed) == 7));
    assert!(numbers.into_iter().all(|number| number.into_inner() == 7));
}

#[test]
fn each_cpu_has_its_own_by_number() {
    let numbers = PerCpu::new(|cpu| cpu * 3);
    let len = numbers.len();
    for cpu in cpus() {
        shuffle::move_to(&[cpu], 0);
        assert_eq!(numbers.get(cpu), Some(numbers.here()));
        assert_eq!(*numbers.here(), cpu * 3);
    }
    assert_eq!((numbers.get(len), numbers.get(usize::MAX)), (None, None));
    assert!(numbers.iter().rev().copied().eq((0..len).rev().map(|cpu| cpu * 3)));
    let mut rest = numbers.into_iter();
    assert_eq!((rest.len(), rest.next_back()), (len, Some((len - 1) * 3)));
    assert_eq!(rest.len(), len - 1);
}

#[test]
fn what_is_printed_is_what_users_know() {
    let (fuzzy, exact, limited) = (Counter::new(), ExactCounter::new(), LimitCounter::new(10_000));
    // Beyond the growth, so that there is something to sum, and to fold.
    for _ in 0..200 {
        fuzzy.add(-2);
        exact.add(1);
        assert!(limited.try_add(1));
    }
    assert_eq!(format!("{fuzzy:?}"), "Counter { sum: -400 }");
    assert_eq!(format!("{exact:?}"), "ExactCounter { .. }");
    assert_eq!(format!("{limited:?}"), "LimitCounter { limit: 10000, .. }");
}

#[test]
fn they_are_as_small_as_they_say() {
    assert_eq!(size_of::<Counter>(), 24);
    assert!((64..=128).contains(&size_of::<LocalGlobalLock<()>>()), "about a hundred");
    assert_eq!(size_of::<BigRefHandle<[u64; 9]>>(), size_of::<usize>());
    assert_eq!(size_of::<ArcCell<[u64; 9]>>(), 2 * size_of::<usize>(), "with the scale");
    assert_eq!(size_of::<ArcCellOption<[u64; 9]>>(), 2 * size_of::<usize>());
}

#[test]
fn guards_and_handles_go_where_they_may() {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    let (lock, big) = (LocalGlobalLock::new(1), BigRef::new(2));
    is_send_and_sync(&big);
    is_send_and_sync(&big.get());
    is_send_and_sync(&lock);
    is_send_and_sync(&lock.read());
    is_send_and_sync(&lock.write());
}

#[test]
fn all_of_it_in_other_processes() {
    for [(name, value)] in PORTABLE {
        again_in_a_process_with(&["tools", "local_global"], name, value);
    }
}
