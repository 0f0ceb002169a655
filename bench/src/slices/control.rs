//! The control: two operations whose cost is known to be constant, so that it shows when a CPU has
//! become slower. One is a chain of dependent loads, which shows the clock's frequency. The other
//! is independent instructions, which show whether other code runs on the second hardware thread of
//! the core, even that of another virtual machine, which no statistics of this one contain.
//!
//! If a row has several threads, the control also shows where their CPUs are: all threads time the
//! instructions at once, and two of them pass a cache line back and forth ([`Ball`]).
//!
//! An atomic addition to a thread's own line would be no control: on an idle Zen 4 it costs 4.2 to
//! 6.6 ticks, depending on what is in the store buffer.

use std::array;
use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::clock::{all_ns_of, ticks};
use crate::statistics::median;

/// A price is the least of this many batches: interrupts make the others dearer.
const BATCHES: u32 = 4;
/// Operations in a batch, which takes some microseconds.
const STREAMS: usize = 200;
const LOADS: usize = 2_000;
/// The length of a ring of words that fits into any first-level cache.
const WORDS: usize = 512;
/// What the figure of a row is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    /// To be known.
    Figure,
    /// The same, of operations that are all alike, so that parts of a slice that differ tell of a
    /// CPU that was slower during some of them.
    Even,
    /// To be compared with those of rows beside it, slice by slice. Its threads may sleep until
    /// another one of the row is done with something, as on a lock: no CPU was taken from them
    /// then.
    Compared,
}

impl Aim {
    /// Up to which multiple of the best price a price is usual: for the loads, which show the
    /// clock; and for the instructions, in units of loads, which show the core. The best price in
    /// loads is the quantile 1 / the third.
    const fn usual(self) -> (f64, f64, usize) {
        match self {
            Self::Figure => (1.1, 1.1, BEST_OF),
            // When another virtual machine uses the second thread of the core, instructions become
            // 5 % dearer, but stores and what waits for them 20 to 80 %. In some runs that lasts
            // most of the time, and the core is free for moments only.
            Self::Even => (1.1, 1.05, 50),
            // On a shared core both are slower.
            Self::Compared => (2.0, 2.0, BEST_OF),
        }
    }
}

/// While the core's other thread works, instructions cost at least this many times as much, in
/// units of loads: twice as much on a Zen 4. A slower clock makes both dearer.
const SHARED: f64 = 1.25;
/// Batches that all threads do at once. Their median is from the time in which all are running.
const AT_ONCE: usize = 25;

/// Throws in a batch, there and back; and the time limit for all batches: threads that share a CPU
/// would take milliseconds for each turn.
const THROWS: u64 = 16;
const THROWN_WITHIN: Duration = Duration::from_micros(500);
/// On a line that nobody passes any more.
const DOWN: u64 = u64::MAX;
/// How often a thread checks the line between two looks at the clock.
const LOOKS: u32 = 256;
/// Two times count as one distance up to this ratio. Of 160 throws between the same CPUs the
/// longest took 1.5 times as long as the shortest; a core with another cache is four times as far.
const SAME_DISTANCE: f64 = 2.0;

/// The cost of the control, in ticks: of the instructions and of the loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price([u64; 2]);

impl Price {
    /// The price now.
    pub(super) fn now() -> Price {
        let least = |batch: &dyn Fn()| (0..BATCHES).map(|_| time(batch)).min().unwrap_or_default();
        let ring = &*RING;
        let load = || {
            let mut at = 0;
            for _ in 0..LOADS {
                at = ring[at] as usize;
            }
            black_box(at);
        };
        Price([least(&streams), least(&load)])
    }

    /// The higher price of both, for each operation.
    pub(super) fn worse(self, other: Price) -> Price {
        Price([0, 1].map(|which| self.0[which].max(other.0[which])))
    }

    /// This price, with `stream` for the instructions.
    pub(super) fn at_once(self, stream: u64) -> Price {
        Price([stream, self.0[1]])
    }

    /// The cost of the instructions, in units of loads.
    fn in_loads(self) -> f64 {
        self.0[0] as f64 / self.0[1].max(1) as f64
    }
}

/// Instructions in a [`stream`].
pub(crate) const STREAM: u64 = 8 * 8;

/// Four independent chains of instructions, which no compiler merges and no vector unit executes at
/// once.
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

/// What the loads walk round. Any odd step visits all of a ring whose length is a power of two.
static RING: LazyLock<[u32; WORDS]> =
    LazyLock::new(|| array::from_fn(|at| ((at + 197) % WORDS) as u32));

/// The cost of the instructions while other threads time the same. A thread that waits by spinning
/// leaves most of a shared core to the other.
pub(super) fn instructions_at_once() -> u64 {
    let mut all: [u64; AT_ONCE] = array::from_fn(|_| time(streams));
    *all.select_nth_unstable(AT_ONCE / 2).1
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
#[derive(Default)]
pub(super) struct Prices {
    /// In order of time.
    all: Vec<Price>,
    /// Of loads, sorted.
    loads: Vec<u64>,
    /// Of instructions, in units of loads, sorted: those measured while the loads had their usual
    /// price.
    in_loads: Vec<f64>,
}

/// The best price is the quantile 1 / `BEST_OF`: a CPU may be faster than usual for a moment.
const BEST_OF: usize = 10;
/// Loads that are this many times as dear as at their best cannot measure instructions.
const MEASURE: f64 = 1.02;

impl Prices {
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

    /// Whether the CPU was about as fast as at its best.
    pub(super) fn is_usual(&self, price: Price, aim: Aim) -> bool {
        let (loads, in_loads, best_of) = aim.usual();
        self.is_usual_clock(price, loads) && !self.is_dearer(price, in_loads, best_of)
    }

    /// Whether the core's other thread worked too, judged by the best prices.
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
            let middle = |prices: &[Price]| {
                median(&mut Vec::from_iter(prices.iter().map(|price| price.0[which] as f64)))
            };
            let (first, last) =
                (middle(&self.all[..third]), middle(&self.all[self.all.len() - third..]));
            100.0 * (first / last).max(last / first) - 100.0
        };
        drift(0).max(drift(1))
    }
}

/// A cache line that two threads pass back and forth. The time of a pass shows whether their CPUs
/// are threads of one core, cores that share a cache, or farther apart.
#[derive(Default)]
pub(super) struct Ball(CachePadded<AtomicU64>);

impl Ball {
    /// Resets it, while no thread passes it.
    pub(super) fn reset(&self) {
        // Relaxed: the thread that lets the others begin publishes it.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Threads 0 and 1 pass the line while the others watch, until all have finished. Returns to
    /// thread 0 the ticks of one pass; `None` if it took too long.
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
        // Release and Acquire: as if data on the line were handed over.
        self.0.store(times, Ordering::Release);
        true
    }

    /// Waits until it was passed `times` times. Returns whether that was in time. The first thread
    /// to give up lets it fall for all: one that comes late does not wait as long again.
    fn wait(&self, times: u64, begin: Instant) -> bool {
        let mut looks = 0_u32;
        loop {
            let thrown = self.0.load(Ordering::Acquire);
            if thrown >= times {
                return thrown != DOWN;
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) && begin.elapsed() > THROWN_WITHIN {
                self.put(DOWN);
                return false;
            }
        }
    }
}

/// How far apart the CPUs of the threads were. A hypervisor changes that, and so does a scheduler.
#[derive(Default)]
pub(super) struct Distances {
    /// All measured distances, sorted.
    all: Vec<u64>,
    /// The least of the most frequent distance. It is kept, since each slice asks for it.
    usual: Option<u64>,
}

impl Distances {
    pub(super) fn add(&mut self, ticks: u64) {
        self.all.insert(self.all.partition_point(|known| *known < ticks), ticks);
        let (mut end, mut most) = (0, 0);
        for (begin, lowest) in self.all.iter().enumerate() {
            while self.all.get(end).is_some_and(|ticks| is_same(*lowest, *ticks)) {
                end += 1;
            }
            // Of several that are equally frequent the first: the nearest.
            if end - begin > most {
                (most, self.usual) = (end - begin, Some(*lowest));
            }
        }
    }

    /// Whether the CPUs were at their usual distance.
    pub(super) fn is_usual(&self, ticks: u64) -> bool {
        self.usual.is_none_or(|usual| ticks >= usual && is_same(usual, ticks))
    }

    /// The usual distance, in nanoseconds.
    pub(super) fn usual_ns(&self) -> Option<f64> {
        self.usual.map(all_ns_of)
    }
}

/// Whether `ticks`, which is at least `lowest`, is the same distance.
fn is_same(lowest: u64, ticks: u64) -> bool {
    ticks as f64 <= lowest as f64 * SAME_DISTANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(all: impl IntoIterator<Item = [u64; 2]>) -> Prices {
        let mut prices = Prices::default();
        all.into_iter().for_each(|price| prices.add(Price(price)));
        prices
    }

    #[test]
    fn a_price_is_usual_that_is_near_the_best_and_no_single_one_is_the_best() {
        assert!(prices([]).is_usual(Price([500, 500]), Aim::Figure), "nothing is known yet");
        let prices = prices([vec![[50, 50], [50, 200]], vec![[100, 200]; 60]].concat());
        assert!(prices.is_usual(Price([110, 200]), Aim::Figure));
        assert!(!prices.is_usual(Price([111, 200]), Aim::Figure));
        assert!(!prices.is_usual(Price([106, 200]), Aim::Even));
        assert!(prices.is_usual(Price([114, 219]), Aim::Figure), "the clock was slower");
        assert!(!prices.is_usual(Price([100, 221]), Aim::Figure));
        assert_eq!(Price([1, 5]).worse(Price([2, 3])), Price([2, 5]));
    }

    /// A fault: the best price was that of nine tenths of the run, and figures were those of half a
    /// core.
    #[test]
    fn a_core_that_others_work_on_for_most_of_a_run_is_not_taken_for_a_free_one() {
        let prices = prices((0..100).map(|of| [if of % 20 == 0 { 390 } else { 440 }, 1_000]));
        assert!(prices.is_usual(Price([395, 1_000]), Aim::Even));
        assert!(!prices.is_usual(Price([440, 1_000]), Aim::Even));
        assert!(prices.is_usual(Price([440, 1_000]), Aim::Compared), "both are slower");
    }

    /// A fault: of 454 slices 2 counted.
    #[test]
    fn loads_that_are_dearer_for_a_moment_make_no_price_of_instructions_the_best() {
        let prices = prices((0..100).map(|of| [390, if of % 20 == 19 { 1_090 } else { 1_000 }]));
        assert!(prices.is_usual(Price([395, 1_000]), Aim::Even));
    }

    #[test]
    fn a_core_is_shared_whose_instructions_alone_are_dearer() {
        assert!(!prices([]).is_shared(Price([4004, 10_000])), "nothing is known yet");
        let alone = prices([[2314, 10_000]; 10]);
        assert!(alone.is_shared(Price([4004, 10_100])));
        assert!(!alone.is_shared(Price([4004, 17_000])), "the clock was slower");
        assert!(!alone.is_shared(Price([2800, 10_000])));
    }

    #[test]
    fn the_usual_distance_is_that_of_most_and_the_nearest_of_equals() {
        let mut all = Distances::default();
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

    /// Each pass was without what two looks at the clock cost: 32 passes pay that once.
    #[test]
    fn a_distance_was_without_the_looks_of_all_its_passes() {
        let ns = |ticks| {
            let mut all = Distances::default();
            all.add(ticks);
            all.usual_ns().expect("there is one")
        };
        assert!((ns(200) / ns(100) - 2.0).abs() < 1e-9, "{} and {}", ns(100), ns(200));
    }

    #[test]
    fn a_ball_is_thrown_by_two_and_falls_down_where_one_does_not_come() {
        let ball = Ball::default();
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
        assert_eq!(ball.0.load(Ordering::Relaxed), DOWN, "those who come late throw no more");
    }

    #[test]
    fn a_drift_is_seen_whichever_way_it_goes() {
        for (first, last) in [(100, 130), (130, 100)] {
            assert_eq!(prices([]).drift_percent(), 0.0);
            let prices = prices([[[first, 100]; 10], [[last, 100]; 10]].concat());
            assert!((prices.drift_percent() - 30.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_control_has_a_price() {
        let Price(price) = Price::now();
        assert!(price.iter().all(|ticks| *ticks > 0), "{price:?}");
    }
}
