//! crossbeam-utils: its `AtomicCell`, which for four words is a lock out of a global table, and its
//! `ShardedLock`, which readers take a shard of.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Duration;

use crossbeam_utils::atomic::AtomicCell;
use crossbeam_utils::sync::ShardedLock;

use super::Rival;
use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::{Looped, repeat};
use crate::serve::Cell;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("crossbeam-cell").cell::<Striped>(),
    Rival::new("crossbeam-sharded-lock").times(Looped::Local, section),
];

struct Striped;

static CELL: AtomicCell<Words> = AtomicCell::new(words(0));

impl Cell for Striped {
    fn load(batches: u64) -> Duration {
        repeat(batches, || sum(&black_box(&CELL).load()))
    }

    fn store(number: u64) {
        CELL.store(words(number));
    }
}

fn section(batches: u64) -> Duration {
    static LOCK: LazyLock<ShardedLock<()>> = LazyLock::new(|| ShardedLock::new(()));
    let lock = black_box(&*LOCK);
    repeat(batches, || {
        drop(lock.read().expect("no reader panics"));
        1
    })
}
