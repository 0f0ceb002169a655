//! The crate seqlock: readers of a few words try again when a writer came between.

use std::hint::black_box;
use std::time::Duration;

use seqlock::SeqLock;

use super::Rival;
use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::repeat;
use crate::serve::Cell;

pub(super) const RIVALS: &[Rival] = &[Rival::new("seqlock").cell::<Sequence>()];

struct Sequence;

static SEQLOCK: SeqLock<Words> = SeqLock::new(words(0));

impl Cell for Sequence {
    fn load(batches: u64) -> Duration {
        repeat(batches, || sum(&black_box(&SEQLOCK).read()))
    }

    fn store(number: u64) {
        *black_box(&SEQLOCK).lock_write() = words(number);
    }
}
