//! A few words that are read whole and now and then replaced.
//!
//! Four words whose sum is always 1: a reader that sees half of one value and half of another finds
//! another sum, and the loop says so. A writer beside readers writes every 10 microseconds.

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
