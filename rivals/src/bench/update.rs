//! The price of an update: allocate an object of 64 bytes, publish it, retire the old one.
//!
//! Without a reader and beside one that reads without pause. The objects count themselves when
//! they are freed, and the updater looks every few updates how many wait.

use std::mem;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Instant;

use arc_swap::ArcSwap;
use quiescence::Rcu;
use seize::Guard;

use super::crew::{Crew, Presence, StopOnDrop};

/// Replacements between two samples of what waits. `BATCH` in `c/update.c` is the same number.
const BATCH: u64 = 64;

/// One way to replace and retire.
#[derive(Debug)]
pub struct UpdateRival {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Whether it is this project's own.
    pub ours: bool,
    run: fn(Contest) -> Updates,
}

/// What [`UpdateRival::measure`] saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Updates {
    /// Nanoseconds for each update, as its thread pays them; without waiting for a CPU.
    pub ns_per_update: f64,
    /// Objects replaced and not yet freed, the most that was seen.
    pub unreclaimed_peak: u64,
    /// The share of the time that no reader was kept waiting for a CPU; 1 without readers.
    pub readers_share: f64,
}

impl UpdateRival {
    /// Replaces so many objects, rounded up to whole batches of 64, while `readers` threads read,
    /// and lets the rival free what it can afterwards, which is not counted.
    ///
    /// One measurement at a time in a process; others wait.
    pub fn measure(&self, readers: usize, updates: u64) -> Updates {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let contest = Contest { readers, batches: updates.div_ceil(BATCH).max(1) };
        // In a thread of its own, since it may be tied to a CPU.
        thread::scope(|scope| {
            scope.spawn(|| (self.run)(contest)).join().expect("an updater does not panic")
        })
    }
}

/// Everything that is compiled in.
pub fn rivals() -> &'static [UpdateRival] {
    &RIVALS
}

const fn rival(name: &'static str, run: fn(Contest) -> Updates) -> UpdateRival {
    UpdateRival { name, ours: false, run }
}

static RIVALS: [UpdateRival; if cfg!(feature = "liburcu") { 7 } else { 5 }] = [
    UpdateRival { name: "quiescence", ours: true, run: ours },
    rival("crossbeam-epoch", crossbeam_epoch),
    rival("seize", seize),
    rival("arc-swap", arc_swap),
    rival("std-rwlock", std_rwlock),
    #[cfg(feature = "liburcu")]
    rival("liburcu-call", |contest| liburcu(contest, super::liburcu::Replaced::call)),
    #[cfg(feature = "liburcu")]
    rival("liburcu-defer", |contest| liburcu(contest, super::liburcu::Replaced::defer)),
];

/// The numbers of the rivals whose objects are counted here.
const OURS: usize = 0;
const CROSSBEAM_EPOCH: usize = 1;
const SEIZE: usize = 2;
const ARC_SWAP: usize = 3;
const STD_RWLOCK: usize = 4;

/// Freed objects of each rival. One line for all: one rival runs at a time.
static FREED: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];

/// 64 bytes that count themselves when they are freed.
#[derive(Debug)]
struct Object<const RIVAL: usize>([u64; 8]);

impl<const RIVAL: usize> Object<RIVAL> {
    fn new(word: u64) -> Self {
        Self([word; 8])
    }
}

impl<const RIVAL: usize> Drop for Object<RIVAL> {
    fn drop(&mut self) {
        // Relaxed: a count that orders nothing.
        FREED[RIVAL].fetch_add(1, Ordering::Relaxed);
    }
}

/// How much to do.
#[derive(Clone, Copy)]
struct Contest {
    readers: usize,
    batches: u64,
}

impl Contest {
    /// Runs the batches of `update` beside readers that run `read_until` and end when the flag is
    /// not 0.
    fn run(
        self,
        freed: impl Fn() -> u64,
        mut update: impl FnMut(u64),
        read_until: impl Fn(&AtomicI32) -> u64 + Sync,
    ) -> Updates {
        let stop = AtomicI32::new(0);
        let crew = Crew::new(self.readers + 1);
        thread::scope(|scope| {
            let mut readers = Vec::new();
            for number in 1..=self.readers {
                let (crew, stop, read_until) = (&crew, &stop, &read_until);
                readers.push(scope.spawn(move || {
                    crew.settle(number);
                    crew.report();
                    let presence = Presence::new();
                    std::hint::black_box(read_until(stop));
                    presence.share()
                }));
            }
            let end = StopOnDrop(&stop);
            crew.settle(0);
            crew.wait();
            let presence = Presence::new();
            let freed_before = freed();
            let mut unreclaimed_peak = 0;
            let begin = Instant::now();
            for batch in 1..=self.batches {
                update(batch);
                // What was left behind by an earlier run may be freed now: never below 0.
                let waiting = (batch * BATCH).saturating_sub(freed() - freed_before);
                unreclaimed_peak = unreclaimed_peak.max(waiting);
            }
            let elapsed = presence.own_time(begin.elapsed());
            drop(end);
            let shares = readers.into_iter().map(|r| r.join().expect("readers do not panic"));
            let readers_share = shares.fold(1.0, f64::min);
            let updates = self.batches * BATCH;
            let ns_per_update = elapsed.as_nanos() as f64 / updates as f64;
            Updates { ns_per_update, unreclaimed_peak, readers_share }
        })
    }

    /// The same for rivals on this side of the language border: one update and one read at a time.
    fn run_each<const RIVAL: usize>(
        self,
        mut replace: impl FnMut(Object<RIVAL>),
        read: impl Fn() -> u64 + Sync,
    ) -> Updates {
        let freed = || FREED[RIVAL].load(Ordering::Relaxed);
        let batch = |word| {
            for _ in 0..BATCH {
                replace(Object::new(word));
            }
        };
        let read_until = |stop: &AtomicI32| {
            let mut sum = 0_u64;
            while stop.load(Ordering::Relaxed) == 0 {
                sum = sum.wrapping_add(read());
            }
            sum
        };
        self.run(freed, batch, read_until)
    }
}

fn ours(contest: Contest) -> Updates {
    static RCU: LazyLock<Rcu<Object<OURS>>> = LazyLock::new(|| Rcu::new(Object::new(0)));
    let rcu = &*RCU;
    let read = || {
        let guard = quiescence::read();
        rcu.load(&guard).0[0]
    };
    let updates = contest.run_each(|object| rcu.store(object), read);
    quiescence::barrier();
    updates
}

fn crossbeam_epoch(contest: Contest) -> Updates {
    use crossbeam_epoch::{Atomic, Owned, pin};
    static SLOT: LazyLock<Atomic<Object<CROSSBEAM_EPOCH>>> =
        LazyLock::new(|| Atomic::new(Object::new(0)));
    let slot = &*SLOT;
    let replace = |object| {
        let guard = pin();
        let old = slot.swap(Owned::new(object), Ordering::AcqRel, &guard);
        // SAFETY: the swap took the only pointer to the old object out of reach of new readers.
        unsafe { guard.defer_destroy(old) };
    };
    let read = || {
        let guard = pin();
        let object = slot.load(Ordering::Acquire, &guard);
        // SAFETY: the slot always points to an object, whose destruction waits for this guard.
        unsafe { object.deref() }.0[0]
    };
    let updates = contest.run_each(replace, read);
    for _ in 0..BATCH {
        pin().flush();
    }
    updates
}

fn seize(contest: Contest) -> Updates {
    use std::sync::atomic::AtomicPtr;
    let collector = seize::Collector::new();
    let new = |object| Box::into_raw(Box::new(object));
    let slot: AtomicPtr<Object<SEIZE>> = AtomicPtr::new(new(Object::new(0)));
    let replace = |object| {
        let old = slot.swap(new(object), Ordering::AcqRel);
        // SAFETY: the swap took the only pointer to the old object out of reach of new readers,
        // and it came from a `Box`.
        unsafe { collector.retire(old, seize::reclaim::boxed) };
    };
    let read = || {
        let guard = collector.enter();
        let object = guard.protect(&slot, Ordering::Acquire);
        // SAFETY: the slot always points to an object, which this guard protects.
        unsafe { &*object }.0[0]
    };
    let updates = contest.run_each(replace, read);
    // SAFETY: the readers have ended, so the pointer is ours alone, and it came from a `Box`.
    drop(unsafe { Box::from_raw(slot.into_inner()) });
    updates
}

fn arc_swap(contest: Contest) -> Updates {
    let slot = ArcSwap::from_pointee(Object::<ARC_SWAP>::new(0));
    contest.run_each(|object| slot.store(Arc::new(object)), || slot.load().0[0])
}

fn std_rwlock(contest: Contest) -> Updates {
    let lock = RwLock::new(Object::<STD_RWLOCK>::new(0));
    let replace = |object| {
        let old = mem::replace(&mut *lock.write().expect("no reader panics"), object);
        drop(old);
    };
    contest.run_each(replace, || lock.read().expect("no writer panics").0[0])
}

#[cfg(feature = "liburcu")]
fn liburcu(contest: Contest, batch: fn(&mut super::liburcu::Replaced, u64)) -> Updates {
    use super::liburcu::Replaced;
    let mut replaced = Replaced::new();
    contest.run(Replaced::freed, |word| batch(&mut replaced, word), Replaced::read_until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rival_replaces_and_those_that_free_at_once_have_nothing_waiting() {
        for rival in rivals() {
            for readers in [0, 1] {
                let updates = rival.measure(readers, 10 * BATCH);
                assert!(updates.ns_per_update > 0.0, "{}", rival.name);
                assert!(updates.unreclaimed_peak <= 10 * BATCH, "{}", rival.name);
                if rival.name == "std-rwlock" {
                    assert_eq!(updates.unreclaimed_peak, 0);
                }
            }
        }
    }

    #[test]
    fn ours_frees_everything_at_the_barrier_that_ends_a_measurement() {
        let updates = 20 * BATCH;
        let ours = &rivals()[OURS];
        ours.measure(0, updates);
        let before = FREED[OURS].load(Ordering::Relaxed);
        ours.measure(1, updates);
        // At least: the other test may have measured in between.
        assert!(FREED[OURS].load(Ordering::Relaxed) - before >= updates);
    }
}
