//! Words of tags: the state of up to eight slots in one atomic word, a byte each.
//!
//! | byte | slot |
//! |---|---|
//! | 0 | empty |
//! | 1 to 255 | live: the tag of its key, from the hash |
//!
//! In the word of a bucket, byte 0 has flags, and bytes 1 to 7 are the slots. All functions here
//! but one are arithmetic on one word. Source of the idea: the control bytes of SwissTable,
//! compared in a general register, as hashbrown does on CPUs without vector instructions.

use std::sync::atomic::Ordering::Relaxed;

use crate::os::sync::AtomicU64;

/// An updater has the bucket.
pub(super) const LOCK: u64 = 1;
/// The bucket has an overflow node.
pub(super) const OVER: u64 = 2;
/// Its entries are in the next table.
pub(super) const MOVED: u64 = 4;

/// No bucket's word: it has another flag than these.
pub(super) const NEVER: u64 = 8;

pub(super) const EMPTY: u64 = 0;

/// Has the system provide memory for a word, if there is none yet, by a write that changes nothing
/// whichever thread has locked its bucket: zero for zero. For a load the system maps a page of
/// zeroes, which it replaces at the first store: a huge one, on Linux before 6.13, by small ones.
/// (Not a `fetch_or` of zero: compilers remove that.)
pub(super) fn touch(word: &AtomicU64) {
    // Loom may have a store of others come between the load and the store of an exchange.
    if !cfg!(loom) {
        let _ = word.compare_exchange(0, 0, Relaxed, Relaxed);
    }
}

/// The bytes of the slots in a word without flags.
pub(super) const fn node_bytes(slots: usize) -> u64 {
    if slots == 8 { u64::MAX } else { (1 << (8 * slots)) - 1 }
}

const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const HIGH: u64 = !LOW;

/// The tag of a hash: from its upper bits, as the lower ones choose the bucket.
#[inline(always)]
pub(super) const fn of_hash(hash: u64) -> u64 {
    let byte = hash >> 56;
    byte + (byte == EMPTY) as u64
}

/// The bytes that are `byte`, as their highest bits. Exact.
#[inline(always)]
pub(super) const fn matches(word: u64, byte: u64) -> u64 {
    let x = word ^ (byte * 0x0101_0101_0101_0101);
    !(((x & LOW) + LOW) | x | LOW)
}

/// The bytes that are tags, as their highest bits.
#[inline(always)]
pub(super) const fn live(word: u64) -> u64 {
    // A carry out of seven bits says one or more.
    (((word & LOW) + LOW) | word) & HIGH
}

/// The index of the lowest byte of `matches` or `live`.
#[inline(always)]
pub(super) const fn first(found: u64) -> usize {
    (found.trailing_zeros() / 8) as usize
}

/// The byte of an index.
#[inline(always)]
pub(super) const fn get(word: u64, index: usize) -> u64 {
    (word >> (8 * index)) & 0xff
}

/// The word with another byte at an index.
#[inline(always)]
pub(super) const fn with(word: u64, index: usize, byte: u64) -> u64 {
    word & !(0xff << (8 * index)) | byte << (8 * index)
}

/// The indexes that `found` marks.
pub(super) fn indexes(mut found: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = (found != 0).then(|| first(found));
        found &= found.wrapping_sub(1);
        index
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::random::Random;

    fn words() -> impl Iterator<Item = u64> {
        let mut random = Random(1);
        (0..if cfg!(miri) { 200 } else { 20_000 }).map(move |round| {
            let any = random.next();
            // Bytes that are near to those that have a meaning, and others.
            let near = (0..8).fold(0, |word, byte| word << 8 | (any >> (4 * byte + 8) & 0x83));
            if round % 2 == 0 { any } else { near }
        })
    }

    #[test]
    fn bytes_are_found_exactly() {
        for word in words() {
            for byte in [0, 1, 2, 0x7f, 0x80, 0x81, 0xff, word & 0xff, word >> 56] {
                let expected = (0..8).filter(|&i| get(word, i) == byte).collect::<Vec<_>>();
                assert_eq!(indexes(matches(word, byte)).collect::<Vec<_>>(), expected, "{word:x}");
            }
            let expected = (0..8).filter(|&i| get(word, i) != EMPTY).collect::<Vec<_>>();
            assert_eq!(indexes(live(word)).collect::<Vec<_>>(), expected, "{word:x}");
        }
    }

    #[test]
    fn bytes_are_changed_and_no_others() {
        for word in words() {
            for index in 0..8 {
                let changed = with(word, index, 0xab);
                assert_eq!(get(changed, index), 0xab);
                assert_eq!(with(changed, index, get(word, index)), word);
            }
        }
    }

    #[test]
    fn a_hash_never_has_the_tag_of_an_empty_slot() {
        for byte in 0..=255_u64 {
            assert!((1..=255).contains(&of_hash(byte << 56)));
        }
    }
}
