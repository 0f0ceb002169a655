//! A few words that are read whole and now and then replaced.
//!
//! Four words whose sum is always 1: a reader that sees half of one value and half of another finds
//! another sum, and the loop says so. A writer beside readers writes every 10 microseconds.

use std::hint::black_box;
use std::sync::Arc;

use super::loops::{Loop, repeat};
use crate::serve::Copied;

/// What a cell holds.
pub(crate) type Words = [u64; 4];

/// Words whose sum is 1, all of them different for each number.
pub(crate) const fn words(number: u64) -> Words {
    let (a, b) = (number, number.wrapping_mul(3));
    let c = !number;
    [a, b, c, 1_u64.wrapping_sub(a).wrapping_sub(b).wrapping_sub(c)]
}

/// 1, of words that belong together.
#[inline(always)]
pub(crate) fn sum(words: &Words) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Reads of a cell, and something that writes it.
pub(crate) fn loads<C: Copied<4>>() -> Loop {
    let (reads, write) = halves::<C, false>();
    reads.with_writer(write)
}

/// Writes to a cell, and something that reads it.
pub(crate) fn stores<C: Copied<4>>() -> Loop {
    let (reads, write) = halves::<C, true>();
    Loop::writing(write, reads)
}

/// Compiled for each of the two apart, or what they share is a call in both.
fn halves<C: Copied<4>, const IS_TIMED: bool>() -> (Loop, impl Fn(u64) + Send + Sync + 'static) {
    let cell = Arc::new(C::new(words(0)));
    let read = Arc::clone(&cell);
    let reads = Loop::new(move |batches| {
        let cell = black_box(&*read);
        repeat(batches, || sum(&cell.read()))
    });
    (reads, move |number| black_box(&*cell).write(words(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_one_value_and_half_of_another_are_found_out() {
        for number in 0..100 {
            let (old, new) = (words(number), words(number + 1));
            assert_eq!((sum(&old), sum(&new)), (1, 1));
            for torn in 1..4 {
                let mut seen = old;
                seen[..torn].copy_from_slice(&new[..torn]);
                assert_ne!(sum(&seen), 1, "{torn} new words of {number}");
            }
        }
    }
}
