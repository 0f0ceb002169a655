//! Callback queues: order, grace periods, barriers, the limit, runners that come and go, forks.

#![cfg(target_os = "linux")]

use crate::common::*;
use std::thread::JoinHandle;

use quiescence::callback_queue::{self, CallbackQueue, Left, Wakes};

use crate::heads::{boxed, push, run};

fn spawn(callback_queue: &Arc<CallbackQueue>, idle_after: Option<Duration>) -> JoinHandle<Left> {
    let callback_queue = Arc::clone(callback_queue);
    thread::spawn(move || callback_queue.attend(idle_after).unwrap())
}

/// A callback queue with a runner, until `f` has returned.
fn attended<R>(domain: &Domain, wakes: Wakes, f: impl FnOnce(&Arc<CallbackQueue>) -> R) -> R {
    let callback_queue = Arc::new(CallbackQueue::new(domain, wakes));
    let runner = spawn(&callback_queue, None);
    let result = f(&callback_queue);
    callback_queue.stop();
    assert_eq!(runner.join().unwrap(), Left::Stopped);
    result
}

/// Each thread's heads in order, all of them before the barrier returns.
#[test]
fn everything_runs_in_order_before_a_barrier_returns() {
    const EACH: u64 = rounds(2_000, 20);
    let domain = Domain::new();
    for wakes in [Wakes::Runner, Wakes::Never] {
        attended(&domain, wakes, |callback_queue| {
            let next: Arc<[AtomicU64; 3]> = Arc::default();
            threads(3, |thread| {
                for number in 0..EACH {
                    let next = Arc::clone(&next);
                    _ = push(callback_queue, move || {
                        assert_eq!(next[thread].fetch_add(1, SeqCst), number);
                    });
                }
            });
            domain.barrier();
            assert_eq!(next.each_ref().map(|count| count.load(SeqCst)), [EACH; 3]);
            assert!(callback_queue.is_empty());
            assert_nothing_waits(&domain);
        });
    }
    assert_eq!(domain.statistics().callbacks_run, 2 * 3 * EACH);
}

/// With what was pushed in it: beside a runner that has no patience, and one that was there before.
#[test]
fn heads_wait_for_sections() {
    let domain = Domain::new();
    for idle_after in [Some(Duration::ZERO), None] {
        let callback_queue = Arc::new(CallbackQueue::new(&domain, Wakes::Runner));
        let ran = Arc::new(AtomicUsize::new(0));
        let start = || spawn(&callback_queue, idle_after);
        let was_there = idle_after.is_none().then(start);
        until(|| callback_queue.is_attended() == was_there.is_some());
        let runner = beside_a_section(&domain, |leave| {
            let sleeps = domain.statistics().sleeps;
            _ = push(&callback_queue, counting(&ran));
            let runner = was_there.unwrap_or_else(start);
            let early = || (ran.load(SeqCst), runner.is_finished());
            until(|| domain.statistics().sleeps != sleeps || early() != (0, false));
            let early = early();
            leave();
            assert_eq!(early, (0, false), "run, or given up, beside a section");
            runner
        });
        if idle_after.is_none() {
            domain.barrier();
            callback_queue.stop();
        }
        assert_eq!(runner.join().unwrap() == Left::Idle, idle_after.is_some());
        assert_eq!(ran.load(SeqCst), 1);
    }
}

/// With no barrier, and no further push. It waits for no company, so that each push finds it
/// asleep.
#[test]
fn a_runner_that_sleeps_is_woken() {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.lazy = Duration::ZERO);
    attended(&domain, Wakes::Runner, |callback_queue| {
        for _ in 0..50 {
            let (ran, has_run) = mpsc::channel();
            _ = push(callback_queue, move || {
                ran.send(if cfg!(miri) { 0 } else { thread_id() }).unwrap();
            });
            let runner = has_run.recv().unwrap();
            until(|| cfg!(miri) || sleeps_or_is_gone(runner));
        }
    });
}

/// A barrier runs what no thread attends to. (What one runner has left its successor finds.)
#[test]
fn a_barrier_attends_where_nobody_does() {
    let domain = Domain::new();
    let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
    let ran = Arc::new(AtomicUsize::new(0));
    let add = |number| {
        let ran = Arc::clone(&ran);
        push(&callback_queue, move || assert_eq!(ran.fetch_add(1, SeqCst), number))
    };
    assert!(add(0).unattended, "the first is told");
    assert!(!add(1).unattended, "and the others are not");
    assert_eq!(settled(&domain, &ran), 2);
    assert!(add(2).unattended, "the barrier has left");
    callback_queue.neglect().unwrap();
    assert!(add(3).unattended, "told again");
    callback_queue.stop();
    assert_eq!(callback_queue.attend(None).unwrap(), Left::Stopped);
    callback_queue.restart();
    assert!(!callback_queue.is_empty() && add(4).unattended);
    assert_eq!(callback_queue.attend(Some(Duration::ZERO)).unwrap(), Left::Idle);
    assert_eq!(ran.load(SeqCst), 5);
    assert_nothing_waits(&domain);
}

/// A barrier leaves the callback queue to a runner that is to come.
#[test]
fn a_barrier_waits_for_a_runner_that_is_expected() {
    let domain = Domain::new();
    let callback_queue = Arc::new(CallbackQueue::new(&domain, Wakes::Runner));
    let (on, was_on) = mpsc::channel();
    assert!(push(&callback_queue, move || on.send(thread::current().id()).unwrap()).unattended);
    callback_queue.expect();
    thread::scope(|scope| {
        scope.spawn(|| domain.barrier());
        let runner = spawn(&callback_queue, None);
        assert_eq!(was_on.recv().unwrap(), runner.thread().id());
        callback_queue.stop();
        runner.join().unwrap();
    });
}

#[test]
fn one_runner_at_a_time() {
    let domain = Domain::new();
    attended(&domain, Wakes::Runner, |callback_queue| {
        until(|| callback_queue.is_attended());
        assert!(!callback_queue.is_attended_here());
        assert_eq!(callback_queue.attend(None).unwrap(), Left::Taken);
    });
}

#[test]
fn a_callback_queue_is_handed_over_in_order() {
    let domain = Domain::new();
    let (from, to) =
        (CallbackQueue::new(&domain, Wakes::Runner), CallbackQueue::new(&domain, Wakes::Runner));
    let ran = Arc::new(Mutex::new(Vec::new()));
    let add = |callback_queue: &CallbackQueue, number: u64| {
        let ran = Arc::clone(&ran);
        push(callback_queue, move || ran.lock().unwrap().push(number))
    };
    _ = [add(&to, 0), add(&from, 1)];
    const MANY: u64 = rounds(1_000, 30);
    for number in 2..MANY {
        _ = add(&from, number);
    }
    assert!(!from.hand_over(&to).unwrap().unattended, "it was told before");
    drop(from);
    let statistics = domain.statistics();
    assert_eq!((statistics.callbacks_queued, statistics.callbacks_run), (MANY, 0));
    domain.barrier();
    assert!(ran.lock().unwrap().iter().copied().eq(0..MANY));
    assert_nothing_waits(&domain);
}

/// A barrier beside a runner that is asked to stop, and a callback queue that is handed over.
#[test]
fn barriers_beside_callback_queues_that_end() {
    let domain = Domain::new();
    let stays = CallbackQueue::new(&domain, Wakes::Runner);
    for _ in 0..rounds(100, 4) {
        let callback_queue = Arc::new(CallbackQueue::new(&domain, Wakes::Runner));
        let runner = spawn(&callback_queue, None);
        let ran = Arc::new(AtomicUsize::new(0));
        _ = push(&callback_queue, counting(&ran));
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(settled(&domain, &ran), 1);
            });
            callback_queue.stop();
            runner.join().unwrap();
            let handed = callback_queue.hand_over(&stays).unwrap();
            assert!(!handed.crowded);
        });
    }
    assert_all_has_run(&domain);
}

/// A callback queue that ends leaves what it has to the worker. But for the first time a barrier
/// comes in the midst.
#[test]
fn a_callback_queue_that_ends_loses_nothing() {
    const HEADS: usize = rounds(30_000, 20);
    let domain = Domain::new();
    for round in 0..=5 {
        let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
        let ran = Arc::new(AtomicUsize::new(0));
        let ended = AtomicBool::new(false);
        let queued = domain.statistics().callbacks_queued;
        for number in 0..HEADS {
            let ran = Arc::clone(&ran);
            _ = push(&callback_queue, move || assert_eq!(ran.fetch_add(1, SeqCst), number));
        }
        let barrier = || {
            // What is on its way is counted neither in the callback queue nor in a queue. What
            // threads have pushed and not counted is less than that.
            let left = || domain.statistics().callbacks_queued <= queued + HEADS as u64 / 2;
            until(|| left() || ended.load(SeqCst));
            assert_eq!(settled(&domain, &ran), HEADS);
        };
        thread::scope(|scope| {
            if round != 0 {
                scope.spawn(barrier);
            }
            drop(callback_queue);
            ended.store(true, SeqCst);
        });
        domain.barrier(); // for what the other one has itself sent
        assert_nothing_waits(&domain);
        assert_eq!(ran.load(SeqCst), HEADS);
        assert!(round != 0 || domain.statistics().callbacks_run == HEADS as u64);
    }
}

/// A barrier that attends itself ends, whatever is pushed meanwhile; and who pushes is notified
/// that no thread attends.
#[test]
fn a_barrier_that_attends_ends() {
    const MOST: usize = rounds(100, 10);
    let domain = Domain::new();
    let callback_queue = Arc::new(CallbackQueue::new(&domain, Wakes::Runner));
    let ran = Arc::new(AtomicUsize::new(0));
    let (count, again) = (Arc::clone(&ran), Arc::downgrade(&callback_queue));
    let head = boxed(move |head| {
        if count.fetch_add(1, SeqCst) + 1 == MOST {
            return true;
        }
        // SAFETY: a box; its function has been called, and does not use it after this.
        let pushed = unsafe { again.upgrade().unwrap().push(head, run) }.unwrap();
        assert!(pushed.unattended, "nobody attends once the barrier has returned");
        false
    });
    // SAFETY: as in `push`.
    assert!(unsafe { callback_queue.push(head, run) }.unwrap().unattended);
    for barriers in 1..=MOST {
        assert_eq!(settled(&domain, &ran), barriers, "run though the barrier need not wait for it");
    }
    assert_nothing_waits(&domain);
}

/// A head that its function pushes again, to its own callback queue: it waits for one grace period
/// each time.
#[test]
fn a_head_is_pushed_again_by_its_function() {
    let domain = Domain::new();
    attended(&domain, Wakes::Runner, |callback_queue| {
        let (done, is_done) = mpsc::channel();
        let (mut left, again) = (20, Arc::downgrade(callback_queue));
        let head = boxed(move |head| {
            assert!(callback_queue::in_callback());
            left -= 1;
            if left == 0 {
                done.send(()).unwrap();
                return true;
            }
            let callback_queue = again.upgrade().unwrap();
            // SAFETY: a box; its function has been called, and does not use it after this.
            assert!(!unsafe { callback_queue.push(head, run) }.unwrap().unattended);
            false
        });
        // SAFETY: as in `push`.
        assert!(!unsafe { callback_queue.push(head, run) }.unwrap().crowded);
        is_done.recv().unwrap();
        assert!(domain.statistics().grace_periods >= 20);
    });
}

/// What is over the limit is never refused; a thread that may waits for room, and only so long.
#[test]
#[cfg_attr(miri, ignore = "naps by the tick: too slow")]
fn the_limit_slows_down_and_refuses_nothing() {
    let domain = domain_with_limit(100, 1 << 30);
    let callback_queue = Arc::new(CallbackQueue::new(&domain, Wakes::Runner));
    let ran = Arc::new(AtomicUsize::new(0));
    let add = || push(&callback_queue, counting(&ran));
    let crowded: Vec<bool> = (0..103).map(|_| add().crowded).collect();
    assert_eq!(crowded.iter().position(|crowded| *crowded), Some(100), "as many as the limit says");
    assert!(crowded[100..].iter().all(|crowded| *crowded));
    assert_eq!(domain.statistics().bytes_waiting, 103 * 256);
    let guard = domain.read();
    callback_queue::wait_for_room(&domain); // nothing may be waited for in a section
    drop(guard);
    assert_eq!((domain.statistics().limit_waits, domain.statistics().limit_refusals), (0, 1));
    callback_queue::wait_for_room(&domain); // no thread makes room: for a tick
    assert_eq!(domain.statistics().limit_waits, 1);
    let runner = spawn(&callback_queue, None);
    while add().crowded {
        callback_queue::wait_for_room(&domain);
    }
    assert_all_has_run(&domain);
    let quiet = CallbackQueue::new(&domain, Wakes::Never);
    let count = (0..200).filter(|_| push(&quiet, || ()).crowded).count();
    assert_eq!(count, 0, "threads of a quiet callback queue never wait");
    drop(quiet);
    callback_queue.stop();
    runner.join().unwrap();
    drop(callback_queue);
    domain.barrier();
    // All that was charged is free again.
    let other = CallbackQueue::new(&domain, Wakes::Runner);
    let room = (0..100).filter(|_| !push(&other, || ()).crowded).count();
    assert_eq!(room, 100);
    domain.barrier();
}

/// A limit of bytes: a head counts for 256.
#[test]
fn heads_count_for_bytes() {
    let domain = domain_with_limit(1 << 20, 10 * 256);
    let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
    let crowded: Vec<bool> = (0..12).map(|_| push(&callback_queue, || ()).crowded).collect();
    assert_eq!(crowded.iter().position(|crowded| *crowded), Some(10));
    domain.barrier();
}

#[test]
fn a_head_that_is_queued_twice_is_named() {
    let domain = Domain::new();
    let callback_queue = CallbackQueue::new(&domain, Wakes::Runner);
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let first = boxed(move |_| counted.fetch_add(1, SeqCst) == 0);
    // SAFETY: the second push is refused, which is what is tested; else as in `push`.
    let push_first = || unsafe { callback_queue.push(first, run) };
    assert!(push_first().is_ok());
    let error = push_first().unwrap_err();
    assert!(error.to_string().contains(&format!("{first:p}")), "{error}");
    _ = push(&callback_queue, || ());
    if callback_queue::remembers_heads() {
        assert_eq!(push_first().unwrap_err(), error, "wherever it waits");
    }
    assert_eq!(settled(&domain, &ran), 1);
}

/// Callbacks are not begun during a pause; what waits does.
#[test]
fn a_pause_holds_callbacks_up() {
    let domain = Domain::new();
    attended(&domain, Wakes::Runner, |callback_queue| {
        let ran = Arc::new(AtomicUsize::new(0));
        callback_queue.pause();
        let before = domain.statistics().grace_periods;
        _ = push(callback_queue, counting(&ran));
        // until the runner has got that far
        until(|| domain.statistics().grace_periods != before);
        assert_eq!(ran.load(SeqCst), 0);
        callback_queue.resume();
        assert_eq!(settled(&domain, &ran), 1);
    });
}

/// The child has no runner, but what waited, and nothing twice.
#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn a_child_finds_what_waits() {
    let domain = domain_with_limit(1_000, 1 << 30);
    let ran = Arc::new(AtomicUsize::new(0));
    attended(&domain, Wakes::Runner, |callback_queue| {
        let add = || push(callback_queue, counting(&ran));
        for waits_in_the_callback_queue in [false, true] {
            ran.store(0, SeqCst);
            beside_a_section(&domain, |leave| {
                let sleeps = domain.statistics().sleeps;
                (0..10).for_each(|_| assert!(!add().crowded));
                if waits_in_the_callback_queue {
                    // until the runner has taken them
                    until(|| domain.statistics().sleeps != sleeps);
                }
                in_child(|| {
                    assert!(!callback_queue.is_attended() && !callback_queue.is_empty());
                    assert_eq!(settled(&domain, &ran), 10);
                    assert!(add().unattended, "somebody is to attend to it again");
                    assert_eq!(domain.statistics().callbacks_waiting(), 1);
                    let crowded = (0..1_000).filter(|_| add().crowded).count();
                    assert_eq!(crowded, 1, "what is charged is what waits");
                    let runner = spawn(callback_queue, None);
                    assert_eq!(settled(&domain, &ran), 1_011);
                    callback_queue.stop();
                    runner.join().unwrap();
                });
                leave();
            });
            assert_eq!(settled(&domain, &ran), 10);
        }
    });
}

/// Forks beside threads that push and a runner that runs.
#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn forks_beside_pushes() {
    let domain = domain_with_limit(2_000, 1 << 30);
    attended(&domain, Wakes::Runner, |callback_queue| {
        let push_on = |_| {
            || {
                if push(callback_queue, || ()).crowded {
                    callback_queue::wait_for_room(&domain);
                }
            }
        };
        beside(2, push_on, || {
            for _ in 0..30 {
                callback_queue.pause();
                in_child(|| {
                    callback_queue.resume();
                    let ran = Arc::new(AtomicUsize::new(0));
                    _ = push(callback_queue, counting(&ran));
                    assert_eq!(settled(&domain, &ran), 1);
                    assert_nothing_waits(&domain);
                });
                callback_queue.resume();
            }
        });
        assert_all_has_run(&domain);
    });
}
