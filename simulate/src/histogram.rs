//! Histograms of whole numbers: exact for small ones, to 3 % for large ones.
//!
//! Log-linear: each power of two is divided into 32 equal parts. The idea is HdrHistogram's. This
//! one has integers only, and no range to choose, so a report is the same on every machine.

use serde::Serialize;

/// Parts of a power of two, as a power of two.
const PART_BITS: u32 = 5;
const PARTS: u64 = 1 << PART_BITS;

/// How often each number came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// What a histogram comes down to. All zero if nothing came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How many numbers came.
    pub count: u64,
    /// Their mean, rounded down.
    pub mean: u64,
    /// The smallest.
    pub min: u64,
    /// Half are not above this (to 3 %, as the next two).
    pub p50: u64,
    /// Nine of ten.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Histogram {
    /// Counts a number once.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts a number `times` times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let index = index(value);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.min = if self.total == 0 { value } else { self.min.min(value) };
        self.counts[index] += times;
        self.total += times;
        self.sum += u128::from(value) * u128::from(times);
        self.max = self.max.max(value);
    }

    /// The largest number of the part that holds the one which `ppm` of 1,000,000 are not above.
    pub fn at_ppm(&self, ppm: u32) -> u64 {
        let rank = (u128::from(self.total) * u128::from(ppm)).div_ceil(1_000_000).max(1);
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                return last_of(index).min(self.max);
            }
        }
        self.max
    }

    /// Mean, quantiles and extremes.
    pub fn summary(&self) -> Summary {
        if self.total == 0 {
            return Summary::default();
        }
        Summary {
            count: self.total,
            mean: (self.sum / u128::from(self.total)) as u64,
            min: self.min,
            p50: self.at_ppm(500_000),
            p90: self.at_ppm(900_000),
            p99: self.at_ppm(990_000),
            max: self.max,
        }
    }
}

/// The part that a number falls into.
fn index(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let power = value.ilog2();
    let part = (value >> (power - PART_BITS)) - PARTS;
    (u64::from(power - PART_BITS + 1) * PARTS + part) as usize
}

/// The largest number of a part.
fn last_of(index: usize) -> u64 {
    let index = index as u64;
    if index < PARTS {
        return index;
    }
    let shift = index / PARTS - 1;
    let first = (index % PARTS + PARTS) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_lies_in_its_part_and_near_its_end() {
        let mut values: Vec<u64> = (0..10_000).collect();
        values.extend((0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, u64::MAX >> bit]));
        for value in values {
            let last = last_of(index(value));
            assert!(last >= value, "{value} is above {last}");
            assert!(last - value <= value / PARTS, "{value} is far from {last}");
            assert!(last == u64::MAX || index(last + 1) == index(value) + 1);
        }
    }

    #[test]
    fn quantiles_of_the_first_thousand_numbers() {
        let mut histogram = Histogram::default();
        (1..=1_000).for_each(|value| histogram.record(value));
        let summary = histogram.summary();
        assert_eq!((summary.count, summary.mean), (1_000, 500));
        assert_eq!((summary.min, summary.max), (1, 1_000));
        assert!((500..=516).contains(&summary.p50), "{summary:?}");
        assert!((900..=928).contains(&summary.p90), "{summary:?}");
        assert!((990..=1_000).contains(&summary.p99), "{summary:?}");
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!(Histogram::default().summary(), Summary::default());
    }
}
