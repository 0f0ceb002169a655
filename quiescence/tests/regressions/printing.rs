//! Faults of what is printed.

use quiescence::collections::{List, Queue, Stack};
use std::fmt::Debug;

/// How an iterator over three values is printed: fresh, half taken, and with nothing left.
fn printed(mut values: impl Iterator<Item = u32> + Debug) -> [String; 3] {
    [0, 1, 2].map(|taken| {
        values.by_ref().take(taken).for_each(drop);
        format!("{values:?}")
    })
}

/// It looked into the queue, which has no node once the last value has been taken.
#[test]
fn printing_an_exhausted_iterator_of_a_queue_dereferenced_null() {
    let queue = printed(Queue::from_iter(0..3).into_iter());
    let is_empty = |text: &String| text.contains("is_empty: true");
    assert_eq!(queue.each_ref().map(is_empty), [false, false, true], "{queue:?}");
    let stack = printed(Stack::from_iter(0..3).into_iter());
    let is_null = |text: &String| text.contains("next: 0x0");
    assert_eq!(stack.each_ref().map(is_null), [false, false, true], "{stack:?}");
    let list = printed(List::<u32>::from_iter(0..3).into_iter());
    assert_eq!(list, ["[0, 1, 2]", "[1, 2]", "[]"]);
}
