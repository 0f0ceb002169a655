//! [`Shared`]: a tagged pointer that is valid under a guard. [`Pointer`]: a `Shared` or an `Owned`.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use super::owned::Owned;
use super::pointable::{self, Pointable};
use crate::domain::impls::default_by;

/// [`Owned`] or [`Shared`]: what may be put into an [`Atomic`](super::Atomic).
pub trait Pointer<T: ?Sized + Pointable> {
    /// The address with the tag in its low bits.
    fn into_usize(self) -> usize;

    /// The pointer back.
    ///
    /// # Safety
    /// `data` is from [`into_usize`](Self::into_usize), and turned back once if it was an owner's.
    unsafe fn from_usize(data: usize) -> Self;
}

/// A tagged pointer that was loaded under a guard, and is valid as long as the guard lives.
///
/// It may be null, and may have a tag even then.
pub struct Shared<'g, T: 'g + ?Sized + Pointable> {
    word: usize,
    under: PhantomData<(&'g (), *const T)>,
}

impl<T: ?Sized + Pointable> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized + Pointable> Copy for Shared<'_, T> {}

impl<T: ?Sized + Pointable> Pointer<T> for Shared<'_, T> {
    #[inline]
    fn into_usize(self) -> usize {
        self.word
    }

    #[inline]
    unsafe fn from_usize(word: usize) -> Self {
        Self { word, under: PhantomData }
    }
}

impl<T> Shared<'_, T> {
    /// The pointer without its tag.
    pub fn as_raw(&self) -> *const T {
        ptr::with_exposed_provenance(self.address())
    }
}

impl<'g, T: ?Sized + Pointable> Shared<'g, T> {
    /// Null, with the tag 0.
    pub const fn null() -> Self {
        Self { word: 0, under: PhantomData }
    }

    /// Whether it is null, whatever the tag.
    pub fn is_null(&self) -> bool {
        self.address() == 0
    }

    /// Returns a reference to the object.
    ///
    /// # Safety
    /// It is not null. The object was published by a Release store or exchange that this thread has
    /// read with Acquire (or in another way that orders its initialisation before this), no thread
    /// changes it meanwhile, and it was not deferred before the guard began.
    pub unsafe fn deref(&self) -> &'g T {
        // SAFETY: by the contract.
        unsafe { T::deref(self.address()) }
    }

    /// Returns a mutable reference to the object.
    ///
    /// # Safety
    /// As [`deref`](Self::deref), and no other reference to the object lives, on any thread.
    pub unsafe fn deref_mut(&mut self) -> &'g mut T {
        // SAFETY: by the contract.
        unsafe { T::deref_mut(self.address()) }
    }

    /// Returns a reference to the object, if the pointer is not null.
    ///
    /// # Safety
    /// It is null, or as for [`deref`](Self::deref).
    pub unsafe fn as_ref(&self) -> Option<&'g T> {
        // SAFETY: by the contract.
        (!self.is_null()).then(|| unsafe { self.deref() })
    }

    /// Takes ownership of the object.
    ///
    /// # Safety
    /// It is not null, and no other pointer to the object is used from now on, on any thread.
    pub unsafe fn into_owned(self) -> Owned<T> {
        debug_assert!(!self.is_null(), "converting a null `Shared` into `Owned`");
        // SAFETY: by the contract.
        unsafe { Owned::from_usize(self.word) }
    }

    /// Takes ownership of the object, if the pointer is not null.
    ///
    /// # Safety
    /// It is null, or as for [`into_owned`](Self::into_owned).
    pub unsafe fn try_into_owned(self) -> Option<Owned<T>> {
        // SAFETY: by the contract.
        (!self.is_null()).then(|| unsafe { self.into_owned() })
    }

    /// The tag.
    pub fn tag(&self) -> usize {
        pointable::tag::<T>(self.word)
    }

    /// The same pointer with another tag. Bits of `tag` at or above the alignment are ignored.
    #[must_use]
    pub fn with_tag(&self, tag: usize) -> Self {
        Self { word: pointable::with_tag::<T>(self.word, tag), under: PhantomData }
    }

    pub(super) fn address(&self) -> usize {
        pointable::address::<T>(self.word)
    }
}

/// # Panics
/// If the pointer is not aligned.
impl<T> From<*const T> for Shared<'_, T> {
    fn from(raw: *const T) -> Self {
        Self { word: pointable::aligned(raw), under: PhantomData }
    }
}

impl<T: ?Sized + Pointable> PartialEq for Shared<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl<T: ?Sized + Pointable> Eq for Shared<'_, T> {}

impl<T: ?Sized + Pointable> PartialOrd for Shared<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: ?Sized + Pointable> Ord for Shared<'_, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.word.cmp(&other.word)
    }
}

impl<T: ?Sized + Pointable> fmt::Debug for Shared<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("raw", &self.address()).field("tag", &self.tag()).finish()
    }
}

impl<T: ?Sized + Pointable> fmt::Pointer for Shared<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&ptr::without_provenance::<()>(self.address()), f)
    }
}

default_by!(null, impl<T: ?Sized + Pointable> Default for Shared<'_, T>);
