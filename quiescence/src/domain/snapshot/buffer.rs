//! The memory of a [`Snapshot`](super::Snapshot)'s value: as many whole words as a sequence copies.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::AtomicPtr;

pub(super) use crate::os::percpu::Word;

use crate::os::percpu;

/// The biggest value.
const WORDS_MAX: usize = 1024;

/// Exact up to 16 words; then four classes from one power of two to the next.
const fn class(words: usize) -> usize {
    assert!(words <= WORDS_MAX, "a Snapshot holds at most 1,024 words (8,192 bytes)");
    if words == 0 {
        return 1;
    }
    if words <= 16 {
        return words;
    }
    words.next_multiple_of(words.next_power_of_two() / 8)
}

/// How many words are copied for a `T`.
const fn words<T>() -> usize {
    class(size_of::<T>().div_ceil(8))
}

/// Memory for the value's words, aligned for the value as well, all of them readable.
pub(super) struct Buffer<T>(NonNull<T>);

// SAFETY: memory of its own, with a value.
unsafe impl<T: Send> Send for Buffer<T> {}

impl<T> Buffer<T> {
    pub(super) const LAYOUT: Layout = {
        let align = if align_of::<T>() > 8 { align_of::<T>() } else { 8 };
        match Layout::from_size_align(words::<T>() * 8, align) {
            Ok(layout) => layout,
            Err(_) => panic!("a Snapshot's size, aligned, exceeds the address space"),
        }
    };

    /// A buffer with a value in it. Zero where the value does not reach.
    pub(super) fn new(value: T) -> Self {
        // SAFETY: it has a size.
        let memory = unsafe { alloc_zeroed(Self::LAYOUT) };
        let Some(memory) = NonNull::new(memory.cast()) else { handle_alloc_error(Self::LAYOUT) };
        let mut buffer = Self(memory);
        buffer.fill(value);
        buffer
    }

    /// Puts another value there.
    pub(super) fn fill(&mut self, value: T) {
        // SAFETY: memory for a `T`, ours alone.
        unsafe { self.0.write(value) };
    }

    /// The value that is there.
    pub(super) fn value(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: it was filled with one.
        unsafe { self.0.read() }
    }

    pub(super) fn into_raw(self) -> *mut Word {
        std::mem::ManuallyDrop::new(self).0.as_ptr().cast()
    }

    /// # Safety
    /// From [`into_raw`](Self::into_raw) of a buffer made for a `T`, once.
    pub(super) unsafe fn from_raw(memory: *mut Word) -> Self {
        // SAFETY: no buffer's memory is at null.
        Self(unsafe { NonNull::new_unchecked(memory.cast()) })
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), Self::LAYOUT) };
    }
}

/// Reads the value of the buffer that is in this place to where it is wanted, in one restartable
/// sequence, and returns whether that could be done.
///
/// # Safety
/// The memory of a buffer with a `T`, which no thread writes to until a grace period of restartable
/// reads after it was taken out of the place.
#[inline(always)]
pub(super) unsafe fn read_restartable<T: Copy>(
    place: &AtomicPtr<Word>,
    to: &mut MaybeUninit<T>,
) -> bool {
    /// One arm for each class; only that of `T` is compiled.
    macro_rules! by_class {
        ($($inline:literal)*; $($call:literal)*) => {
            match const { words::<T>() } {
                // SAFETY: by the contract.
                $($inline => unsafe { copy::<T, $inline>(place, to) },)*
                // SAFETY: by the contract.
                $($call => unsafe { copy_far::<T, $call>(place, to) },)*
                _ => unreachable!("a class without an arm"),
            }
        };
    }
    by_class!(
        1 2 3 4 5 6 7 8;
        9 10 11 12 13 14 15 16 20 24 28 32 40 48 56 64 80 96 112 128 160 192 224 256
        320 384 448 512 640 768 896 1024
    )
}

/// # Safety
/// As [`read_restartable`], whose `T` needs so many words.
#[inline(always)]
unsafe fn copy<T: Copy, const WORDS: usize>(
    place: &AtomicPtr<Word>,
    to: &mut MaybeUninit<T>,
) -> bool {
    // SAFETY: by the contract; a buffer has all words of its class.
    let Some(words) = (unsafe { percpu::load_words::<WORDS>(place) }) else { return false };
    // SAFETY: the bytes of a `T` are the first ones; padding was copied as such.
    to.write(unsafe { std::mem::transmute_copy::<[Word; WORDS], T>(&words) });
    true
}

/// The same, and not inlined: hundreds of instructions.
///
/// # Safety
/// As [`copy`].
#[inline(never)]
unsafe fn copy_far<T: Copy, const WORDS: usize>(
    place: &AtomicPtr<Word>,
    to: &mut MaybeUninit<T>,
) -> bool {
    // SAFETY: by the contract.
    unsafe { copy::<T, WORDS>(place, to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_are_for_and_waste_little() {
        let mut classes = Vec::new();
        for needed in 0..=WORDS_MAX {
            let class = class(needed);
            assert!(class >= needed.max(1) && class * 4 <= needed.max(4) * 5, "{needed}: {class}");
            if classes.last() != Some(&class) {
                classes.push(class);
            }
        }
        assert_eq!(classes.len(), 16 + 24, "each has its arm: {classes:?}");
        assert_eq!(classes[16..20], [20, 24, 28, 32]);
        assert_eq!(classes[36..], [640, 768, 896, 1024]);
    }

    #[test]
    fn buffers_are_aligned_for_the_value_and_zero_behind_it() {
        #[repr(align(256))]
        #[derive(Clone, Copy)]
        struct Wide(#[expect(dead_code, reason = "it has a size")] u8);
        let buffer = Buffer::new(Wide(1));
        assert!(buffer.0.is_aligned());
        let buffer = Buffer::new([0xff_u8; 9]);
        // SAFETY: two words that were zeroed and filled.
        let words = unsafe { buffer.0.cast::<[u64; 2]>().read() };
        assert_eq!(words[1].to_le_bytes(), [0xff, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(buffer.value(), [0xff; 9]);
    }
}
