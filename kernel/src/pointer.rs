//! Pointers that [`Rcu`](crate::Rcu) keeps: owners of objects that have a [`Head`].

use core::ptr::NonNull;

use crate::head::Head;

/// An owner of an object that has a [`Head`] in it, so that it can be freed after a grace period
/// without an allocation. All but the last two items are as in the crate `ostd`.
///
/// # Safety
/// The functions do what they say. The object stays where it is as long as it exists, one owner
/// alone has it, and nothing else touches its head. Several readers may have a [`Ref`](Self::Ref)
/// of the same object at the same time: on several CPUs, if the owner is `Send` and `Sync`.
pub unsafe trait NonNullPtr: 'static {
    /// What a raw pointer points to.
    type Target;

    /// What a reader gets, in place of a reference to the owner.
    type Ref<'a>
    where
        Self: 'a;

    /// So many low bits of a raw pointer are 0.
    const ALIGN_BITS: u32;

    /// Turns the owner into a raw pointer. Without [`from_raw`](Self::from_raw) the object leaks.
    fn into_raw(self) -> NonNull<Self::Target>;

    /// Turns a raw pointer into the owner.
    ///
    /// # Safety
    /// It comes from [`into_raw`](Self::into_raw), and is not used afterwards.
    unsafe fn from_raw(raw: NonNull<Self::Target>) -> Self;

    /// What a reader gets.
    ///
    /// # Safety
    /// The raw pointer comes from [`into_raw`](Self::into_raw), and the object is not freed, and
    /// not changed by its owner, during `'a`.
    unsafe fn raw_as_ref<'a>(raw: NonNull<Self::Target>) -> Self::Ref<'a>;

    /// The raw pointer that a reader's reference was made of.
    fn ref_as_raw(reference: Self::Ref<'_>) -> NonNull<Self::Target>;

    /// The object's head.
    ///
    /// # Safety
    /// The raw pointer comes from [`into_raw`](Self::into_raw), and the object exists.
    unsafe fn head_of(raw: NonNull<Self::Target>) -> NonNull<Head>;

    /// The raw pointer of whose object this is the head.
    ///
    /// # Safety
    /// It comes from [`head_of`](Self::head_of), and the object exists.
    unsafe fn of_head(head: NonNull<Head>) -> NonNull<Self::Target>;
}

#[cfg(any(test, feature = "alloc"))]
mod boxed {
    use alloc::boxed::Box;
    use core::fmt;
    use core::marker::PhantomData;
    use core::ops::{Deref, DerefMut};

    use super::*;

    /// An object and its head.
    #[repr(C)]
    #[derive(Debug)]
    pub struct Headed<T> {
        head: Head,
        value: T,
    }

    /// A box whose allocation has room for a [`Head`]. It counts for its size against
    /// [`Options::bytes_max`](crate::Options::bytes_max), and for what [`of`](Self::of) was told.
    pub struct RcuBox<T> {
        raw: NonNull<Headed<T>>,
        owns: PhantomData<T>,
    }

    // SAFETY: it owns the value, and nothing else reaches the head.
    unsafe impl<T: Send> Send for RcuBox<T> {}
    // SAFETY: as above; a reference gives one to the value alone.
    unsafe impl<T: Sync> Sync for RcuBox<T> {}

    impl<T> RcuBox<T> {
        /// Allocates a box for the value.
        pub fn new(value: T) -> Self {
            Self::of(value, 0)
        }

        /// The same for a value that owns so many bytes elsewhere, such as a vector's elements.
        pub fn of(value: T, bytes: u32) -> Self {
            let size = u32::try_from(size_of::<Headed<T>>()).unwrap_or(u32::MAX);
            let bytes = size.saturating_add(bytes);
            let boxed = Box::new(Headed { head: Head::of(bytes), value });
            Self { raw: NonNull::from(Box::leak(boxed)), owns: PhantomData }
        }

        /// Takes the value out, and frees the box.
        pub fn into_inner(this: Self) -> T {
            let this = core::mem::ManuallyDrop::new(this);
            // SAFETY: it was allocated by `of`, and this was its only owner.
            unsafe { Box::from_raw(this.raw.as_ptr()) }.value
        }
    }

    impl<T> Deref for RcuBox<T> {
        type Target = T;

        fn deref(&self) -> &T {
            // SAFETY: it exists as long as the box, and is changed through the box alone.
            unsafe { &(*self.raw.as_ptr()).value }
        }
    }

    impl<T> DerefMut for RcuBox<T> {
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: it exists as long as the box, which is borrowed alone.
            unsafe { &mut (*self.raw.as_ptr()).value }
        }
    }

    impl<T> Drop for RcuBox<T> {
        fn drop(&mut self) {
            // SAFETY: it was allocated by `of`, and this is its only owner.
            drop(unsafe { Box::from_raw(self.raw.as_ptr()) });
        }
    }

    impl<T: fmt::Debug> fmt::Debug for RcuBox<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_tuple("RcuBox").field(&**self).finish()
        }
    }

    /// What a reader of an [`RcuBox`] gets.
    #[derive(Debug)]
    pub struct RcuBoxRef<'a, T> {
        raw: NonNull<Headed<T>>,
        reads: PhantomData<&'a T>,
    }

    impl<'a, T> RcuBoxRef<'a, T> {
        /// The value, for as long as the reader may read.
        pub fn deref_target(&self) -> &'a T {
            // SAFETY: whoever made this said that it is not freed during `'a`.
            unsafe { &(*self.raw.as_ptr()).value }
        }
    }

    impl<T> Deref for RcuBoxRef<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.deref_target()
        }
    }

    // SAFETY: the head is at the object's beginning, and private; the box is its one owner.
    unsafe impl<T: 'static> NonNullPtr for RcuBox<T> {
        type Target = Headed<T>;
        type Ref<'a> = RcuBoxRef<'a, T>;

        const ALIGN_BITS: u32 = align_of::<Headed<T>>().trailing_zeros();

        fn into_raw(self) -> NonNull<Headed<T>> {
            let raw = self.raw;
            core::mem::forget(self);
            raw
        }

        unsafe fn from_raw(raw: NonNull<Headed<T>>) -> Self {
            Self { raw, owns: PhantomData }
        }

        unsafe fn raw_as_ref<'a>(raw: NonNull<Headed<T>>) -> RcuBoxRef<'a, T> {
            RcuBoxRef { raw, reads: PhantomData }
        }

        fn ref_as_raw(reference: RcuBoxRef<'_, T>) -> NonNull<Headed<T>> {
            reference.raw
        }

        unsafe fn head_of(raw: NonNull<Headed<T>>) -> NonNull<Head> {
            raw.cast()
        }

        unsafe fn of_head(head: NonNull<Head>) -> NonNull<Headed<T>> {
            head.cast()
        }
    }
}

#[cfg(any(test, feature = "alloc"))]
pub use boxed::{Headed, RcuBox, RcuBoxRef};
