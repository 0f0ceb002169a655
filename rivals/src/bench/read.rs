//! The price of a read: enter a section, load the pointer, read its word, leave.
//!
//! All rivals run the same two nested loops around the same shared word, in threads that start
//! together; the inner loop is compiled into each of them.

use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Cache};
use quiescence::{Qsbr, Rcu};
use seize::Guard;

use super::BATCH;
use super::crew::{Crew, Presence};

/// One way to read a shared word.
#[derive(Debug)]
pub struct ReadRival {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Whether it is this project's own.
    pub ours: bool,
    run: fn(batches: u64) -> Duration,
}

impl ReadRival {
    /// Nanoseconds for one read, the mean over `threads` threads that read at the same time, without
    /// the time that they were kept waiting for a CPU.
    ///
    /// Each reads `iterations` times, rounded up to whole batches of 1024, after a short warm-up.
    pub fn measure(&self, threads: usize, iterations: u64) -> f64 {
        let batches = iterations.div_ceil(BATCH).max(1);
        let crew = Crew::new(threads);
        let total: Duration = thread::scope(|scope| {
            let crew = &crew;
            let threads: Vec<_> = (0..threads)
                .map(|number| {
                    scope.spawn(move || {
                        crew.settle(number);
                        (self.run)(1);
                        crew.meet();
                        let presence = Presence::new();
                        presence.own_time((self.run)(batches))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a reader does not panic")).sum()
        });
        total.as_nanos() as f64 / (threads as u64 * batches * BATCH) as f64
    }
}

/// Everything that is compiled in, the plain load first.
pub fn rivals() -> &'static [ReadRival] {
    &RIVALS
}

const fn rival(name: &'static str, run: fn(u64) -> Duration) -> ReadRival {
    ReadRival { name, ours: false, run }
}

const fn ours(name: &'static str, run: fn(u64) -> Duration) -> ReadRival {
    ReadRival { name, ours: true, run }
}

static RIVALS: [ReadRival; if cfg!(feature = "liburcu") { 14 } else { 11 }] = [
    rival("plain-load", plain_load),
    ours("quiescence", global),
    ours("quiescence-reader", reader),
    ours("quiescence-qsbr", qsbr),
    #[cfg(feature = "liburcu")]
    rival("liburcu-memb", |batches| c_loop(batches, &super::liburcu::MEMB)),
    #[cfg(feature = "liburcu")]
    rival("liburcu-qsbr", |batches| c_loop(batches, &super::liburcu::QSBR)),
    #[cfg(feature = "liburcu")]
    rival("liburcu-bp", |batches| c_loop(batches, &super::liburcu::BP)),
    rival("crossbeam-epoch", crossbeam_epoch),
    rival("seize", seize),
    rival("arc-swap", arc_swap),
    rival("arc-swap-cache", arc_swap_cache),
    rival("std-rwlock", std_rwlock),
    rival("parking_lot-rwlock", parking_lot_rwlock),
    rival("std-mutex", std_mutex),
];

/// The word that is read, for the rivals that load a pointer themselves. Never replaced.
static WORD: u64 = 1;
static SLOT: AtomicPtr<u64> = AtomicPtr::new((&raw const WORD).cast_mut());
static RCU: LazyLock<Rcu<u64>> = LazyLock::new(|| Rcu::new(WORD));

/// Runs `batches` times `BATCH` reads and an announcement.
#[inline(always)]
fn timed<S>(
    batches: u64,
    state: &mut S,
    read: impl Fn(&mut S) -> u64,
    announce: impl Fn(&mut S),
) -> Duration {
    let mut sum = 0_u64;
    let begin = Instant::now();
    for _ in 0..batches {
        for _ in 0..BATCH {
            sum = sum.wrapping_add(read(state));
        }
        announce(state);
    }
    let elapsed = begin.elapsed();
    assert_eq!(black_box(sum), batches * BATCH, "every read saw the word");
    elapsed
}

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

    #[test]
    fn every_rival_reads_the_word_as_often_as_it_is_told() {
        for rival in rivals() {
            for threads in [1, 2] {
                // The sum of what was read is asserted within.
                let ns = rival.measure(threads, 3 * BATCH - 1);
                assert!(ns > 0.0 && ns.is_finite(), "{}: {ns}", rival.name);
            }
        }
    }
}
