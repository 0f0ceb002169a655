//! Fingerprints of states: 128 bits in which two different states hardly ever agree.
//!
//! Half of the time of an exploration goes into them, and no thread chooses states in order to have
//! them collide; so they are made by multiplication, as wyhash and foldhash do it, in two lanes
//! with keys of their own, and not by the standard library's hash, which is made to withstand
//! attacks.

use core::hash::{Hash, Hasher};

/// Odd numbers without a pattern: the digits of pi.
const KEYS: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];

/// The fingerprint of a state.
pub(crate) fn of(state: &impl Hash) -> u128 {
    let mut lanes = Lanes { low: KEYS[0], high: KEYS[1] };
    state.hash(&mut lanes);
    lanes.write_u64(0); // so that the last value is mixed as well as those before
    (u128::from(lanes.high) << 64) | u128::from(lanes.low)
}

/// Multiplies, and folds the upper half of the product onto the lower one.
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ product as u64
}

struct Lanes {
    low: u64,
    high: u64,
}

impl Hasher for Lanes {
    fn finish(&self) -> u64 {
        self.low
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // The rotation keeps a lane from staying 0 once a product has been, and tells orders apart.
        self.low = fold(self.low ^ value, KEYS[2]).wrapping_add(self.low.rotate_left(23));
        self.high = fold(self.high ^ value, KEYS[3]).wrapping_add(self.high.rotate_left(29));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
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
