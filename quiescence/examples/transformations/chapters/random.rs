//! A generator of numbers for each thread: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

/// A generator that its seed decides.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// The step of the generator: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads the bits of a number over a word.
#[inline]
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Random {
    /// The generator of one thread of a run.
    pub fn new(thread: usize, seed: u64) -> Self {
        Self(mix(seed ^ (thread as u64 + 1).wrapping_mul(STEP)))
    }

    /// The next number.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `end`, which is less than 2^32.
    #[inline]
    pub fn below(&mut self, end: usize) -> usize {
        ((self.number() >> 32).wrapping_mul(end as u64) >> 32) as usize
    }
}
