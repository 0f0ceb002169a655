//! hazarc: a counted pointer whose loads borrow, by hazard pointers and without a second look; with
//! and without the cache that each thread may keep of it.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};

use hazarc::{AtomicArc, Cache};

use super::Rival;
use crate::cases::loops::{Looped, repeat, timed};
use crate::serve::{replace, StoreArc};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("hazarc")
        .times(Looped::Guard, |batches| {
            let slot = black_box(&*ONE);
            repeat(batches, || **slot.load())
        })
        .times(Looped::Arc, |batches| {
            let slot = black_box(&*ONE);
            repeat(batches, || *slot.load_owned())
        })
        .store::<Borrowed>()
        .stored::<Borrowed>(),
    Rival::new("hazarc-cache").times(Looped::Guard, |batches| {
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

replace! {
    Borrowed => AtomicArc<T>, ();
    new: Self;
    place: |_, value| AtomicArc::from(value);
    thread: |_| ();
    read: |_, _, place, look| look(&place.load());
    replace: |_, place, value| place.store(Arc::new(value));
}
