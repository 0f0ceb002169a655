//! Costs that exist only between CPUs: moving a cache line, and sharing one.
//!
//! A line is moved by turns: one CPU changes a few hundred lines that the other one changed last,
//! and only that is timed, not the handing over of the turn.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::timing::pin;
use crate::statistics::{Spread, spread};

/// Lines moved in a turn: enough for the clock, few enough to stay in any first-level cache.
const LINES: usize = 128;
/// The first turns find cold lines and cold code.
const TURNS_TO_WARM: u32 = 8;
/// Turns enough for quartiles, also when a budget is tiny.
const TURNS_MIN: u32 = 32;
/// The turn after the last one.
const OVER: u32 = u32::MAX;
/// Looks at the turn before the CPU is offered to others: a guest's other CPU may not be running.
const LOOKS_BEFORE_YIELD: u32 = 10_000;

/// A word with its neighbours kept away: two lines, since some CPUs fetch lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// What is done to a line that the other CPU wrote last.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// An atomic increment.
    Increment,
    /// A compare-and-swap that guesses the old value.
    BlindSwap,
    /// A load, then a compare-and-swap: the line comes shared first and is invalidated after.
    LoadAndSwap,
}

/// Nanoseconds to change one line that the other CPU changed last.
pub(super) fn transfer(
    change: Change,
    cpus: (usize, usize),
    budget: Duration,
    stop: &AtomicBool,
) -> Option<Spread> {
    let lines: Vec<Line> = (0..LINES).map(|_| Line::default()).collect();
    let turn = AtomicU32::new(0);
    let side = |parity: u32, cpu: usize| {
        pin(cpu);
        take_turns(change, &lines, &turn, parity, budget, stop)
    };
    let mut samples = thread::scope(|scope| {
        let other = scope.spawn(|| side(1, cpus.1));
        // A thread of its own, so that the caller's affinity stays what it was.
        let own = scope.spawn(|| side(0, cpus.0));
        let mut samples = own.join().unwrap_or_default();
        samples.extend(other.join().unwrap_or_default());
        samples
    });
    if is_stopped(stop) || samples.is_empty() {
        return None;
    }
    samples.iter_mut().for_each(|ns| *ns /= LINES as f64);
    Some(spread(&samples))
}

/// Relaxed: the flag carries no data; it only has to be seen soon.
fn is_stopped(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

/// One side: waits for its turns, changes every line in each, and returns the time of each turn.
fn take_turns(
    change: Change,
    lines: &[Line],
    turn: &AtomicU32,
    parity: u32,
    budget: Duration,
    stop: &AtomicBool,
) -> Vec<f64> {
    let mut samples = Vec::new();
    let start = Instant::now();
    let mut mine = parity;
    loop {
        let now = wait_for_turn(turn, mine);
        if now == OVER {
            return samples;
        }
        let enough = mine >= TURNS_TO_WARM + TURNS_MIN && start.elapsed() >= budget;
        if enough || is_stopped(stop) {
            turn.store(OVER, Ordering::Release);
            return samples;
        }
        let before = Instant::now();
        change_all(change, lines, u64::from(mine));
        let elapsed = before.elapsed();
        if mine >= TURNS_TO_WARM {
            samples.push(elapsed.as_nanos() as f64);
        }
        // Release: pairs with the Acquire of the other side; it finds all lines changed.
        turn.store(mine + 1, Ordering::Release);
        mine += 2;
    }
}

/// Spins until it is turn `mine`, or over; says which.
fn wait_for_turn(turn: &AtomicU32, mine: u32) -> u32 {
    let mut looks = 0;
    loop {
        // Acquire: pairs with the Release at the end of the other side's turn.
        let now = turn.load(Ordering::Acquire);
        if now == mine || now == OVER {
            return now;
        }
        looks += 1;
        if looks % LOOKS_BEFORE_YIELD == 0 {
            thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

/// Changes every line once. Each held `turn` before, since every turn adds one to each.
fn change_all(change: Change, lines: &[Line], turn: u64) {
    for step in 0..LINES {
        // An odd multiple, so that no prefetcher learns the order.
        let word = &lines[(step * 37) % LINES].0;
        // Relaxed throughout: the turn orders the sides, and the cost is that of moving the line.
        let expected = match change {
            Change::Increment => {
                word.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            Change::BlindSwap => turn,
            Change::LoadAndSwap => word.load(Ordering::Relaxed),
        };
        let swapped =
            word.compare_exchange(expected, turn + 1, Ordering::Relaxed, Ordering::Relaxed);
        debug_assert_eq!(swapped, Ok(turn), "a line was changed out of turn");
    }
}

/// Nanoseconds that each of two CPUs needs for `operation` while both do nothing else.
pub(super) fn shared(
    cpus: (usize, usize),
    budget: Duration,
    stop: &AtomicBool,
    operation: impl Fn() + Sync,
) -> Option<Spread> {
    const CHUNK: u32 = 256;
    let both_run = AtomicU32::new(0);
    let over = AtomicBool::new(false);
    let side = |cpu: usize| {
        pin(cpu);
        // Relaxed: only the count matters, and it is seen soon.
        both_run.fetch_add(1, Ordering::Relaxed);
        while both_run.load(Ordering::Relaxed) < 2 {
            thread::yield_now();
        }
        let start = Instant::now();
        let mut samples = Vec::new();
        // Relaxed: the flag carries no data.
        while !over.load(Ordering::Relaxed) {
            let before = Instant::now();
            for _ in 0..CHUNK {
                operation();
            }
            samples.push(before.elapsed().as_nanos() as f64 / f64::from(CHUNK));
            if start.elapsed() >= budget || is_stopped(stop) {
                over.store(true, Ordering::Relaxed);
            }
        }
        samples
    };
    let samples = thread::scope(|scope| {
        let sides = [scope.spawn(|| side(cpus.0)), scope.spawn(|| side(cpus.1))];
        sides.map(|side| side.join().unwrap_or_default()).concat()
    });
    (!is_stopped(stop) && !samples.is_empty()).then(|| spread(&samples))
}

/// Runs `measure` on the first CPU while the second one runs RCU read-side sections.
pub(super) fn beside_a_reader<R: Send>(
    cpus: (usize, usize),
    measure: impl FnOnce() -> R + Send,
) -> Option<R> {
    let reading = AtomicBool::new(false);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpus.1);
            let value = quiescence::Rcu::new(0_u64);
            // Relaxed: the flags carry no data.
            while !over.load(Ordering::Relaxed) {
                black_box(*value.load(&quiescence::read()));
                reading.store(true, Ordering::Relaxed);
            }
        });
        let measured = scope.spawn(|| {
            pin(cpus.0);
            while !reading.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            measure()
        });
        let measured = measured.join().ok();
        over.store(true, Ordering::Relaxed);
        measured
    })
}
