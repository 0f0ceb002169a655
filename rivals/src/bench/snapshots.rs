//! A few words that are read whole and now and then replaced.
//!
//! Four words whose sum is always 1: a reader that sees half of one value and half of another finds
//! another sum, and the loop says so. Who writes beside readers writes every 10 microseconds.

use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use crossbeam_utils::atomic::AtomicCell;
use left_right::{Absorb, ReadHandleFactory, WriteHandle};
use quiescence::Snapshot;
use seqlock::SeqLock;

use super::single::{Single, repeat, timed};

/// Everything that is compiled in, the plain load first. All of them write.
pub fn rivals() -> &'static [Single] {
    &RIVALS
}

static RIVALS: [Single; 8] = [
    Single::rival("plain-load", plain_load).with_writer(plain_write),
    Single::ours("quiescence", snapshot).with_writer(|number| SNAPSHOT.store(words(number))),
    Single::rival("seqlock", |batches| repeat(batches, || sum(&black_box(&SEQLOCK).read())))
        .with_writer(|number| *SEQLOCK.lock_write() = words(number)),
    Single::rival("crossbeam-cell", |batches| repeat(batches, || sum(&black_box(&CELL).load())))
        .with_writer(|number| CELL.store(words(number))),
    Single::rival("arc-swap", arc_swap).with_writer(|number| ARC_SWAP.store(words(number).into())),
    Single::rival("left-right", left_right).with_writer(left_right_write),
    Single::rival("parking_lot-rwlock", |batches| {
        repeat(batches, || sum(&black_box(&LOCK).read()))
    })
    .with_writer(|number| *LOCK.write() = words(number)),
    Single::rival("parking_lot-mutex", |batches| {
        repeat(batches, || sum(&black_box(&MUTEX).lock()))
    })
    .with_writer(|number| *MUTEX.lock() = words(number)),
];

type Words = [u64; 4];

/// Words whose sum is 1, all of them different for each number.
const fn words(number: u64) -> Words {
    let (a, b) = (number, number.wrapping_mul(3));
    let c = !number;
    [a, b, c, 1_u64.wrapping_sub(a).wrapping_sub(b).wrapping_sub(c)]
}

#[inline(always)]
fn sum(words: &Words) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Nothing is ever written again, so nothing has to be waited for: how cheap it could be.
static FIXED: [Words; 2] = [words(1), words(2)];
static PLAIN: AtomicPtr<Words> = AtomicPtr::new((&raw const FIXED[0]).cast_mut());

fn plain_load(batches: u64) -> Duration {
    let plain = black_box(&PLAIN);
    repeat(batches, || {
        let words = plain.load(Ordering::Acquire);
        // SAFETY: it points to one of the two, which are static and never written.
        sum(unsafe { &*words })
    })
}

fn plain_write(number: u64) {
    let words = &raw const FIXED[(number % 2) as usize];
    PLAIN.store(words.cast_mut(), Ordering::Release);
}

static SNAPSHOT: LazyLock<Snapshot<Words>> = LazyLock::new(|| Snapshot::new(words(0)));

fn snapshot(batches: u64) -> Duration {
    let snapshot = black_box(&*SNAPSHOT);
    repeat(batches, || sum(&snapshot.load()))
}

static SEQLOCK: SeqLock<Words> = SeqLock::new(words(0));
static CELL: AtomicCell<Words> = AtomicCell::new(words(0));
static LOCK: parking_lot::RwLock<Words> = parking_lot::RwLock::new(words(0));
static MUTEX: parking_lot::Mutex<Words> = parking_lot::Mutex::new(words(0));
static ARC_SWAP: LazyLock<ArcSwap<Words>> = LazyLock::new(|| ArcSwap::from_pointee(words(0)));

fn arc_swap(batches: u64) -> Duration {
    let slot = black_box(&*ARC_SWAP);
    repeat(batches, || sum(&slot.load()))
}

/// What left-right keeps two of.
#[derive(Clone)]
struct Held(Words);

impl Absorb<Words> for Held {
    fn absorb_first(&mut self, operation: &mut Words, _: &Self) {
        self.0 = *operation;
    }

    fn sync_with(&mut self, first: &Self) {
        self.0 = first.0;
    }
}

/// The one who writes, and where readers come from.
struct LeftRight {
    writer: Mutex<WriteHandle<Held, Words>>,
    readers: ReadHandleFactory<Held>,
}

static LEFT_RIGHT: LazyLock<LeftRight> = LazyLock::new(|| {
    let (writer, reader) = left_right::new_from_empty(Held(words(0)));
    LeftRight { writer: Mutex::new(writer), readers: reader.factory() }
});

fn left_right(batches: u64) -> Duration {
    let read =
        |reader: &mut left_right::ReadHandle<Held>| reader.enter().map_or(0, |guard| sum(&guard.0));
    timed(batches, &mut LEFT_RIGHT.readers.handle(), read, |_| {})
}

fn left_right_write(number: u64) {
    let mut writer = LEFT_RIGHT.writer.lock().unwrap_or_else(PoisonError::into_inner);
    writer.append(words(number));
    writer.publish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::single::tests::all_work;

    #[test]
    fn every_read_sees_one_value_whole_also_beside_a_writer() {
        all_work(rivals());
    }

    #[test]
    fn half_of_one_value_and_half_of_another_are_found_out() {
        for number in 0..100 {
            let (old, new) = (words(number), words(number + 1));
            assert_eq!((sum(&old), sum(&new)), (1, 1));
            for torn in 1..4 {
                let mut seen = old;
                seen[..torn].copy_from_slice(&new[..torn]);
                assert_ne!(sum(&seen), 1, "{torn} new words of {number}");
            }
        }
    }
}
