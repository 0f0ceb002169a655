//! `ExactCell`: counts are exact whatever meets, values are dropped at once, and an address that is
//! used again is not taken for another object.

use crate::common::user_types::{SHAKES, Shaky};
use crate::common::*;
use std::pin::Pin;
use std::rc::Rc;
use std::{array, iter};

use quiescence::cell::Counted;
use quiescence::cell::{ExactCell, ExactGuard};

/// Fewer rounds under Miri, which is slow.
const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };

#[test]
fn a_guard_has_no_count_until_the_cell_is_replaced() {
    let first = Arc::new(1);
    let cell = ExactCell::new(Arc::clone(&first));
    let guard = cell.load();
    assert_eq!(Arc::strong_count(&first), 2);
    cell.store(Arc::new(2));
    assert_eq!(Arc::strong_count(&first), 2, "the guard's");
    assert_eq!(**guard, 1);
    drop(guard);
    assert_eq!(Arc::strong_count(&first), 1);
}

#[test]
fn what_a_swap_returns_is_ones_own() {
    let cell = ExactCell::new(Arc::new(String::from("first")));
    drop(cell.load());
    let old = cell.swap(Arc::new(String::from("second")));
    assert_eq!(Arc::try_unwrap(old).as_deref(), Ok("first"));
    assert_eq!(Arc::try_unwrap(cell.into_inner()).as_deref(), Ok("second"));
}

#[test]
fn a_guard_outlives_its_cell_wherever_that_goes() {
    let value = Arc::new(1);
    let cell = ExactCell::new(Arc::clone(&value));
    let guards: [_; 3] = array::from_fn(|_| cell.load());
    let cell = Box::new(cell); // it is at another address now
    cell.store(Arc::new(2));
    assert_eq!(Arc::strong_count(&value), 4);
    let last = cell.load();
    drop(cell);
    assert_eq!(**last, 2);
    assert!(guards.iter().all(|guard| ***guard == 1));
    drop(guards);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_thread_may_have_any_number_of_guards() {
    let value = Arc::new(1);
    let cell = ExactCell::new(Arc::clone(&value));
    let mut guards = iter::repeat_with(|| cell.load()).take(20).collect::<Vec<_>>();
    // Eight have none; fewer, where guards of a thread that has ended stand in its slots: they are
    // this one's by now, if half of them were free.
    let counted = Arc::strong_count(&value) - 2;
    assert!((12..=16).contains(&counted), "{counted}");
    drop(guards.remove(0));
    guards.push(cell.load());
    assert_eq!(Arc::strong_count(&value), 2 + counted, "the first one's slot was free");
    cell.store(Arc::new(2));
    assert_eq!(Arc::strong_count(&value), 1 + 20);
    drop(guards);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_guard_ends_in_another_thread_and_after_its_own() {
    let value = Arc::new(1);
    let cell = ExactCell::new(Arc::clone(&value));
    let guard = cell.load();
    elsewhere(|| drop(guard));
    let guard = elsewhere(|| cell.load());
    cell.store(Arc::new(2));
    assert_eq!(Arc::strong_count(&value), 2);
    assert_eq!(**guard, 1);
    drop(guard);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_guard_becomes_a_reference() {
    let value = Arc::new(1);
    let cell = ExactCell::new(Arc::clone(&value));
    let one = ExactGuard::into_inner(cell.load());
    assert_eq!(Arc::strong_count(&value), 3);
    let guard = cell.load();
    cell.store(Arc::new(2));
    let other = ExactGuard::into_inner(guard);
    assert_eq!(Arc::strong_count(&value), 3);
    drop((one, other));
    assert_eq!(Arc::strong_count(&value), 1);
    let guard = ExactGuard::from_inner(Arc::clone(&value));
    assert_eq!(Arc::strong_count(&value), 2);
    drop(guard);
}

#[test]
fn compare_and_swap_goes_by_the_address() {
    let [one, two] = [1, 2].map(Arc::new);
    let cell = ExactCell::new(Arc::clone(&one));
    let was = cell.compare_and_swap(Arc::as_ptr(&two), Arc::clone(&two));
    assert!(Arc::ptr_eq(&was, &one));
    assert_eq!(Arc::strong_count(&two), 1, "it was not replaced, and the new one is dropped");
    drop(was);
    let was = cell.compare_and_swap(Arc::as_ptr(&one), Arc::clone(&two));
    assert!(Arc::ptr_eq(&was, &one));
    drop(was);
    assert_eq!([&one, &two].map(Arc::strong_count), [1, 2]);
}

#[test]
fn rcu_begins_anew_and_loses_no_update() {
    let cell = ExactCell::new(Arc::new(0));
    threads(2, |_| (0..ROUNDS).for_each(|_| drop(cell.rcu(|n| **n + 1))));
    assert_eq!(**cell.load(), 2 * ROUNDS);
    panic_of(|| cell.rcu(|_| -> Arc<usize> { panic!() }));
    assert_eq!(**cell.load(), 2 * ROUNDS);
}

/// Counts of `Arc` and of its `Weak`s stand at one address: an update of one cell pays what was
/// borrowed from it, and not the other.
#[test]
fn strong_and_weak_counts_are_told_apart() {
    let value = Arc::new(1);
    let strong = ExactCell::new(Arc::clone(&value));
    let weak = ExactCell::new(Arc::downgrade(&value));
    let (held, held_weakly) = (strong.load(), weak.load());
    weak.store(Weak::new());
    assert_eq!([Arc::strong_count(&value), Arc::weak_count(&value)], [2, 1]);
    drop(strong);
    assert_eq!([Arc::strong_count(&value), Arc::weak_count(&value)], [2, 1]);
    drop((held, held_weakly));
    assert_eq!([Arc::strong_count(&value), Arc::weak_count(&value)], [1, 0]);
    assert!(weak.load().upgrade().is_none());
}

#[test]
fn other_pointers_and_nothing_may_be_in_a_cell() {
    let empty = ExactCell::<Option<Arc<u8>>>::empty();
    assert!(empty.load().is_none());
    empty.store(Some(Arc::new(1)));
    assert_eq!(empty.swap(None).as_deref(), Some(&1));
    let text = String::from("borrowed");
    let local = ExactCell::new(Rc::new(text.as_str())); // neither Send nor 'static
    let guard = local.load();
    assert_eq!(Rc::strong_count(&local.swap(Rc::new("other"))), 2);
    assert_eq!(**guard, "borrowed");
    let pinned = ExactCell::new(Arc::pin(7));
    assert_eq!(*Pin::clone(&pinned.load()), 7);
    assert_eq!(*pinned.swap(Arc::pin(8)), 7);
}

/// A pointer whose address is odd, with a tag that needs that bit.
#[derive(Clone, Debug)]
struct Odd(Arc<[u8; 2]>);

// SAFETY: not: that the address has a bit of the tag is what is tested.
unsafe impl Counted for Odd {
    type Base = u8;

    const TAG: usize = 1;

    fn into_ptr(_me: Self) -> *mut u8 {
        unreachable!("refused before")
    }

    fn as_ptr(me: &Self) -> *mut u8 {
        me.0.as_ptr().cast_mut().wrapping_add(1)
    }

    unsafe fn from_ptr(_address: *const u8) -> Self {
        unreachable!("none was given away")
    }
}

#[test]
fn an_address_with_bits_of_the_tag_is_refused() {
    let refused = catch_unwind(|| ExactCell::new(Odd(Arc::new([0; 2])))).unwrap_err();
    assert!(refused.downcast_ref::<&str>().unwrap().contains("Counted::TAG"));
}

#[test]
fn a_clone_that_panics_leaves_what_is_borrowed() {
    let value = Arc::new(7);
    let cell = ExactCell::new(Shaky::new(Arc::clone(&value)));
    let mut guards: Vec<_> = iter::repeat_with(|| cell.load()).take(8).collect();
    SHAKES.set(true);
    panic_of(|| cell.load()); // the ninth guard is a clone
    panic_of(|| cell.store(Shaky::new(Arc::new(0))));
    // The first: a thread may have the slots of one that has ended and some of whose guards have
    // not, so the last ones may have counts.
    let guard = guards.remove(0);
    panic_of(|| ExactGuard::into_inner(guard));
    assert!(guards.iter().all(|guard| *guard.0 == 7));
    drop(guards);
    assert_eq!(Arc::strong_count(&value), 2, "the reference that the store took is lost");
    // SAFETY: the one that the store took out of the cell, and lost.
    unsafe { Shaky::dec(Arc::as_ptr(&value)) };
}

/// Objects of two kinds whose addresses are used again at once: each reader finds the kind of its
/// own cell (arc-swap#210).
#[test]
fn an_address_that_is_used_again_is_another_cells() {
    let numbers = ExactCell::new(Arc::new([1_u64; 4]));
    let texts = ExactCell::new(Arc::new([u64::MAX; 4]));
    let start = Barrier::new(4);
    threads(4, |thread| {
        let (cell, of_cell) = if thread % 2 == 0 { (&numbers, 1) } else { (&texts, u64::MAX) };
        start.wait();
        match thread {
            0 | 1 => (0..ROUNDS).for_each(|_| assert_eq!(**cell.load(), [of_cell; 4])),
            _ => (0..ROUNDS / 4).for_each(|_| cell.store(Arc::new([of_cell; 4]))),
        }
    });
}

/// Loads, guards that go to other threads, and swaps: each reference is given up once.
#[test]
fn counts_are_exact_whatever_meets() {
    let values: [Arc<usize>; 4] = array::from_fn(Arc::new);
    let cells: [_; 2] = array::from_fn(|cell| ExactCell::new(Arc::clone(&values[cell])));
    thread::scope(|scope| {
        for seed in 0..3 {
            let (cells, values) = (&cells, &values);
            scope.spawn(move || {
                let mut kept = Vec::new();
                for round in 0..ROUNDS {
                    let cell = &cells[(round + seed) % 2];
                    match (round * 7 + seed) % 5 {
                        0 => cell.store(Arc::clone(&values[round % 4])),
                        1 => drop(cell.load_full()),
                        2 => kept.push(cell.load()),
                        _ => assert!(**cell.load() < 4),
                    }
                    if kept.len() > 12 {
                        let kept = std::mem::take(&mut kept);
                        if round % 64 == 0 {
                            scope.spawn(move || drop(kept));
                        }
                    }
                }
            });
        }
    });
    drop(cells);
    assert_eq!(values.each_ref().map(Arc::strong_count), [1; 4]);
}
