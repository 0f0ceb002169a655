//! The price of a read: enter a section, load the pointer, read its word, leave.
//!
//! All rivals run the same two nested loops around the same shared word, in threads that start
//! together; the inner loop is compiled into each of them.

use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, RwLock};
use std::time::Duration;
#[cfg(feature = "liburcu")]
use std::time::Instant;

use arc_swap::{ArcSwap, Cache};
use quiescence::{Qsbr, Rcu};
use seize::Guard;

#[cfg(feature = "liburcu")]
use super::BATCH;
use super::single::{Single, timed};

/// One way to read a shared word.
pub type ReadRival = Single;

/// Everything that is compiled in, the plain load first.
pub fn rivals() -> &'static [ReadRival] {
    &RIVALS
}

static RIVALS: [ReadRival; if cfg!(feature = "liburcu") { 14 } else { 11 }] = [
    Single::rival("plain-load", plain_load),
    Single::ours("quiescence", global),
    Single::ours("quiescence-reader", reader),
    Single::ours("quiescence-qsbr", qsbr),
    #[cfg(feature = "liburcu")]
    Single::rival("liburcu-memb", |batches| c_loop(batches, &super::liburcu::MEMB)),
    #[cfg(feature = "liburcu")]
    Single::rival("liburcu-qsbr", |batches| c_loop(batches, &super::liburcu::QSBR)),
    #[cfg(feature = "liburcu")]
    Single::rival("liburcu-bp", |batches| c_loop(batches, &super::liburcu::BP)),
    Single::rival("crossbeam-epoch", crossbeam_epoch),
    Single::rival("seize", seize),
    Single::rival("arc-swap", arc_swap),
    Single::rival("arc-swap-cache", arc_swap_cache),
    Single::rival("std-rwlock", std_rwlock),
    Single::rival("parking_lot-rwlock", parking_lot_rwlock),
    Single::rival("std-mutex", std_mutex),
];

/// The word that is read, for the rivals that load a pointer themselves. Never replaced.
static WORD: u64 = 1;
static SLOT: AtomicPtr<u64> = AtomicPtr::new((&raw const WORD).cast_mut());
static RCU: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(WORD));

fn plain_load(batches: u64) -> Duration {
    let slot = black_box(&SLOT);
    let read = |_: &mut ()| {
        let word = slot.load(Ordering::Acquire);
        // SAFETY: the slot points to a static word, always.
        unsafe { *word }
    };
    timed(batches, &mut (), read, |()| {})
}

fn global(batches: u64) -> Duration {
    let rcu = black_box(&*RCU);
    let read = |_: &mut ()| {
        let guard = quiescence::read();
        *rcu.load(&guard)
    };
    timed(batches, &mut (), read, |()| {})
}

fn reader(batches: u64) -> Duration {
    let rcu = black_box(&*RCU);
    let mut reader = quiescence::reader();
    timed(batches, &mut reader, |reader| *rcu.load(&reader.read()), |_| {})
}

fn qsbr(batches: u64) -> Duration {
    let rcu = black_box(&*RCU);
    let mut qsbr = Qsbr::register();
    timed(batches, &mut qsbr, |qsbr| *rcu.load(&qsbr.read()), Qsbr::quiescent_state)
}

#[cfg(feature = "liburcu")]
fn c_loop(batches: u64, flavour: &'static super::liburcu::Flavour) -> Duration {
    let mut registered = super::liburcu::Registered::new(flavour);
    let begin = Instant::now();
    let sum = registered.read(batches, black_box(&SLOT));
    let elapsed = begin.elapsed();
    assert_eq!(sum, batches * BATCH, "every read saw the word");
    elapsed
}

fn crossbeam_epoch(batches: u64) -> Duration {
    static SLOT: LazyLock<crossbeam_epoch::Atomic<u64>> =
        LazyLock::new(|| crossbeam_epoch::Atomic::new(WORD));
    let slot = black_box(&*SLOT);
    let read = |_: &mut ()| {
        let guard = crossbeam_epoch::pin();
        // SAFETY: the slot points to a word that is never freed.
        unsafe { *slot.load(Ordering::Acquire, &guard).deref() }
    };
    timed(batches, &mut (), read, |()| {})
}

fn seize(batches: u64) -> Duration {
    static COLLECTOR: LazyLock<seize::Collector> = LazyLock::new(seize::Collector::new);
    let collector = black_box(&*COLLECTOR);
    let slot = black_box(&SLOT);
    let read = |_: &mut ()| {
        let guard = collector.enter();
        let word = guard.protect(slot, Ordering::Acquire);
        // SAFETY: the slot points to a static word, always.
        unsafe { *word }
    };
    timed(batches, &mut (), read, |()| {})
}

static ARC_SWAP: LazyLock<ArcSwap<u64>> = LazyLock::new(|| ArcSwap::from_pointee(WORD));

fn arc_swap(batches: u64) -> Duration {
    let slot = black_box(&*ARC_SWAP);
    timed(batches, &mut (), |()| **slot.load(), |()| {})
}

fn arc_swap_cache(batches: u64) -> Duration {
    let mut cache = Cache::new(black_box(&*ARC_SWAP));
    timed(batches, &mut cache, |cache| **cache.load(), |_| {})
}

fn std_rwlock(batches: u64) -> Duration {
    static LOCK: RwLock<u64> = RwLock::new(WORD);
    let lock = black_box(&LOCK);
    timed(batches, &mut (), |()| *lock.read().expect("no reader panics"), |()| {})
}

fn parking_lot_rwlock(batches: u64) -> Duration {
    static LOCK: parking_lot::RwLock<u64> = parking_lot::RwLock::new(WORD);
    let lock = black_box(&LOCK);
    timed(batches, &mut (), |()| *lock.read(), |()| {})
}

fn std_mutex(batches: u64) -> Duration {
    static LOCK: std::sync::Mutex<u64> = std::sync::Mutex::new(WORD);
    let lock = black_box(&LOCK);
    timed(batches, &mut (), |()| *lock.lock().expect("no reader panics"), |()| {})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::single::tests::all_work;

    #[test]
    fn every_rival_reads_the_word_as_often_as_it_is_told() {
        all_work(rivals());
    }
}
