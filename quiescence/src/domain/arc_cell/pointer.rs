//! Counted pointers that a cell can hold: [`RefCnt`], and what a cell compares ([`AsRaw`]).

use std::sync::{Arc, Weak};

use super::ArcGuard;

/// A counted pointer of one word, or none: what an [`ArcCellAny`](super::ArcCellAny) holds.
///
/// Implemented for [`Arc`], `Option<Arc>` and [`Weak`]; implement it for a counted pointer of your
/// own (`triomphe`'s, an `Arc` with a header). It is `arc-swap`'s trait of that name, with what a
/// guard dereferences to, and what a reference that waits is charged.
///
/// # Safety
/// - `into_ptr` gives the reference that the pointer holds to the caller, and `from_ptr` takes it
///   back. `as_ptr` gives the same address.
/// - The address is null if and only if the pointer refers to nothing; it does not change while a
///   reference exists, and no other object of this type has it meanwhile.
/// - A pointer made by `from_ptr` of an address whose reference is somebody else's may be used and
///   cloned, as long as that one exists and as it is not dropped.
/// - [`target`](Self::target) and [`base`](Self::base) do not change when the pointer is moved.
pub unsafe trait RefCnt: Clone + Send + Sync + 'static {
    /// What the address is of.
    type Base: 'static;

    /// What [`ArcGuard`] dereferences to.
    type Target: ?Sized;

    /// Bytes that are allocated for one object, by its size. At least that of [`Base`](Self::Base).
    const BYTES: usize = size_of::<Self::Base>();

    /// Gives the reference away, as an address; null if there is none.
    fn into_ptr(me: Self) -> *mut Self::Base;

    /// The address.
    fn as_ptr(me: &Self) -> *mut Self::Base;

    /// The pointer with this address.
    ///
    /// # Safety
    /// It is from [`into_ptr`](Self::into_ptr), and the reference is the caller's; or the pointer
    /// is not dropped.
    unsafe fn from_ptr(address: *mut Self::Base) -> Self;

    /// What a guard shows.
    fn target(me: &Self) -> &Self::Target;

    /// What is weighed where a reference waits; `None` if there is nothing to be looked at.
    fn base(me: &Self) -> Option<&Self::Base>;
}

/// What the standard library allocates for an `Arc<T>`: two counts, and the value.
const fn bytes_of_arc<T>() -> usize {
    let counts = 2 * size_of::<usize>();
    let before = counts.next_multiple_of(align_of::<T>());
    (before + size_of::<T>()).next_multiple_of(align_of::<usize>())
}

// SAFETY: `Arc::into_raw` and `Arc::from_raw` are the two directions; an `Arc` is one pointer to
// memory that does not move.
unsafe impl<T: Send + Sync + 'static> RefCnt for Arc<T> {
    type Base = T;
    type Target = T;

    const BYTES: usize = bytes_of_arc::<T>();

    #[inline(always)]
    fn into_ptr(me: Self) -> *mut T {
        Self::into_raw(me).cast_mut()
    }

    #[inline(always)]
    fn as_ptr(me: &Self) -> *mut T {
        Self::as_ptr(me).cast_mut()
    }

    #[inline(always)]
    unsafe fn from_ptr(address: *mut T) -> Self {
        // SAFETY: by the contract.
        unsafe { Self::from_raw(address) }
    }

    #[inline(always)]
    fn target(me: &Self) -> &T {
        me
    }

    #[inline(always)]
    fn base(me: &Self) -> Option<&T> {
        Some(me)
    }
}

// SAFETY: as for `P`, which refers to something: so null stands for none.
unsafe impl<T: Send + Sync + 'static> RefCnt for Option<Arc<T>> {
    type Base = T;
    type Target = Self;

    const BYTES: usize = bytes_of_arc::<T>();

    #[inline(always)]
    fn into_ptr(me: Self) -> *mut T {
        me.map_or(std::ptr::null_mut(), <Arc<T> as RefCnt>::into_ptr)
    }

    #[inline(always)]
    fn as_ptr(me: &Self) -> *mut T {
        me.as_ref().map_or(std::ptr::null_mut(), <Arc<T> as RefCnt>::as_ptr)
    }

    #[inline(always)]
    unsafe fn from_ptr(address: *mut T) -> Self {
        // SAFETY: by the contract, and not null.
        (!address.is_null()).then(|| unsafe { Arc::from_raw(address) })
    }

    #[inline(always)]
    fn target(me: &Self) -> &Self {
        me
    }

    #[inline(always)]
    fn base(me: &Self) -> Option<&T> {
        me.as_deref()
    }
}

// SAFETY: `Weak::into_raw` and `Weak::from_raw` are the two directions. An address of a `Weak` that
// was made without a value is no object's, and never null.
unsafe impl<T: Send + Sync + 'static> RefCnt for Weak<T> {
    type Base = T;
    type Target = Self;

    const BYTES: usize = bytes_of_arc::<T>();

    fn into_ptr(me: Self) -> *mut T {
        Self::into_raw(me).cast_mut()
    }

    fn as_ptr(me: &Self) -> *mut T {
        Self::as_ptr(me).cast_mut()
    }

    unsafe fn from_ptr(address: *mut T) -> Self {
        // SAFETY: by the contract.
        unsafe { Self::from_raw(address) }
    }

    fn target(me: &Self) -> &Self {
        me
    }

    /// The value may be gone.
    fn base(_me: &Self) -> Option<&T> {
        None
    }
}

/// What [`compare_and_swap`](super::ArcCellAny::compare_and_swap) compares with: a reference to the
/// pointer, a guard or a reference to one, or an address.
///
/// With a pointer or a guard the address is the object's as long as they exist: no ABA. An address
/// alone does not keep its object alive.
pub trait AsRaw<B> {
    /// The address.
    fn as_raw(&self) -> *mut B;
}

impl<P: RefCnt> AsRaw<P::Base> for &P {
    fn as_raw(&self) -> *mut P::Base {
        P::as_ptr(self)
    }
}

impl<P: RefCnt> AsRaw<P::Base> for ArcGuard<P> {
    fn as_raw(&self) -> *mut P::Base {
        P::as_ptr(Self::as_inner(self))
    }
}

impl<P: RefCnt> AsRaw<P::Base> for &ArcGuard<P> {
    fn as_raw(&self) -> *mut P::Base {
        P::as_ptr(ArcGuard::as_inner(self))
    }
}

impl<B> AsRaw<B> for *const B {
    fn as_raw(&self) -> *mut B {
        self.cast_mut()
    }
}

impl<B> AsRaw<B> for *mut B {
    fn as_raw(&self) -> *mut B {
        *self
    }
}
