//! arc-swap: a reference-counted value behind a pointer that is swapped, with debts instead of
//! counts on the fast path; with and without the cache that each thread may keep of it.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arc_swap::{ArcSwap, Cache};

use super::Rival;
use crate::advise::{Config, Placed, Value};
use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::{Looped, repeat, timed};
use crate::serve::{Cell, replace, StoreArc};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("arc-swap")
        .config::<Placed<Swapped>>()
        .per_key::<Swapped>()
        .times(Looped::Read, read_swapped)
        .cell::<Swapped>()
        .times(Looped::Guard, read_swapped)
        .times(Looped::Arc, |batches| {
            let slot = black_box(&*ONE);
            repeat(batches, || *slot.load_full())
        })
        .store::<Swapped>()
        .stored::<Swapped>()
        .replace::<Swapped>(),
    Rival::new("arc-swap-cache")
        .config::<Cached>()
        .times(Looped::Read, read_cached)
        .times(Looped::Guard, read_cached),
];

/// A shared pointer to a counted object.
#[derive(Debug)]
struct Swapped;

static ONE: LazyLock<ArcSwap<u64>> = LazyLock::new(|| ArcSwap::from_pointee(1));

fn read_swapped(batches: u64) -> Duration {
    let slot = black_box(&*ONE);
    timed(batches, &mut (), |()| **slot.load(), |()| {})
}

static WORDS: LazyLock<ArcSwap<Words>> = LazyLock::new(|| ArcSwap::from_pointee(words(0)));

impl Cell for Swapped {
    fn load(batches: u64) -> Duration {
        let slot = black_box(&*WORDS);
        repeat(batches, || sum(&slot.load()))
    }

    fn store(number: u64) {
        WORDS.store(words(number).into());
    }
}

static STORED: LazyLock<ArcSwap<u64>> = LazyLock::new(|| ArcSwap::from_pointee(1));

impl StoreArc for Swapped {
    fn load() -> u64 {
        **STORED.load()
    }

    fn store(arc: Arc<u64>) {
        STORED.store(arc);
    }
}

replace! {
    Swapped => ArcSwap<T>, ();
    new: Self;
    place: |_, value| ArcSwap::from_pointee(value);
    thread: |_| ();
    read: |_, _, place, look| look(&place.load());
    replace: |_, place, value| place.store(Arc::new(value));
}

/// Shared with the caches, which do not borrow.
type Shared = Arc<ArcSwap<Value>>;

#[derive(Debug)]
struct Cached(Shared);

fn read_cached(batches: u64) -> Duration {
    let mut cache = Cache::new(black_box(&*ONE));
    timed(batches, &mut cache, |cache| **cache.load(), |_| {})
}

impl Config for Cached {
    type Domain = ();
    /// Filled at the first read.
    type Thread<'a> = Option<Cache<Shared, Arc<Value>>>;

    fn domain() {}

    fn new(_domain: &(), value: Value) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(value)))
    }

    fn thread(_domain: &()) -> Self::Thread<'_> {
        None
    }

    #[inline]
    fn read<R>(
        &self,
        _domain: &(),
        thread: &mut Self::Thread<'_>,
        look: impl FnOnce(&Value) -> R,
    ) -> R {
        look(thread.get_or_insert_with(|| Cache::new(Arc::clone(&self.0))).load())
    }

    #[inline]
    fn update(&self, _domain: &(), _thread: &mut Self::Thread<'_>, value: Value) {
        self.0.store(Arc::new(value));
    }
}
