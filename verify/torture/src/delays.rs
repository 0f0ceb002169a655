//! Delays at the steps of the library where races live, and spins. In a build that has the hooks
//! the library calls [`hook`] at each of its [`Point`]s; in others nothing does.
//!
//! A race shows when a thread is late at just the wrong moment; so at each point some threads spin
//! a little, some give up the CPU, and now and then one sleeps. Steps of readers, which come by the
//! million, are delayed seldom; steps of updaters, which are few, often.

use std::cell::Cell;
use std::hint;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use mutants::Point;

use crate::random::Random;

/// The longest pause at a point: longer than most grace periods, so that a stalled thread is
/// overtaken by several.
const PAUSE_MAX_US: u64 = 300;

/// The same, of a reader that knows its index and is counted nowhere: two grace periods have to go
/// by meanwhile, and those of sleepable domains have CPUs to share with eight readers for each. And
/// of a walk, which several updates of one bucket have to overtake.
const STALL_MAX_US: u64 = 4_000;

/// The longest spin at a point, in turns.
const SPIN_MAX: u64 = 256;

/// The run's seed, and a number for the next thread that has not been given one.
static SEED: AtomicU64 = AtomicU64::new(0);
static STRANGERS: AtomicU64 = AtomicU64::new(0);

/// Streams of threads that the torture did not start itself (the library's worker) begin here.
const STRANGERS_FROM: u64 = 1 << 32;

thread_local! {
    /// What this thread draws from. Without a destructor: it is used to the very end.
    static RANDOM: Random =
        Random::new(SEED.load(Relaxed), STRANGERS_FROM + STRANGERS.fetch_add(1, Relaxed));
    /// Whether the thread slept at its last point. A thread that is late is late again, as on a CPU
    /// that is taken away; some races need a thread to be slow at two steps in a row.
    static LATE: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the CPU for a while.
pub(crate) fn spin(turns: u64) {
    for _ in 0..turns {
        hint::spin_loop();
    }
}

/// Has every point delayed from now on.
pub(crate) fn install(seed: u64) {
    SEED.store(seed, Relaxed);
    mutants::install(hook);
}

/// Gives the calling thread its own stream of delays.
pub(crate) fn seed_thread(stream: u64) {
    RANDOM.with(|random| random.resume(Random::new(SEED.load(Relaxed), stream)));
}

/// Whether the calling thread slept at its last point.
pub(crate) fn is_late() -> bool {
    LATE.get()
}

fn hook(point: Point) {
    RANDOM.with(|random| delay(point, random));
}

fn delay(point: Point, random: &Random) {
    let (yield_one_in, pause_one_in) = chances(point);
    let late = random.one_in(if LATE.get() { 2 } else { pause_one_in });
    LATE.set(late);
    if late {
        let stalls = matches!(point, Point::IndexChosen | Point::HeadLoaded);
        let longest_us = if stalls { STALL_MAX_US } else { PAUSE_MAX_US };
        thread::sleep(Duration::from_micros(1 + random.below(longest_us)));
    } else if random.one_in(yield_one_in) {
        thread::yield_now();
    } else if random.one_in(8) {
        spin(random.below(SPIN_MAX));
    }
}

/// How seldom a thread gives up the CPU here, and how seldom it sleeps.
const fn chances(point: Point) -> (u64, u64) {
    match point {
        // Every section passes these.
        Point::EnterBeforeStore | Point::Entered | Point::LeaveBeforeStore | Point::Left => {
            (128, 1024)
        }
        Point::IndexChosen => (128, 2048),
        // Every grace period or update passes these.
        Point::Unlinked | Point::Fenced | Point::Announced | Point::Summed => (8, 64),
        Point::BatchClosed | Point::BeforeCallbacks | Point::Gathered => (8, 32),
        Point::BorrowPaid => (8, 32),
        // Every callback passes this.
        Point::Added => (512, 8192),
        Point::Charged | Point::Leaving => (8, 64),
        // Look-ups and updates of maps pass these.
        Point::SlotFound | Point::Protecting => (32, 512),
        Point::SlotTagged | Point::BucketLocked | Point::BucketMoving => (32, 256),
        // These are rare.
        Point::NodeSought | Point::HeadLoaded => (4, 16),
        Point::BeforeMark | Point::Marked => (4, 8),
        Point::BeforeUnregister | Point::Unregistered | Point::Orphaned => (4, 8),
        Point::TableHeld | Point::TableAwaited | Point::TableUsed | Point::BucketClaimed => (4, 8),
    }
}
