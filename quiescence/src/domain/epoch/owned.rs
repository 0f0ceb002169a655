//! [`Owned`]: a tagged pointer that owns its object.

use std::borrow::{Borrow, BorrowMut};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;

use super::guard::Guard;
use super::pointable::{self, Pointable};
use super::shared::{Pointer, Shared};

/// A tagged pointer that owns its object, as a box does: dropping it drops the object.
///
/// ```
/// use quiescence::epoch::Owned;
///
/// let number = Owned::new(1234_u64).with_tag(5);
/// assert_eq!((*number, number.tag()), (1234, 5));
/// ```
pub struct Owned<T: ?Sized + Pointable> {
    word: usize,
    owns: PhantomData<Box<T>>,
}

impl<T> Owned<T> {
    /// Allocates an object.
    pub fn new(init: T) -> Self {
        Self::init(init)
    }

    /// Takes ownership of the object that `raw` points to.
    ///
    /// # Panics
    /// If `raw` is not aligned.
    ///
    /// # Safety
    /// `raw` is from [`Box::into_raw`] or from a pointer of this module, and nothing else owns it.
    pub unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: by the contract.
        unsafe { Self::from_usize(pointable::aligned(raw.cast_const())) }
    }

    /// Returns the object in a box; the tag is lost.
    pub fn into_box(self) -> Box<T> {
        let address = self.address();
        std::mem::forget(self);
        // SAFETY: from a box, by `Pointable for T`, and owned by none but this.
        unsafe { Box::from_raw(ptr::with_exposed_provenance_mut(address)) }
    }
}

impl<T: ?Sized + Pointable> Owned<T> {
    /// Allocates an object from its initialiser; for a slice, that is the number of elements.
    ///
    /// ```
    /// use quiescence::epoch::Owned;
    /// use std::mem::MaybeUninit;
    ///
    /// let array = Owned::<[MaybeUninit<u32>]>::init(10);
    /// assert_eq!(array.len(), 10);
    /// ```
    pub fn init(init: T::Init) -> Self {
        // SAFETY: the address is used by the methods of `Pointable` only.
        let address = unsafe { T::init(init) };
        // SAFETY: just made, and owned by what is returned.
        unsafe { Self::from_usize(address) }
    }

    /// Turns it into a pointer that can be shared with other threads. The object leaks, unless it
    /// is later owned again, or deferred.
    pub fn into_shared(self, _: &Guard) -> Shared<'_, T> {
        // SAFETY: a pointer to what is valid until it is owned anew.
        unsafe { Shared::from_usize(self.into_usize()) }
    }

    /// The tag.
    pub fn tag(&self) -> usize {
        pointable::tag::<T>(self.word)
    }

    /// The same pointer with another tag. Bits of `tag` at or above the alignment are ignored.
    #[must_use]
    pub fn with_tag(self, tag: usize) -> Self {
        let word = pointable::with_tag::<T>(self.into_usize(), tag);
        // SAFETY: the word of the same object, owned by what is returned.
        unsafe { Self::from_usize(word) }
    }

    fn address(&self) -> usize {
        pointable::address::<T>(self.word)
    }
}

impl<T: ?Sized + Pointable> Pointer<T> for Owned<T> {
    #[inline]
    fn into_usize(self) -> usize {
        ManuallyDrop::new(self).word
    }

    #[inline]
    unsafe fn from_usize(word: usize) -> Self {
        debug_assert!(word != 0, "zero is no `Owned`");
        Self { word, owns: PhantomData }
    }
}

impl<T: ?Sized + Pointable> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: owned by none but this, and not used any more.
        unsafe { T::drop(self.address()) };
    }
}

impl<T: ?Sized + Pointable> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("raw", &self.address()).field("tag", &self.tag()).finish()
    }
}

impl<T: Clone> Clone for Owned<T> {
    fn clone(&self) -> Self {
        Self::new((**self).clone()).with_tag(self.tag())
    }
}

impl<T: ?Sized + Pointable> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: valid as long as this lives, and changed through this only.
        unsafe { T::deref(self.address()) }
    }
}

impl<T: ?Sized + Pointable> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and borrowed by this alone.
        unsafe { T::deref_mut(self.address()) }
    }
}

impl<T> From<T> for Owned<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> From<Box<T>> for Owned<T> {
    fn from(value: Box<T>) -> Self {
        // SAFETY: from a box, which is given up.
        unsafe { Self::from_raw(Box::into_raw(value)) }
    }
}

impl<T: ?Sized + Pointable> Borrow<T> for Owned<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized + Pointable> BorrowMut<T> for Owned<T> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: ?Sized + Pointable> AsRef<T> for Owned<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized + Pointable> AsMut<T> for Owned<T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}
