//! crossbeam-utils: its `AtomicCell`, which for four words is a lock out of a global table, and its
//! `ShardedLock`, which readers take a shard of.

use crossbeam_utils::atomic::AtomicCell;
use crossbeam_utils::sync::ShardedLock;

use super::Rival;
use crate::cases::loops::{Loop, Looped};
use crate::serve::copied;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("crossbeam-cell").cell::<AtomicCell<[u64; 4]>>(),
    Rival::new("crossbeam-sharded-lock").times(Looped::Local, section),
];

copied! { AtomicCell::new, |cell| cell.load(), |cell, words| cell.store(words); }

fn section() -> Loop {
    Loop::of(ShardedLock::new(()), |lock| {
        drop(lock.read().expect("no reader panics"));
        1
    })
}
