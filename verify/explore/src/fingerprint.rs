//! Fingerprints of states: 128 bits in which two different states hardly ever agree.
//!
//! A large part of an exploration goes into them, and no thread chooses states in order to have
//! them collide; so they are made by multiplication, as wyhash and foldhash do it, in two lanes
//! with keys of their own, and not by the standard library's hash, which is made to withstand
//! attacks. Most fields of a state are small: eight bytes of them are gathered for a
//! multiplication.

use core::hash::{Hash, Hasher};

/// Odd numbers without a pattern: the digits of pi.
const KEYS: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];

/// The fingerprint of a state.
pub(crate) fn of(state: &impl Hash) -> u128 {
    let mut lanes = Lanes { low: KEYS[0], high: KEYS[1], gathered: 0, bits: 0 };
    state.hash(&mut lanes);
    lanes.mix(lanes.gathered, 0);
    lanes.mix(0, 0); // so that the last value is mixed as well as those before
    (u128::from(lanes.high) << 64) | u128::from(lanes.low)
}

/// Multiplies, and folds the upper half of the product onto the lower one.
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ product as u64
}

/// The hasher.
#[derive(Default)]
pub(crate) struct Lanes {
    low: u64,
    high: u64,
    /// What is not mixed yet, the first at the bottom, and how many bits of it there are.
    gathered: u64,
    bits: u32,
}

impl Lanes {
    #[inline]
    fn mix(&mut self, first: u64, second: u64) {
        // The rotation keeps a lane from staying 0 once a product has been, and tells orders apart.
        let lane = |lane: u64, key, by| {
            fold(lane ^ first, second ^ key).wrapping_add(lane.rotate_left(by))
        };
        self.low = lane(self.low, KEYS[2], 23);
        self.high = lane(self.high, KEYS[3], 29);
    }

    /// Adds a value of less than 64 bits.
    #[inline]
    fn gather(&mut self, value: u64, bits: u32) {
        self.gathered |= value << self.bits;
        self.bits += bits;
        if self.bits >= u64::BITS {
            self.mix(self.gathered, 0);
            self.bits -= u64::BITS;
            self.gathered = value >> (bits - self.bits);
        }
    }
}

impl Hasher for Lanes {
    fn finish(&self) -> u64 {
        self.low
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (pairs, rest) = bytes.as_chunks::<16>();
        for pair in pairs {
            let pair = u128::from_le_bytes(*pair);
            self.mix(pair as u64, (pair >> 64) as u64);
        }
        let (words, rest) = rest.as_chunks();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.write_u8(*byte));
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.gather(u64::from(value), u8::BITS);
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.gather(u64::from(value), u32::BITS);
    }

    /// Mixed at once, with what was gathered.
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.mix(value, self.gathered);
        (self.gathered, self.bits) = (0, 0);
    }

    /// Variants and lengths, hardly ever more than a byte.
    #[inline]
    fn write_usize(&mut self, value: usize) {
        let byte = value.min(255);
        self.write_u8(byte as u8);
        if byte == 255 {
            self.write_u64(value as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn states_that_differ_little_have_nothing_in_common() {
        let mut seen = HashSet::new();
        let mut halves = HashSet::new();
        for a in 0..64u8 {
            for b in 0..64u64 {
                for c in [[0u32, 1], [1, 0], [0, 0]] {
                    let fingerprint = of(&(a, b, c));
                    assert!(seen.insert(fingerprint), "{a} {b} {c:?}");
                    // Each half alone tells so few apart, too.
                    assert!(halves.insert((0, fingerprint as u64)));
                    assert!(halves.insert((1, (fingerprint >> 64) as u64)));
                }
            }
        }
    }

    #[test]
    fn every_bit_of_a_value_reaches_half_of_the_fingerprint() {
        for bit in 0..64 {
            let changed = (of(&[7u64, 0, 9]) ^ of(&[7u64, 1 << bit, 9])).count_ones();
            assert!((32..=96).contains(&changed), "bit {bit} changes {changed}");
        }
    }
}
