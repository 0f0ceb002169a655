//! The control: two operations whose price is known to stay, so that a CPU which has become slower
//! gives itself away: a load that waits for the one before it, which tells the clock's frequency,
//! and instructions that wait for none, which tell whether somebody else works on the other thread
//! of the core: also who belongs to another virtual machine, and is in no statistics of this one.
//!
//! An atomic addition to a line of one's own is no control: it costs 4.2 to 6.6 ticks on an idle
//! Zen 4, by what the store buffer holds.

use std::hint::black_box;

use crate::cases::clock::ticks;

/// A price is the least of so many batches: what an interrupt adds to the others is no price.
const BATCHES: u32 = 4;
/// Operations of a batch: some microseconds.
const STREAMS: usize = 200;
const LOADS: usize = 2_000;
/// A ring of words that fits into any first-level cache.
const RING: usize = 512;
/// A price is usual up to this many times the best one, for a figure.
pub(super) const USUAL: f64 = 1.1;
/// The same, for what is only compared with rows of the same passes: on a core whose other thread
/// works, both are slower.
pub(super) const USUAL_COMPARED: f64 = 2.0;
/// Instructions cost so many times more, measured in loads, while the core's other thread works:
/// about 1.7 on a Zen 4. A clock that is slower makes both dearer.
const SHARED: f64 = 1.25;

/// What the control cost: ticks for the instructions and for the loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price([u64; 2]);

impl Price {
    /// Of both the higher one.
    pub(super) fn worse(self, other: Price) -> Price {
        Price([0, 1].map(|which| self.0[which].max(other.0[which])))
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

    /// The price now.
    pub(super) fn price(&self) -> Price {
        let least = |batch: &dyn Fn()| {
            let time = || {
                let begin = ticks();
                batch();
                ticks().saturating_sub(begin)
            };
            (0..BATCHES).map(|_| time()).min().unwrap_or_default()
        };
        let stream = || {
            let mut state = black_box([1, 2, 3, 4, 5, 6, 7, 8]);
            (0..STREAMS).for_each(|_| stream(&mut state));
            black_box(state);
        };
        let load = || {
            let mut at = 0;
            for _ in 0..LOADS {
                at = self.ring[at] as usize;
            }
            black_box(at);
        };
        Price([least(&stream), least(&load)])
    }
}

/// All prices of a run, in their order of time, and sorted.
#[derive(Debug)]
pub(super) struct Prices {
    sorted: [Vec<u64>; 2],
    all: Vec<Price>,
    /// The best price is that at the end of the lowest part of so many: a CPU may be faster than
    /// usual for a moment.
    parts: usize,
}

impl Prices {
    /// Of rows of one thread the best price is one in ten, of others one in four: the core's other
    /// thread, which makes instructions dearer, may be one's own.
    pub(super) const fn new(has_several: bool) -> Prices {
        let parts = if has_several { 4 } else { 10 };
        Prices { sorted: [Vec::new(), Vec::new()], all: Vec::new(), parts }
    }

    pub(super) fn add(&mut self, price: Price) {
        self.all.push(price);
        for (sorted, ticks) in self.sorted.iter_mut().zip(price.0) {
            sorted.insert(sorted.partition_point(|known| *known < ticks), ticks);
        }
    }

    /// The best price of the run so far.
    fn best(&self, which: usize) -> Option<u64> {
        let sorted = &self.sorted[which];
        sorted.get(sorted.len() / self.parts).copied()
    }

    /// Whether the CPU was as fast as at its best.
    pub(super) fn is_usual(&self, price: Price, times: f64) -> bool {
        let is_usual = |which| {
            self.best(which).is_none_or(|best| price.0[which] as f64 <= best as f64 * times)
        };
        is_usual(0) && is_usual(1)
    }

    /// Whether the core's other thread worked as well, by these prices of a thread that was alone.
    pub(super) fn is_shared(&self, price: Price) -> bool {
        let best = self.best(0).zip(self.best(1)).map(|(stream, load)| Price([stream, load]));
        best.is_some_and(|best| price.in_loads() > SHARED * best.in_loads())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_usual_within_a_tenth_of_the_best_and_no_single_one_is_the_best() {
        let mut prices = Prices::new(false);
        assert!(prices.is_usual(Price([500, 500]), USUAL), "nothing is known yet");
        prices.add(Price([50, 50]));
        (0..30).for_each(|_| prices.add(Price([100, 200])));
        assert!(prices.is_usual(Price([110, 219]), USUAL));
        assert!(!prices.is_usual(Price([111, 200]), USUAL));
        assert!(!prices.is_usual(Price([100, 221]), USUAL));
        assert_eq!(Price([1, 5]).worse(Price([2, 3])), Price([2, 5]));
    }

    #[test]
    fn a_core_is_shared_whose_instructions_alone_are_dearer() {
        let mut alone = Prices::new(false);
        assert!(!alone.is_shared(Price([4004, 10_000])), "nothing is known yet");
        (0..10).for_each(|_| alone.add(Price([2314, 10_000])));
        assert!(alone.is_shared(Price([4004, 10_100])));
        assert!(!alone.is_shared(Price([4004, 17_000])), "the clock was slower");
        assert!(!alone.is_shared(Price([2800, 10_000])));
    }

    #[test]
    fn a_drift_is_seen_whichever_way_it_goes() {
        for (first, last) in [(100, 130), (130, 100)] {
            let mut prices = Prices::new(false);
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
