//! hazarc: a counted pointer whose loads borrow, by hazard pointers and without a second look; with
//! and without the cache that each thread may keep of it.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};

use hazarc::{AtomicArc, Cache};

use super::Rival;
use crate::cases::loops::{repeat, timed};
use crate::cases::object::Freed;
use crate::serve::{Replace, StoreArc};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("hazarc")
        .guard(|batches| {
            let slot = black_box(&*ONE);
            repeat(batches, || **slot.load())
        })
        .arc(|batches| {
            let slot = black_box(&*ONE);
            repeat(batches, || *slot.load_owned())
        })
        .store::<Borrowed>()
        .stored::<Borrowed>(),
    Rival::new("hazarc-cache").guard(|batches| {
        let mut cache = Cache::new(black_box(&*ONE));
        timed(batches, &mut cache, |cache| **cache.load(), |_| {})
    }),
];

static ONE: LazyLock<AtomicArc<u64>> = LazyLock::new(|| AtomicArc::from(1));

/// A pointer that readers borrow from.
#[derive(Debug)]
struct Borrowed;

static STORED: LazyLock<AtomicArc<u64>> = LazyLock::new(|| AtomicArc::from(1));

impl StoreArc for Borrowed {
    fn load() -> u64 {
        **STORED.load()
    }

    fn store(arc: Arc<u64>) {
        STORED.store(arc);
    }
}

static FREED: Freed = Freed::new();

impl Replace for Borrowed {
    type Place<T: Send + Sync + 'static> = AtomicArc<T>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self
    }

    fn place<T: quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> AtomicArc<T> {
        AtomicArc::from(value)
    }

    fn thread(&self) {}

    fn freed() -> &'static Freed {
        &FREED
    }

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &AtomicArc<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        look(&place.load())
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(&self, _thread: &mut (), place: &AtomicArc<T>, value: T) {
        place.store(Arc::new(value));
    }
}
