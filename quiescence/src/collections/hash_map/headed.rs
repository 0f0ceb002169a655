//! Pointers to one allocation with a head and an array: a table and its buckets, or an overflow
//! node and its groups of slots.

use std::marker::PhantomData;
use std::ptr::NonNull;

/// A pointer to a head `H`, which an array of `A` follows.
pub(super) struct Headed<H, A> {
    pub(super) at: NonNull<H>,
    array: PhantomData<fn() -> A>,
}

impl<H, A> Clone for Headed<H, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H, A> Copy for Headed<H, A> {}

impl<H, A> Headed<H, A> {
    /// # Safety
    /// The array begins where the head ends, and all of it lives as long as this is used.
    #[inline(always)]
    pub(super) const unsafe fn of(at: NonNull<H>) -> Self {
        Self { at, array: PhantomData }
    }

    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut H {
        self.at.as_ptr()
    }

    /// The head. As long as the caller says, which is in a section or has the bucket.
    #[inline(always)]
    pub(super) fn head<'h>(self) -> &'h H {
        // SAFETY: it lives, by the contract of `of`.
        unsafe { self.at.as_ref() }
    }

    /// Where an element of the array is, if it is as long as that.
    #[inline(always)]
    pub(super) fn element(self, index: usize) -> *mut A {
        self.as_ptr().wrapping_add(1).cast::<A>().wrapping_add(index)
    }
}
