//! The control: two operations whose price is known to stay, so that a CPU which has become slower
//! gives itself away: a load that waits for the one before it, which tells the clock's frequency,
//! and instructions that wait for none, which tell whether somebody else works on the other thread
//! of the core: also who belongs to another virtual machine, and is in no statistics of this one.
//!
//! Of several threads, also where their CPUs are: all of them price the instructions at once, and
//! two throw a line to each other ([`Ball`]).
//!
//! An atomic addition to a line of one's own is no control: it costs 4.2 to 6.6 ticks on an idle
//! Zen 4, by what the store buffer holds.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::clock::{ns_of, ticks};

/// A price is the least of so many batches: what an interrupt adds to the others is no price.
const BATCHES: u32 = 4;
/// Operations of a batch: some microseconds.
const STREAMS: usize = 200;
const LOADS: usize = 2_000;
/// A ring of words that fits into any first-level cache.
const RING: usize = 512;
/// Up to how many times the best price one is usual.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    /// Of loads: the clock.
    pub(super) loads: f64,
    /// Of instructions, measured in loads: the core.
    pub(super) in_loads: f64,
    /// The best of these is that at the end of the lowest part of so many.
    pub(super) best_of: usize,
}

/// For a figure.
pub(super) const USUAL: Usual = Usual { loads: 1.1, in_loads: 1.1, best_of: BEST_OF };
/// For a figure of one thread whose operations are all alike. What makes instructions 5 % dearer,
/// now and then, on a core of which another virtual machine has the other thread, makes stores and
/// what waits for them 20 to 80 % dearer. Others work on the core through most of some runs, and a
/// few moments are its own.
pub(super) const USUAL_EVEN: Usual = Usual { loads: 1.1, in_loads: 1.05, best_of: 50 };
/// For what is only compared with rows of the same passes: on a core whose other thread works, both
/// are slower.
pub(super) const USUAL_COMPARED: Usual = Usual { loads: 2.0, in_loads: 2.0, best_of: BEST_OF };
/// Instructions cost so many times more, measured in loads, while the core's other thread works:
/// twice as much on a Zen 4. A clock that is slower makes both dearer.
const SHARED: f64 = 1.25;
/// Batches that threads do at once: their median is of the time in which all are at it.
const AT_ONCE: usize = 25;

/// Throws of a batch, there and back, and how long all batches may take: threads on one CPU would
/// take turns of milliseconds.
const THROWS: u64 = 16;
const THROWN_WITHIN: Duration = Duration::from_micros(500);
/// Looks between two at the clock.
const LOOKS: u32 = 256;
/// Two ways are one distance up to this ratio: of 160 throws in one place the longest took half as
/// much again as the shortest; a core with another cache is four times as far.
const SAME_DISTANCE: f64 = 2.0;

/// What the control cost: ticks for the instructions and for the loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price([u64; 2]);

impl Price {
    /// Of both the higher one.
    pub(super) fn worse(self, other: Price) -> Price {
        Price([0, 1].map(|which| self.0[which].max(other.0[which])))
    }

    /// With this for the instructions.
    pub(super) fn at_once(self, stream: u64) -> Price {
        Price([stream, self.0[1]])
    }

    /// What the instructions cost, measured in loads.
    fn in_loads(self) -> f64 {
        self.0[0] as f64 / self.0[1].max(1) as f64
    }
}

/// Instructions in a [`stream`].
pub(crate) const STREAM: u64 = 8 * 8;

/// Instructions of four chains that share nothing, in operations that no compiler merges and no
/// vector unit does at once.
#[inline(always)]
pub(crate) fn stream(state: &mut [u64; 8]) {
    let [a, b, c, d, e, f, g, h] = state;
    for _ in 0..8 {
        *a = a.wrapping_add(*b);
        *c ^= *d;
        *e = e.rotate_left(9);
        *g = g.wrapping_sub(*h);
        *b ^= *a;
        *d = d.wrapping_sub(*c);
        *e = e.wrapping_add(*f);
        *h |= *g;
    }
    *f = black_box(*f);
}

/// What is timed.
#[derive(Debug)]
pub(super) struct Control {
    ring: Vec<u32>,
}

impl Control {
    pub(super) fn new() -> Control {
        // Any odd step visits all of a ring whose length is a power of two.
        let ring = (0..RING).map(|at| ((at + 197) % RING) as u32).collect();
        Control { ring }
    }

    /// What the instructions cost while other threads ask for the same; who waits by spinning
    /// leaves a core that is shared to the other.
    pub(super) fn at_once() -> u64 {
        let mut all: [u64; AT_ONCE] = std::array::from_fn(|_| time(streams));
        *all.select_nth_unstable(AT_ONCE / 2).1
    }

    /// The price now.
    pub(super) fn price(&self) -> Price {
        let least = |batch: &dyn Fn()| (0..BATCHES).map(|_| time(batch)).min().unwrap_or_default();
        let load = || {
            let mut at = 0;
            for _ in 0..LOADS {
                at = self.ring[at] as usize;
            }
            black_box(at);
        };
        Price([least(&streams), least(&load)])
    }
}

fn time(batch: impl Fn()) -> u64 {
    let begin = ticks();
    batch();
    ticks().saturating_sub(begin)
}

fn streams() {
    let mut state = black_box([1, 2, 3, 4, 5, 6, 7, 8]);
    (0..STREAMS).for_each(|_| stream(&mut state));
    black_box(state);
}

/// All prices of a run.
#[derive(Debug)]
pub(super) struct Prices {
    /// In their order of time.
    all: Vec<Price>,
    /// Of loads, sorted.
    loads: Vec<u64>,
    /// Of instructions, measured in loads, sorted: while these had their usual price.
    in_loads: Vec<f64>,
}

/// The best price is that at the end of the lowest part of so many: a CPU may be faster than usual
/// for a moment.
const BEST_OF: usize = 10;
/// Loads that are this many times as dear as at their best are no measure of instructions.
const MEASURE: f64 = 1.02;

impl Prices {
    pub(super) const fn new() -> Prices {
        Prices { all: Vec::new(), loads: Vec::new(), in_loads: Vec::new() }
    }

    pub(super) fn add(&mut self, price: Price) {
        self.all.push(price);
        let loads = price.0[1];
        self.loads.insert(self.loads.partition_point(|known| *known < loads), loads);
        if self.is_usual_clock(price, MEASURE) {
            let in_loads = price.in_loads();
            let place = self.in_loads.partition_point(|known| *known < in_loads);
            self.in_loads.insert(place, in_loads);
        }
    }

    fn is_usual_clock(&self, price: Price, times: f64) -> bool {
        let best = self.loads.get(self.loads.len() / BEST_OF);
        best.is_none_or(|best| price.0[1] as f64 <= *best as f64 * times)
    }

    /// Whether the CPU was as fast as at its best.
    pub(super) fn is_usual(&self, price: Price, usual: Usual) -> bool {
        let is_dearer = self.is_dearer(price, usual.in_loads, usual.best_of);
        self.is_usual_clock(price, usual.loads) && !is_dearer
    }

    /// Whether the core's other thread worked as well, by the best prices.
    pub(super) fn is_shared(&self, price: Price) -> bool {
        self.is_dearer(price, SHARED, BEST_OF)
    }

    fn is_dearer(&self, price: Price, times: f64, best_of: usize) -> bool {
        let best = self.in_loads.get(self.in_loads.len() / best_of);
        best.is_some_and(|best| price.in_loads() > times * best)
    }

    /// By how many per cent the median price differs between the first third of the run and the
    /// last one.
    pub(super) fn drift_percent(&self) -> f64 {
        let third = self.all.len() / 3;
        if third == 0 {
            return 0.0;
        }
        let drift = |which: usize| {
            let median = |prices: &[Price]| {
                let mut prices: Vec<u64> = prices.iter().map(|price| price.0[which]).collect();
                prices.sort_unstable();
                prices[third / 2] as f64
            };
            let (first, last) =
                (median(&self.all[..third]), median(&self.all[self.all.len() - third..]));
            100.0 * (first / last).max(last / first) - 100.0
        };
        drift(0).max(drift(1))
    }
}

/// What two threads throw to each other: how long a line takes from one CPU to the other tells
/// whether these are threads of one core, or cores that share a cache, or others.
#[derive(Debug)]
pub(super) struct Ball {
    thrown: CachePadded<AtomicU64>,
    is_down: CachePadded<AtomicBool>,
}

impl Ball {
    /// Not thrown yet.
    pub(super) const fn new() -> Ball {
        let (thrown, is_down) = (AtomicU64::new(0), AtomicBool::new(false));
        Ball { thrown: CachePadded::new(thrown), is_down: CachePadded::new(is_down) }
    }

    /// As new, while no thread throws.
    pub(super) fn reset(&self) {
        // Relaxed: who lets the threads begin publishes both.
        self.thrown.store(0, Ordering::Relaxed);
        self.is_down.store(false, Ordering::Relaxed);
    }

    /// Has threads 0 and 1 throw it and the others look on, all until it is over. The ticks of one
    /// way, to thread 0; nothing if that took too long.
    pub(super) fn throw(&self, me: usize) -> Option<u64> {
        let begin = Instant::now();
        let mut least = u64::MAX;
        for batch in 0..u64::from(BATCHES) {
            let from = ticks();
            for throw in 0..THROWS {
                let there = 2 * (batch * THROWS + throw) + 1;
                let is_caught = match me {
                    0 => self.put(there) && self.wait(there + 1, begin),
                    1 => self.wait(there, begin) && self.put(there + 1),
                    _ => self.wait(there + 1, begin),
                };
                if !is_caught {
                    return None;
                }
            }
            least = least.min(ticks().saturating_sub(from) / (2 * THROWS));
        }
        (me == 0).then_some(least)
    }

    fn put(&self, times: u64) -> bool {
        // Release and Acquire: as one would hand over what lies on the line.
        self.thrown.store(times, Ordering::Release);
        true
    }

    /// Waits until it was thrown so often; whether it was in time.
    fn wait(&self, times: u64, begin: Instant) -> bool {
        for looks in 1_u32.. {
            if self.thrown.load(Ordering::Acquire) >= times {
                return true;
            }
            if looks.is_multiple_of(LOOKS) {
                // Relaxed: it ends waits and publishes nothing.
                let is_late = begin.elapsed() > THROWN_WITHIN;
                self.is_down.fetch_or(is_late, Ordering::Relaxed);
                if self.is_down.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        false
    }
}

/// How far apart the CPUs of threads were, which a hypervisor moves, and a scheduler does.
#[derive(Debug)]
pub(super) struct Distances {
    /// All that was seen, sorted.
    all: Vec<u64>,
    /// The lowest of those that are one distance and the most. Kept, since each slice asks for it.
    usual: Option<u64>,
}

impl Distances {
    pub(super) const fn new() -> Distances {
        Distances { all: Vec::new(), usual: None }
    }

    pub(super) fn add(&mut self, ticks: u64) {
        self.all.insert(self.all.partition_point(|known| *known < ticks), ticks);
        let (mut end, mut most) = (0, 0);
        for (begin, lowest) in self.all.iter().enumerate() {
            while self.all.get(end).is_some_and(|ticks| is_same(*lowest, *ticks)) {
                end += 1;
            }
            // Of several with as many the first: the nearest.
            if end - begin > most {
                (most, self.usual) = (end - begin, Some(*lowest));
            }
        }
    }

    /// Whether the CPUs were as far apart as mostly.
    pub(super) fn is_usual(&self, ticks: u64) -> bool {
        self.usual.is_none_or(|usual| ticks >= usual && is_same(usual, ticks))
    }

    /// How far apart they mostly were, in nanoseconds.
    pub(super) fn usual_ns(&self) -> Option<f64> {
        self.usual.map(ns_of)
    }
}

/// Whether what is no nearer is as far.
fn is_same(lowest: u64, ticks: u64) -> bool {
    ticks as f64 <= lowest as f64 * SAME_DISTANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_usual_that_is_near_the_best_and_no_single_one_is_the_best() {
        let mut prices = Prices::new();
        assert!(prices.is_usual(Price([500, 500]), USUAL), "nothing is known yet");
        prices.add(Price([50, 50]));
        prices.add(Price([50, 200]));
        (0..60).for_each(|_| prices.add(Price([100, 200])));
        assert!(prices.is_usual(Price([110, 200]), USUAL));
        assert!(!prices.is_usual(Price([111, 200]), USUAL));
        assert!(!prices.is_usual(Price([106, 200]), USUAL_EVEN));
        assert!(prices.is_usual(Price([114, 219]), USUAL), "the clock was slower");
        assert!(!prices.is_usual(Price([100, 221]), USUAL));
        assert_eq!(Price([1, 5]).worse(Price([2, 3])), Price([2, 5]));
    }

    /// The best price was that of nine tenths of the run, and figures were those of half a core.
    #[test]
    fn a_core_that_others_work_on_for_most_of_a_run_is_not_taken_for_a_free_one() {
        let mut prices = Prices::new();
        for of in 0..100 {
            prices.add(Price([if of % 20 == 0 { 390 } else { 440 }, 1_000]));
        }
        assert!(prices.is_usual(Price([395, 1_000]), USUAL_EVEN));
        assert!(!prices.is_usual(Price([440, 1_000]), USUAL_EVEN));
        assert!(prices.is_usual(Price([440, 1_000]), USUAL_COMPARED), "both are slower");
    }

    /// Of 454 slices 2 counted.
    #[test]
    fn loads_that_are_dearer_for_a_moment_make_no_price_of_instructions_the_best() {
        let mut prices = Prices::new();
        for of in 0..100 {
            prices.add(Price([390, if of % 20 == 19 { 1_090 } else { 1_000 }]));
        }
        assert!(prices.is_usual(Price([395, 1_000]), USUAL_EVEN));
    }

    #[test]
    fn a_core_is_shared_whose_instructions_alone_are_dearer() {
        let mut alone = Prices::new();
        assert!(!alone.is_shared(Price([4004, 10_000])), "nothing is known yet");
        (0..10).for_each(|_| alone.add(Price([2314, 10_000])));
        assert!(alone.is_shared(Price([4004, 10_100])));
        assert!(!alone.is_shared(Price([4004, 17_000])), "the clock was slower");
        assert!(!alone.is_shared(Price([2800, 10_000])));
    }

    #[test]
    fn the_usual_distance_is_that_of_most_and_the_nearest_of_equals() {
        let mut all = Distances::new();
        let add = |all: &mut Distances, ticks: &[u64]| ticks.iter().for_each(|at| all.add(*at));
        assert!(all.is_usual(100) && all.usual_ns().is_none(), "nothing is known yet");
        add(&mut all, &[110, 430, 80, 120, 420, 39]);
        let is_usual = [39, 80, 160, 161, 420].map(|at| all.is_usual(at));
        assert_eq!(is_usual, [false, true, true, false, false]);
        add(&mut all, &[425, 435]);
        assert!(all.is_usual(430) && !all.is_usual(111), "more are far apart");
        add(&mut all, &[109]);
        assert!(all.is_usual(111), "as many are near");
    }

    #[test]
    fn a_ball_is_thrown_by_two_and_falls_down_where_one_does_not_come() {
        let ball = Ball::new();
        let (way, others) = std::thread::scope(|scope| {
            let others = [1, 2].map(|me| {
                scope.spawn({
                    let ball = &ball;
                    move || ball.throw(me)
                })
            });
            (ball.throw(0), others.map(|other| other.join().unwrap()))
        });
        assert_eq!(others, [None, None]);
        // On a machine that does something else it may have taken too long.
        assert!(way.is_none_or(|ticks| ticks > 0));
        ball.reset();
        assert_eq!((ball.throw(0), ball.throw(1), ball.throw(2)), (None, None, None));
    }

    #[test]
    fn a_drift_is_seen_whichever_way_it_goes() {
        for (first, last) in [(100, 130), (130, 100)] {
            let mut prices = Prices::new();
            assert_eq!(prices.drift_percent(), 0.0);
            (0..10).for_each(|_| prices.add(Price([first, 100])));
            (0..10).for_each(|_| prices.add(Price([last, 100])));
            assert!((prices.drift_percent() - 30.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_control_has_a_price() {
        let Price(price) = Control::new().price();
        assert!(price.iter().all(|ticks| *ticks > 0), "{price:?}");
    }
}
