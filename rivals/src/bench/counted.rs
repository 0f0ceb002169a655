//! Reference counts: taking one from a shared pointer and giving it back.
//!
//! [`arcs`]: from a place whose `Arc` can be replaced; [`references`]: to something that stays. Beside
//! both the bare `Arc`, cloned and dropped.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use quiescence::ArcCell;
use quiescence::sync::BigRef;

use super::single::{Single, repeat};

/// Ways to get an `Arc` out of a place where it can be replaced, and the bare clone.
pub fn arcs() -> &'static [Single] {
    &ARCS
}

/// Ways to hold something for a moment.
pub fn references() -> &'static [Single] {
    &REFERENCES
}

static ARCS: [Single; 5] = [
    Single::rival("arc-clone", arc_clone),
    Single::ours("quiescence", |batches| {
        let cell = black_box(&*ARC_CELL);
        repeat(batches, || *cell.load())
    }),
    Single::rival("arc-swap", |batches| {
        let slot = black_box(&*ARC_SWAP);
        repeat(batches, || *slot.load_full())
    }),
    Single::rival("arc-swap-guard", |batches| {
        let slot = black_box(&*ARC_SWAP);
        repeat(batches, || **slot.load())
    }),
    Single::rival("parking_lot-rwlock", |batches| {
        static LOCK: LazyLock<parking_lot::RwLock<Arc<u64>>> =
            LazyLock::new(|| parking_lot::RwLock::new(Arc::new(1)));
        let lock = black_box(&*LOCK);
        repeat(batches, || {
            let taken = Arc::clone(&lock.read());
            *taken
        })
    }),
];

static REFERENCES: [Single; 2] = [
    Single::rival("arc-clone", arc_clone),
    Single::ours("quiescence", |batches| {
        let shared = black_box(&*BIG_REF);
        repeat(batches, || {
            let handle = shared.get();
            let word = *handle;
            handle.put();
            word
        })
    }),
];

static ARC_CELL: LazyLock<ArcCell<u64>> = LazyLock::new(|| ArcCell::from_pointee(1));
static BIG_REF: LazyLock<BigRef<u64>> = LazyLock::new(|| BigRef::new(1));
static ARC_SWAP: LazyLock<ArcSwap<u64>> = LazyLock::new(|| ArcSwap::from_pointee(1));

fn arc_clone(batches: u64) -> Duration {
    static ARC: LazyLock<Arc<u64>> = LazyLock::new(|| Arc::new(1));
    let arc = black_box(&*ARC);
    // Or the compiler takes the count up and down at once, and so not at all.
    repeat(batches, || *black_box(Arc::clone(arc)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::single::tests::all_work;

    #[test]
    fn every_way_gives_what_is_there() {
        all_work(arcs());
        all_work(references());
    }
}
