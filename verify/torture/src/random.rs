//! The torture's generator: small, seeded, one per thread.
//!
//! It is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). The hooks inside the library draw from it at
//! every step of every reader, so it must cost next to nothing, and it must work while a thread's
//! other thread-locals are being destroyed.

use std::cell::Cell;

/// A generator of 64-bit numbers.
pub(crate) struct Random(Cell<u64>);

/// A clone draws other numbers.
impl Clone for Random {
    fn clone(&self) -> Self {
        Self(Cell::new(self.next()))
    }
}

impl Random {
    /// The generator number `stream` of a run.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Cell::new(scramble(seed ^ scramble(stream))))
    }

    /// Goes on as another one would.
    pub(crate) fn resume(&self, other: Self) {
        self.0.swap(&other.0);
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        scramble(self.0.get())
    }

    /// A number below `limit`, which is not 0. The bias is far below what matters here.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A number below `limit`, which is not 0; low ones come more often.
    pub(crate) fn below_mostly_low(&self, limit: u64) -> u64 {
        let limit = 1 + self.below(limit);
        self.below(limit)
    }

    /// One of these; there are some.
    pub(crate) fn pick<'a, T>(&self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// True once in `n` on average.
    pub(crate) fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Mixes all bits of `x` into all bits of the answer.
pub(crate) const fn scramble(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_stream_give_the_same_numbers() {
        let draw = |seed, stream| {
            let random = Random::new(seed, stream);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn a_chance_is_about_what_it_says() {
        let random = Random::new(7, 0);
        let hits = (0..80_000).filter(|_| random.one_in(8)).count();
        assert!((9_000..11_000).contains(&hits), "{hits}");
    }
}
