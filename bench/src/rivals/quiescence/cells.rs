//! Values that are read by one restartable sequence, cells with an `Arc` in them, and hazard
//! pointers.
//!
//! Where others wait for a grace period, an updater of a snapshot replaces the value, which is to
//! wait for one. What a reader of the others does in its section it does here with what it has
//! loaded.

use std::hint::black_box;
use std::sync::atomic::{AtomicI32, AtomicPtr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quiescence::cell::Cache;
use quiescence::hazard::{self, HazardPointer};
use quiescence::sync::{Latch, SeqLock};
use quiescence::{ArcCell, cell::Snapshot};

use crate::advise::{self, Copied};
use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::{repeat, timed};
use crate::cases::wait::{Flavour, Idle, Member, chain, sections};
use crate::serve::{self, replace, StoreArc};

pub(super) struct FourWords;

static WORDS: LazyLock<Snapshot<Words>> = LazyLock::new(|| Snapshot::new(words(0)));

impl serve::Cell for FourWords {
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

impl serve::Cell for Sequence {
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

impl serve::Cell for TwoCopies {
    fn load(batches: u64) -> Duration {
        let latch = black_box(&LATCH);
        repeat(batches, || sum(&latch.read()))
    }

    fn store(number: u64) {
        black_box(&LATCH).write(words(number));
    }
}

static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));

pub(super) fn guard(batches: u64) -> Duration {
    let cell = black_box(&*CELL);
    repeat(batches, || *cell.load())
}

pub(super) fn arc(batches: u64) -> Duration {
    let cell = black_box(&*CELL);
    repeat(batches, || *cell.load_full())
}

pub(super) fn cache(batches: u64) -> Duration {
    let mut cache = Cache::new(black_box(&*CELL));
    timed(batches, &mut cache, |cache| **cache.load(), |_| {})
}

/// A hazard pointer that stays.
pub(super) fn protect(batches: u64) -> Duration {
    // Never replaced, and so never freed.
    static PLACE: LazyLock<AtomicPtr<u64>> =
        LazyLock::new(|| AtomicPtr::new(Box::into_raw(Box::new(1))));
    let place = black_box(&*PLACE);
    let once = |holder: &mut HazardPointer| {
        // SAFETY: what is there is from a box, and is never freed.
        *unsafe { holder.protect(place) }.expect("a place is never empty")
    };
    timed(batches, &mut HazardPointer::new(), once, |_| {})
}

/// An `Arc` in its cell.
#[derive(Debug)]
pub(super) struct InCell;

static STORED: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));

impl StoreArc for InCell {
    fn load() -> u64 {
        *STORED.load()
    }

    fn store(arc: Arc<u64>) {
        STORED.store(arc);
    }

    fn flush() {
        hazard::barrier();
    }
}

replace! {
    InCell => ArcCell<T>, ();
    new: Self;
    place: |_, value| ArcCell::from_pointee(value);
    thread: |_| ();
    read: |_, _, place, look| look(&place.load());
    replace: |_, place, value| place.store(Arc::new(value));
    flush: |_| hazard::barrier();
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

impl Copied for SeqLock<advise::Words> {
    fn new(words: advise::Words) -> Self {
        Self::new(words)
    }

    #[inline]
    fn read(&self) -> advise::Words {
        self.read()
    }

    #[inline]
    fn write(&self, words: advise::Words) {
        self.write(words);
    }
}

impl Copied for Snapshot<advise::Words> {
    fn new(words: advise::Words) -> Self {
        Self::new(words)
    }

    #[inline]
    fn read(&self) -> advise::Words {
        self.load()
    }

    #[inline]
    fn write(&self, words: advise::Words) {
        self.store(words);
    }
}
