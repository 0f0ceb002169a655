//! arc-swap: a reference-counted value behind a pointer that is swapped, with debts instead of
//! counts on the fast path; with and without the cache that each thread may keep of it.

use std::hint::black_box;
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use super::Rival;
use crate::cases::loops::{Loop, Looped, reads, timed};
use crate::cases::maps::Map;
use crate::serve::{arcs, copied};
use crate::shapes::{Key, Value};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("arc-swap")
        .values::<Swapped>()
        .times(Looped::Read, reads::<Swapped>)
        .cell::<ArcSwap<[u64; 4]>>()
        .arcs::<ArcSwap<u64>>()
        .stored::<Swapped>()
        .replace::<Swapped>(),
    Rival::new("arc-swap-cache")
        .config::<Cached>()
        .times(Looped::Read, cached)
        .times(Looped::Guard, cached),
];

arcs!(Swapped => ArcSwap, load_full);

copied! { ArcSwap::from_pointee, |cell| **cell.load(), |cell, words| cell.store(Arc::new(words)); }

fn cached() -> Loop {
    let place = ArcSwap::from_pointee(1);
    Loop::new(move |batches| {
        let mut cache = Cache::new(black_box(&place));
        timed(batches, &mut cache, |cache| **cache.load(), |_| {})
    })
}

/// One value, of which each thread keeps a cache.
struct Cached(Arc<ArcSwap<Value>>);

impl Map<Key, Value> for Cached {
    const KEYED: bool = false;
    type Thread = Cache<Arc<ArcSwap<Value>>, Arc<Value>>;

    fn of(mut entries: impl Iterator<Item = (Key, Value)>) -> Self {
        let (_, value) = entries.next().expect("a config has one value");
        Self(Arc::new(ArcSwap::from_pointee(value)))
    }

    fn thread(&self) -> Self::Thread {
        Cache::new(Arc::clone(&self.0))
    }

    #[inline]
    fn read<R>(
        &self,
        thread: &mut Self::Thread,
        _key: &Key,
        look: impl FnOnce(&Value) -> R,
    ) -> Option<R> {
        Some(look(thread.load()))
    }

    #[inline]
    fn put(&self, _thread: &mut Self::Thread, _key: &Key, value: Value) -> bool {
        self.0.store(Arc::new(value));
        true
    }
}
