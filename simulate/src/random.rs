//! Pseudorandom numbers that are the same on every machine.
//!
//! SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
//! Draws from it use integers only: floating-point logarithms differ between C libraries, and a run
//! must be repeatable byte for byte.

/// A seeded generator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Random {
    state: u64,
}

/// Bits behind the point in [`log2_fixed`].
const FRACTION_BITS: u32 = 16;

/// ln 2, with 32 bits behind the point.
const LN_2: u64 = 2_977_044_472;

impl Random {
    /// The generator of this seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A generator of its own for somebody, so that what one draws does not change what another
    /// does.
    pub(crate) fn split(&mut self) -> Self {
        Self::new(self.next())
    }

    /// 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is at least 1 (0 counts as 1).
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end.max(1))) >> 64) as u64
    }

    /// Between a half of the mean and three halves of it.
    pub(crate) fn about(&mut self, mean: u64) -> u64 {
        mean / 2 + self.below(mean + 1)
    }

    /// True `parts` times of 1,000,000.
    pub(crate) fn chance_ppm(&mut self, parts: u32) -> bool {
        self.below(1_000_000) < u64::from(parts)
    }

    /// Exponentially distributed with this mean: the time to the next of events that do not know of
    /// each other. Exact to about 1 in 10,000; never more than 45 times the mean.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        // -ln(u) for u uniform in (0, 1]: with u = x / 2^64, 64 ln 2 - ln x.
        let x = self.next() | 1;
        let log2 = (64 << FRACTION_BITS) - log2_fixed(x);
        let ln = (u128::from(log2) * u128::from(LN_2)) >> 32;
        ((ln * u128::from(mean)) >> FRACTION_BITS) as u64
    }
}

/// The binary logarithm of `x`, which is not 0, with [`FRACTION_BITS`] bits behind the point: the
/// integer part is the highest bit's place, the others come from squaring what is left.
fn log2_fixed(x: u64) -> u64 {
    let whole = x.ilog2();
    // What is left, in [1, 2), with 63 bits behind the point.
    let mut left = x << (63 - whole);
    let mut fraction = 0;
    for _ in 0..FRACTION_BITS {
        let square = (u128::from(left) * u128::from(left)) >> 63;
        // Without a branch, which could not be predicted: this is half of what a draw costs.
        let bit = (square >> 64) as u64;
        let (halved, kept) = ((square >> 1) as u64, square as u64);
        fraction = fraction << 1 | bit;
        left = kept ^ ((kept ^ halved) & bit.wrapping_neg());
    }
    u64::from(whole) << FRACTION_BITS | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_paper() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_have_the_mean_they_were_asked_for() {
        let mut random = Random::new(7);
        let draws = 100_000;
        let sum: u64 = (0..draws).map(|_| random.exponential(1_000)).sum();
        assert!((990..=1_010).contains(&(sum / draws)), "mean {}", sum / draws);
        let sum: u64 = (0..draws).map(|_| random.below(1_000)).sum();
        assert!((490..=510).contains(&(sum / draws)), "mean {}", sum / draws);
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn logarithms_of_powers_are_exact() {
        for bit in 0..64 {
            assert_eq!(log2_fixed(1 << bit), bit << FRACTION_BITS);
        }
    }
}
