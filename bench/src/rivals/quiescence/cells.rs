//! Values that are read by one restartable sequence, and places with an `Arc` in them.
//!
//! Where others wait for a grace period, an updater of these replaces the value, which is to wait
//! for one. What a reader of the others does in its section it does here with what it has loaded.

use std::hint::black_box;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quiescence::sync::{Latch, SeqLock};
use quiescence::{ArcCell, Snapshot};

use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::repeat;
use crate::cases::wait::{Flavour, Idle, Member, chain, sections};
use crate::serve::{Cell, StoreArc};

pub(super) struct FourWords;

static WORDS: LazyLock<Snapshot<Words>> = LazyLock::new(|| Snapshot::new(words(0)));

impl Cell for FourWords {
    fn load(batches: u64) -> Duration {
        let snapshot = black_box(&*WORDS);
        repeat(batches, || sum(&snapshot.load()))
    }

    fn store(number: u64) {
        WORDS.store(words(number));
    }
}

/// Four words that readers read again if a writer came between.
pub(super) struct Sequence;

static SEQ_LOCK: SeqLock<Words> = SeqLock::new(words(0));

impl Cell for Sequence {
    fn load(batches: u64) -> Duration {
        let lock = black_box(&SEQ_LOCK);
        repeat(batches, || sum(&lock.read()))
    }

    fn store(number: u64) {
        black_box(&SEQ_LOCK).write(words(number));
    }
}

/// Two copies of them.
pub(super) struct TwoCopies;

static LATCH: Latch<Words> = Latch::new(words(0));

impl Cell for TwoCopies {
    fn load(batches: u64) -> Duration {
        let latch = black_box(&LATCH);
        repeat(batches, || sum(&latch.read()))
    }

    fn store(number: u64) {
        black_box(&LATCH).write(words(number));
    }
}

pub(super) fn arc(batches: u64) -> Duration {
    static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));
    let cell = black_box(&*CELL);
    repeat(batches, || *cell.load())
}

pub(super) struct Stored;

static STORED: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));

impl StoreArc for Stored {
    fn load() -> u64 {
        *STORED.load()
    }

    fn store(arc: Arc<u64>) {
        STORED.store(arc);
    }
}

/// No thread registers.
struct NoThread;

impl Idle for NoThread {}

/// Four words.
pub(super) struct Snapshots(pub(super) Snapshot<[u64; 4]>);

impl Flavour for Snapshots {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new(self)
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        Box::new(NoThread)
    }
}

impl Member for &Snapshots {
    fn synchronize(&mut self) {
        self.0.store([1; 4]);
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        sections(stop, || *x = chain(*x | self.0.load()[0], steps))
    }
}

/// A shared pointer.
pub(super) struct Counted(pub(super) ArcCell<u64>);

impl Flavour for Counted {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new((self, Arc::new(1)))
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        Box::new(NoThread)
    }
}

/// With what is stored, so that nothing is allocated or freed.
impl Member for (&Counted, Arc<u64>) {
    fn synchronize(&mut self) {
        self.0.0.store(Arc::clone(&self.1));
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        sections(stop, || {
            let held = self.0.0.load();
            *x = chain(*x | *held, steps);
        })
    }
}
