//! Where an [`Arc`] has its strong count: a restartable sequence must add to it with one
//! instruction.
//!
//! The standard library promises that `Arc::into_raw` and `Arc::increment_strong_count` work, and
//! not where the count is. It has always been the first of two words in front of the value, which
//! begins at the next place that its alignment allows. That is looked at once in each process,
//! before the first `Arc` comes into a place: `Arc`s of several sizes and alignments are made, and
//! what happens to the word is compared with what is done to the `Arc`. If it is elsewhere one day,
//! places are read in fallback sections, by `increment_strong_count`.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicUsize};

use crate::rseq;

/// The biggest alignment that has been looked at.
const ALIGN_MAX: usize = 4096;

/// The biggest value whose count is added to in a sequence: allocators unmap what is much bigger as
/// soon as it is freed, perhaps while a load is in a page fault there ("Restartable reads" in
/// `docs/DESIGN.md`).
const SIZE_MAX: usize = 1 << 16;

/// The two counts.
const HEADER: usize = 2 * size_of::<usize>();

const UNKNOWN: u8 = 0;
const EXPECTED: u8 = 1;
const ELSEWHERE: u8 = 2;

static WHERE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// From the strong count of an `Arc<T>` to its value, in bytes.
pub(super) const fn before<T>() -> usize {
    HEADER.next_multiple_of(align_of::<T>())
}

/// Whether the count is known to be there, and may be added to in a sequence. Until [`learn`] has
/// been called it is not.
#[inline(always)]
pub(super) fn is_countable<T>() -> bool {
    // Relaxed: the thread that learns it late reads in a fallback section.
    align_of::<T>() <= ALIGN_MAX && size_of::<T>() <= SIZE_MAX && WHERE.load(Relaxed) == EXPECTED
}

/// Looks where the count is, unless that is known. To be called before an `Arc` comes into a place.
#[inline]
pub(super) fn learn() {
    if WHERE.load(Relaxed) == UNKNOWN {
        look();
    }
}

#[cold]
#[inline(never)]
fn look() {
    rseq::prepare();
    let expected = is_there([0_u8; 0])
        && is_there([0_u8; 3])
        && is_there(0_u64)
        && is_there([0_u64; 40])
        && is_there(Aligned16([0; 16]))
        && is_there(Aligned32([0; 32]))
        && is_there(Aligned128([0; 128]))
        && is_there(Aligned4096([0; ALIGN_MAX]));
    // Relaxed: everybody finds the same.
    WHERE.store(if expected { EXPECTED } else { ELSEWHERE }, Relaxed);
}

fn is_there<T>(value: T) -> bool {
    counts(value, before::<T>())
}

/// Whether the word so many bytes in front of a value follows its `Arc`s, and the `Arc`s the word.
fn counts<T>(value: T, before: usize) -> bool {
    let first = black_box(Arc::new(value));
    let word = Arc::as_ptr(&first).wrapping_byte_sub(before).cast::<AtomicUsize>();
    // SAFETY: in front of a value in an `Arc` are its counts: two words at least, since both can be
    // as big as a word. They are written atomically.
    let word = unsafe { &*word };
    let alone = word.load(Relaxed);
    let second = black_box(first.clone());
    let two = word.load(Relaxed);
    let weak = black_box(Arc::downgrade(&first));
    let weakly = word.load(Relaxed);
    drop((black_box(second), weak));
    let again = word.load(Relaxed);
    if [alone, two, weakly, again] != [1, 2, 2, 1] {
        return false;
    }
    word.fetch_add(1, Relaxed);
    let counted = Arc::strong_count(black_box(&first)) == 2;
    word.fetch_sub(1, Relaxed);
    counted
}

#[repr(align(16))]
struct Aligned16(#[expect(dead_code, reason = "it has a size")] [u8; 16]);
#[repr(align(32))]
struct Aligned32(#[expect(dead_code, reason = "it has a size")] [u8; 32]);
#[repr(align(128))]
struct Aligned128(#[expect(dead_code, reason = "it has a size")] [u8; 128]);
#[repr(align(4096))]
struct Aligned4096(#[expect(dead_code, reason = "it has a size")] [u8; ALIGN_MAX]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_where_it_is_expected() {
        learn();
        assert_eq!(WHERE.load(Relaxed), EXPECTED, "reads would work, but in fallback sections");
        assert!(is_countable::<u8>() && is_countable::<Aligned4096>());
        #[repr(align(8192))]
        struct Aligned8192;
        assert!(!is_countable::<Aligned8192>(), "nobody has looked");
        assert!(!is_countable::<[u8; SIZE_MAX + 1]>(), "it may be unmapped at once");
    }

    #[test]
    fn a_count_that_is_elsewhere_is_noticed() {
        // The weak count is beside it, and does not do what the strong one does.
        assert!(counts(0_u64, before::<u64>()));
        assert!(!counts(0_u64, before::<u64>() - size_of::<usize>()));
    }
}
