//! Pointers to what has slots: buckets, overflow nodes and tables; and of which form the slots are.

use std::marker::PhantomData;
use std::ptr::NonNull;

/// A pointer to the head `T` of slots of the form `F`.
pub(super) struct Formed<F, T> {
    pub(super) at: NonNull<T>,
    form: PhantomData<fn() -> F>,
}

impl<F, T> Clone for Formed<F, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, T> Copy for Formed<F, T> {}

impl<F, T> Formed<F, T> {
    /// # Safety
    /// Slots of this form belong to the head, and all of that lives as long as this is used.
    #[inline(always)]
    pub(super) const unsafe fn of(at: NonNull<T>) -> Self {
        Self { at, form: PhantomData }
    }

    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut T {
        self.at.as_ptr()
    }

    /// The head. As long as the caller says, which is in a section or has the bucket.
    #[inline(always)]
    pub(super) fn head<'h>(self) -> &'h T {
        // SAFETY: it lives, by the contract of `of`.
        unsafe { self.at.as_ref() }
    }
}
