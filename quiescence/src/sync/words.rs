//! A value that is read and written in machine words, each of them atomic.
//!
//! A read during a write may return words of two values; the caller must find that out before it
//! uses the bytes as a value. The bytes after the last whole word are accessed in smaller units, so
//! no byte behind the value is touched. `T` has no uninitialised bytes ([`NoUninit`]), so each word
//! is a number.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize};

use bytemuck::NoUninit;

const WORD: usize = size_of::<usize>();

/// Memory for one value.
pub(super) struct Words<T>(UnsafeCell<Place<T>>);

/// A value is written as a whole.
impl<T: std::panic::RefUnwindSafe> std::panic::RefUnwindSafe for Words<T> {}

/// Aligned for a word as well. The value is the first of its bytes.
#[repr(C)]
struct Place<T> {
    aligned: [AtomicUsize; 0],
    value: MaybeUninit<T>,
}

/// Does `$each` for each piece of so many bytes: with its offset, and the atomic of its size.
macro_rules! for_each_piece {
    ($bytes:expr, |$at:ident, $atomic:ident| $each:block) => {{
        let bytes: usize = $bytes;
        for word in 0..bytes / WORD {
            let $at = word * WORD;
            type $atomic = AtomicUsize;
            $each
        }
        if WORD == 8 && bytes & 4 != 0 {
            let $at = bytes & !7;
            type $atomic = AtomicU32;
            $each
        }
        if bytes & 2 != 0 {
            let $at = bytes & !3;
            type $atomic = AtomicU16;
            $each
        }
        if bytes & 1 != 0 {
            let $at = bytes & !1;
            type $atomic = AtomicU8;
            $each
        }
    }};
}

impl<T: NoUninit> Words<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(Place { aligned: [], value: MaybeUninit::new(value) }))
    }

    /// The value that a slow path returns, word by word. A value that is read at once, and could
    /// have come from there, would be copied through memory else: twice the time of a read.
    #[inline(always)]
    pub(super) fn by_words(value: T) -> T {
        // SAFETY: whole, and no other thread knows of the place.
        unsafe { Self::new(value).load().assume_init() }
    }

    /// Loads all pieces, relaxed. A value, if no thread stored meanwhile.
    #[inline(always)]
    pub(super) fn load(&self) -> MaybeUninit<T> {
        let mut value = MaybeUninit::uninit();
        let (from, to) = (self.0.get().cast::<u8>(), (&raw mut value).cast::<u8>());
        for_each_piece!(size_of::<T>(), |at, Piece| {
            let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
            // SAFETY: inside of the value, and aligned, since the place is aligned for a word and
            // the pieces get smaller. Other threads access it as the same piece, by atomic
            // instructions, or only read.
            let piece = unsafe { Piece::from_ptr(from.cast()) }.load(Relaxed);
            // SAFETY: inside of the value, which is ours alone.
            unsafe { ptr::write_unaligned(to.cast(), piece) };
        });
        value
    }

    /// Stores all pieces, relaxed. One thread at a time.
    #[inline(always)]
    pub(super) fn store(&self, value: T) {
        let (from, to) = ((&raw const value).cast::<u8>(), self.0.get().cast::<u8>());
        for_each_piece!(size_of::<T>(), |at, Piece| {
            let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
            // SAFETY: `NoUninit`: every byte of the value is initialised.
            let piece = unsafe { ptr::read_unaligned(from.cast()) };
            // SAFETY: as in `load`.
            unsafe { Piece::from_ptr(to.cast()) }.store(piece, Relaxed);
        });
    }

    /// The value where it stands.
    ///
    /// # Safety
    /// It is whole, and no thread stores as long as the reference is used.
    pub(super) unsafe fn get(&self) -> &T {
        // SAFETY: by the contract; loads of other threads are no conflict.
        unsafe { &*self.0.get().cast::<T>() }
    }

    /// The value where it stands.
    ///
    /// # Safety
    /// It is whole.
    pub(super) unsafe fn get_mut(&mut self) -> &mut T {
        // SAFETY: by the contract.
        unsafe { self.0.get_mut().value.assume_init_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of every size, between others that must stay.
    fn fits<const N: usize>() {
        #[repr(C)]
        struct Between<const N: usize>(u8, Words<[u8; N]>, u8)
        where
            [u8; N]: NoUninit;
        let bytes = |first: u8| std::array::from_fn::<u8, N, _>(|i| first.wrapping_add(i as u8));
        let mut between = Between(1, Words::new(bytes(2)), 3);
        // SAFETY: no thread stores.
        assert_eq!(unsafe { between.1.load().assume_init() }, bytes(2), "{N}");
        between.1.store(bytes(7));
        // SAFETY: as above.
        assert_eq!(unsafe { between.1.load().assume_init() }, bytes(7), "{N}");
        // SAFETY: as above.
        assert_eq!(unsafe { *between.1.get() }, bytes(7), "{N}");
        // SAFETY: it is whole.
        unsafe { *between.1.get_mut() = bytes(9) };
        // SAFETY: as above.
        assert_eq!(unsafe { between.1.load().assume_init() }, bytes(9), "{N}");
        assert_eq!((between.0, between.2), (1, 3));
    }

    #[test]
    fn values_of_every_size_are_copied_whole() {
        macro_rules! all {
            ($($n:literal)*) => { $(fits::<$n>();)* };
        }
        all!(0 1 2 3 7 8 13 14 15 32 100);
    }

    #[test]
    fn the_place_is_aligned_for_words_and_for_the_value() {
        assert_eq!(align_of::<Words<u8>>(), WORD);
        assert_eq!(align_of::<Words<u128>>(), align_of::<u128>().max(WORD));
    }
}
