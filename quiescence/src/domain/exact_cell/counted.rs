//! Counted pointers that an exact cell can hold.

use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr;
use std::rc::{self, Rc};
use std::sync::{Arc, Weak};

/// A counted pointer of one word, or none. An [`ExactCell`](super::ExactCell) holds one; so does an
/// [`ArcCellAny`](crate::cell::ArcCellAny), if the pointer also implements
/// [`RefCnt`](crate::cell::RefCnt).
///
/// Implemented for [`Arc`], [`Rc`], their `Weak`s, `Pin`s of the first two, and `Option`s of all of
/// these. Implement it for counted pointers of your own. It corresponds to `arc-swap`'s `RefCnt`.
///
/// # Safety
/// - `into_ptr` passes the pointer's reference to the caller, and `from_ptr` takes it back.
///   `as_ptr` returns the same address, which a clone or a move does not change.
/// - The address is null if and only if the pointer refers to nothing; null has no count.
/// - The byte at the address belongs to the object, unless [`TAG`](Self::TAG) has the bit
///   [`AT_END`]. If and only if it has, the object's memory may end at the address, as that of an
///   `Arc` of a zero-sized value does: another object may begin there.
/// - Two pointers with the same address, of types with the same [`TAG`](Self::TAG), refer to one
///   object, and share its count.
/// - A pointer that `from_ptr` made from an address whose reference belongs to another pointer may
///   be used and cloned, as long as that other pointer exists and this one is not dropped.
/// - None of the functions panics. `clone` may, if it has not added a count.
///
/// ```
/// use quiescence::cell::ExactCell;
/// use quiescence::cell::Counted;
/// use std::sync::Arc;
///
/// /// A session; the pointer's address is that of the `Arc`.
/// #[derive(Clone)]
/// struct Session(Arc<String>);
///
/// // SAFETY: `Arc`, which owns the count, fulfils every condition.
/// unsafe impl Counted for Session {
///     type Base = String;
///
///     fn as_ptr(me: &Self) -> *mut String {
///         Counted::as_ptr(&me.0)
///     }
///
///     unsafe fn from_ptr(address: *const String) -> Self {
///         // SAFETY: by the contract.
///         Self(unsafe { Counted::from_ptr(address) })
///     }
/// }
///
/// let cell = ExactCell::new(Session(Arc::new(String::from("token 17"))));
/// assert_eq!(*cell.load().0, "token 17");
/// ```
pub unsafe trait Counted: Clone {
    /// The type at the address.
    type Base;

    /// Distinguishes different counts at one address, such as those of `Arc` and `Weak`, and an
    /// object that ends at an address from one that begins there ([`AT_END`]: this bit is set if
    /// `Base` has no bytes). A non-null address has all bits clear, up to the highest bit of the
    /// tag.
    ///
    /// If `Base` is opaque, it must stand for at least one byte, as [`c_void`](std::ffi::c_void)
    /// does, or the type must define a tag of its own.
    const TAG: usize = at_end::<Self::Base>();

    /// Passes the reference to the caller, as an address; null if there is none.
    #[inline(always)]
    fn into_ptr(me: Self) -> *mut Self::Base {
        Self::as_ptr(&ManuallyDrop::new(me))
    }

    /// The address.
    fn as_ptr(me: &Self) -> *mut Self::Base;

    /// Makes the pointer with this address.
    ///
    /// # Safety
    /// The address is from [`into_ptr`](Self::into_ptr). Unless the reference is the caller's, the
    /// pointer must not be dropped.
    unsafe fn from_ptr(address: *const Self::Base) -> Self;

    /// Increments the count, and returns the address.
    fn inc(me: &Self) -> *mut Self::Base {
        Self::into_ptr(me.clone())
    }

    /// Decrements the count.
    ///
    /// # Safety
    /// As for [`from_ptr`](Self::from_ptr); the reference is the caller's.
    unsafe fn dec(address: *const Self::Base) {
        // SAFETY: by the contract.
        drop(unsafe { Self::from_ptr(address) });
    }
}

/// The bit of [`Counted::TAG`] which says that an object's memory may end at its address.
pub const AT_END: usize = 0b10;

/// The bit, for objects of this type that come last in their memory.
const fn at_end<T>() -> usize {
    if size_of::<T>() == 0 { AT_END } else { 0 }
}

/// For pointers that always refer to something: `into_raw` and `from_raw` are the two directions.
macro_rules! strong {
    ($($pointer:ident)*) => {$(
        // SAFETY: one pointer to memory that does not move. An object has a count of its own before
        // it, so no other one has its address, or ends there; one that has no bytes has the tag of
        // these.
        unsafe impl<T> Counted for $pointer<T> {
            type Base = T;

            #[inline(always)]
            fn as_ptr(me: &Self) -> *mut T {
                Self::as_ptr(me).cast_mut()
            }

            #[inline(always)]
            unsafe fn from_ptr(address: *const T) -> Self {
                // SAFETY: by the contract.
                unsafe { Self::from_raw(address) }
            }
        }

        // SAFETY: as above; what is pinned stays where it is, and is not given out unpinned.
        unsafe impl<T> Counted for Pin<$pointer<T>> {
            type Base = T;

            fn into_ptr(me: Self) -> *mut T {
                // SAFETY: the address does not let anything be moved.
                $pointer::into_raw(unsafe { Pin::into_inner_unchecked(me) }).cast_mut()
            }

            fn as_ptr(me: &Self) -> *mut T {
                // SAFETY: a copy, which is not dropped: the reference stays that of `me`.
                Self::into_ptr(unsafe { ptr::read(me) })
            }

            unsafe fn from_ptr(address: *const T) -> Self {
                // SAFETY: by the contract.
                let inner = unsafe { $pointer::from_raw(address) };
                // SAFETY: it comes from one that was pinned.
                unsafe { Pin::new_unchecked(inner) }
            }
        }
    )*};
}

strong!(Arc Rc);

/// For weak pointers. One that was made without a value is no object's, and stands as null.
macro_rules! weak {
    ($($pointer:ty)*) => {$(
        // SAFETY: as for the strong pointers. The count is another one, so there is a tag; what
        // comes after two counts is aligned to more than that.
        unsafe impl<T> Counted for $pointer {
            type Base = T;

            const TAG: usize = 1 | at_end::<T>();

            fn as_ptr(me: &Self) -> *mut T {
                if me.ptr_eq(&Self::new()) {
                    return ptr::null_mut();
                }
                Self::as_ptr(me).cast_mut()
            }

            unsafe fn from_ptr(address: *const T) -> Self {
                if address.is_null() {
                    return Self::new();
                }
                // SAFETY: by the contract.
                unsafe { Self::from_raw(address) }
            }
        }
    )*};
}

weak!(Weak<T> rc::Weak<T>);

// SAFETY: as for `P`; null stands for none. A `P` that may be null itself is not told from none,
// and has no count then.
unsafe impl<P: Counted> Counted for Option<P> {
    type Base = P::Base;

    const TAG: usize = P::TAG;

    #[inline(always)]
    fn into_ptr(me: Self) -> *mut P::Base {
        me.map_or(ptr::null_mut(), P::into_ptr)
    }

    #[inline(always)]
    fn as_ptr(me: &Self) -> *mut P::Base {
        me.as_ref().map_or(ptr::null_mut(), P::as_ptr)
    }

    #[inline(always)]
    unsafe fn from_ptr(address: *const P::Base) -> Self {
        // SAFETY: by the contract, and not null.
        (!address.is_null()).then(|| unsafe { P::from_ptr(address) })
    }
}
