//! Values that are read by one restartable sequence, and places with an `Arc` in them.
//!
//! Where others wait for a grace period, an updater of these replaces the value, which is to wait
//! for one. What a reader of the others does in its section it does here with what it has loaded.

use std::hint::black_box;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quiescence::{ArcCell, Snapshot};

use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::repeat;
use crate::cases::object::Freed;
use crate::cases::wait::{Flavour, Idle, Member, chain, sections};
use crate::serve::{Cell, Replace, StoreArc};

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

static CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));

pub(super) fn guard(batches: u64) -> Duration {
    let cell = black_box(&*CELL);
    repeat(batches, || *cell.load())
}

pub(super) fn arc(batches: u64) -> Duration {
    let cell = black_box(&*CELL);
    repeat(batches, || *cell.load_full())
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
}

static FREED: Freed = Freed::new();

impl Replace for InCell {
    type Place<T: Send + Sync + 'static> = ArcCell<T>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self
    }

    fn place<T: quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> ArcCell<T> {
        ArcCell::from_pointee(value)
    }

    fn thread(&self) {}

    fn freed() -> &'static Freed {
        &FREED
    }

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &ArcCell<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        look(&place.load())
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(&self, _thread: &mut (), place: &ArcCell<T>, value: T) {
        place.store(Arc::new(value));
    }

    fn flush(&self) {
        quiescence::barrier();
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
