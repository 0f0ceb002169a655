//! `Queue` and `Stack`: order, exact counts of drops, models, and the limit.

use crate::common::*;
use std::collections::VecDeque;

use quiescence::collections::{List, Queue, Stack};

#[test]
fn a_queue_is_first_in_first_out() {
    for seed in 1..=rounds(50, 2) {
        let (queue, mut model, mut numbers) = (Queue::new(), VecDeque::new(), Random(seed));
        for number in 0..rounds(2_000, 100) {
            if numbers.next() % 5 < 3 {
                queue.push(number);
                model.push_back(number);
            } else {
                assert_eq!(queue.pop(), model.pop_front());
            }
            assert_eq!(queue.is_empty(), model.is_empty());
        }
        if seed % 2 == 0 {
            assert!(queue.drain().eq(model));
        } else {
            assert!(queue.into_iter().eq(model));
        }
    }
}

#[test]
fn a_stack_is_last_in_first_out() {
    for seed in 1..=rounds(50, 2) {
        let (stack, mut model, mut numbers) = (Stack::new(), Vec::new(), Random(seed));
        for number in 0..rounds(2_000, 100) {
            match numbers.next() % 64 {
                0 => assert!(stack.pop_all().eq(model.drain(..).rev())),
                1..40 => {
                    stack.push(number);
                    model.push(number);
                }
                _ => assert_eq!(stack.pop(), model.pop()),
            }
            assert_eq!(stack.is_empty(), model.is_empty());
        }
        assert!(stack.into_iter().eq(model.into_iter().rev()));
    }
}

/// Producers and consumers at once. Each value comes out once, and those of one producer in their
/// order for each consumer, if `ordered`.
fn producers_and_consumers(
    ordered: bool,
    push: impl Fn(Counted) + Sync,
    pop: impl Fn() -> Option<Counted> + Sync,
) {
    const PRODUCERS: u64 = 2;
    let each = rounds(20_000, 50);
    let (live, done) = (Arc::default(), AtomicUsize::new(0));
    let taken = threads(2 * PRODUCERS as usize, |thread| {
        let mut taken = Vec::new();
        let producer = thread as u64;
        if producer < PRODUCERS {
            (0..each).for_each(|number| push(Counted::new(number * PRODUCERS + producer, &live)));
            // Release: pairs with the Acquire below: who sees all done finds all that was pushed.
            done.fetch_add(1, Release);
            return taken;
        }
        loop {
            let was_done = done.load(Acquire) as u64 == PRODUCERS;
            match pop() {
                Some(value) => taken.push(value.number),
                None if was_done => return taken,
                None => thread::yield_now(),
            }
        }
    });
    assert_eq!(live.load(Relaxed), 0, "each value is dropped, by who took it");
    for (producer, taken) in (0..PRODUCERS).flat_map(|p| taken.iter().map(move |t| (p, t))) {
        let numbers = taken.iter().filter(|number| **number % PRODUCERS == producer);
        assert!(!ordered || numbers.is_sorted_by(|a, b| a < b));
    }
    let mut all: Vec<u64> = taken.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..each * PRODUCERS), "each value comes out once");
}

#[test]
fn what_many_threads_push_into_a_queue_comes_out_once_and_in_order() {
    let queue = Queue::new();
    producers_and_consumers(true, |value| queue.push(value), || queue.pop());
}

#[test]
fn what_many_threads_push_onto_a_stack_comes_off_once() {
    let stack = Stack::new();
    producers_and_consumers(false, |value| stack.push(value), || stack.pop());
}

#[test]
fn who_pops_and_who_takes_all_get_different_values() {
    let stack = Stack::new();
    let spare = Mutex::new(Vec::new());
    producers_and_consumers(
        false,
        |value| stack.push(value),
        || {
            let mut spare = spare.lock().unwrap();
            if spare.is_empty() && stack.pop().map(|value| spare.push(value)).is_some() {
                spare.extend(stack.pop_all());
            }
            spare.pop()
        },
    );
}

#[test]
fn what_is_left_is_dropped_with_its_structure() {
    let live = Arc::new(AtomicUsize::new(0));
    let queue: Queue<_> = (0..10).map(|number| Counted::new(number, &live)).collect();
    let stack: Stack<_> = (0..10).map(|number| Counted::new(number, &live)).collect();
    drop((queue.pop(), stack.pop()));
    assert_eq!(live.load(Relaxed), 18);
    let mut all = stack.pop_all();
    drop(all.next());
    assert_eq!(live.load(Relaxed), 17);
    drop(all);
    assert_eq!(live.load(Relaxed), 9);
    let mut rest = queue.into_iter();
    drop(rest.next());
    assert_eq!(live.load(Relaxed), 8);
    drop(rest);
    assert_eq!(live.load(Relaxed), 0);
}

#[test]
fn a_drop_that_panics_loses_no_other_value() {
    struct Bad(Counted);
    impl Weigh for Bad {}
    impl Drop for Bad {
        fn drop(&mut self) {
            assert_ne!(self.0.number, 3, "on purpose");
        }
    }
    let live = Arc::new(AtomicUsize::new(0));
    let bad = || (0..10).map(|number| Bad(Counted::new(number, &live)));
    let queue: Queue<_> = bad().collect();
    let stack: Stack<_> = bad().collect();
    let list: List<_> = bad().collect();
    panic_of(|| drop(queue));
    panic_of(|| drop(stack));
    panic_of(|| drop(list));
    let stack: Stack<_> = bad().collect();
    panic_of(|| drop(stack.pop_all()));
    assert_eq!(live.load(Relaxed), 0);
}

/// A value is its taker's at once, however long sections last; what waits is its node.
#[test]
fn a_value_does_not_wait_for_a_grace_period() {
    let live = Arc::new(AtomicUsize::new(0));
    let (queue, stack) = (Queue::new(), Stack::new());
    let section = quiescence::read();
    queue.push(Counted::new(1, &live));
    stack.push(Counted::new(2, &live));
    let before = Domain::global().statistics().bytes_waiting;
    drop((queue.pop(), stack.pop()));
    assert_eq!(live.load(Relaxed), 0);
    // Other tests of this process retire as well, and free what they have retired; but not what
    // was retired after our section had begun.
    assert!(quiescence::Domain::global().statistics().bytes_waiting > 0, "{before}");
    drop(section);
}

/// Pops are never refused: in a section they go over the limit, and the thread settles that where
/// the section ends; outside of sections the limit is kept all the time.
#[test]
fn nodes_count_against_the_limit_of_the_global_domain() {
    const LIMIT: u64 = 64;
    in_its_own_process!(&[("QUIESCENCE_LIMIT_OBJECTS", "64")]);
    let waiting = || Domain::global().statistics().callbacks_waiting();
    let (queue, stack): (Queue<_>, Stack<_>) = ((0..200).collect(), (0..200).collect());
    let section = quiescence::read();
    assert!(queue.drain().eq(0..200));
    assert!(stack.pop_all().eq((0..200).rev()));
    assert!(waiting() >= 400);
    drop(section);
    assert!(waiting() <= LIMIT, "{}", waiting());
    for number in 0..1_000 {
        queue.push(number);
        stack.push(number);
        assert_eq!((queue.pop(), stack.pop()), (Some(number), Some(number)));
        assert!(waiting() <= LIMIT, "{}", waiting());
    }
}
