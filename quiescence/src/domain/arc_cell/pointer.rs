//! Counted pointers that a cell can hold: [`RefCnt`]; and pointers to compare with: [`AsRaw`].

use std::sync::{Arc, Weak};

use super::ArcGuard;
use crate::domain::exact_cell::Counted;

/// A [`Counted`] pointer that an [`ArcCellAny`](super::ArcCellAny) can hold. Adds what a guard
/// dereferences to, and the size of a reference that waits to be dropped.
///
/// Implemented for [`Arc`], `Option<Arc>` and [`Weak`]; implement it for a counted pointer of your
/// own (`triomphe`'s, an `Arc` with a header).
///
/// # Safety
/// [`target`](Self::target) and [`base`](Self::base) do not change when the pointer is moved.
pub unsafe trait RefCnt: Counted<Base: 'static> + Send + Sync + 'static {
    /// What [`ArcGuard`] dereferences to.
    type Target: ?Sized;

    /// The bytes allocated for one object, judged by its size. At least the size of
    /// [`Base`](Counted::Base).
    const BYTES: usize = size_of::<Self::Base>();

    /// What a guard dereferences to.
    fn target(me: &Self) -> &Self::Target;

    /// The value that is weighed while a reference waits to be dropped; `None` if there is nothing
    /// to weigh.
    fn base(me: &Self) -> Option<&Self::Base>;
}

/// What the standard library allocates for an `Arc<T>`: two counts, and the value.
const fn bytes_of_arc<T>() -> usize {
    let counts = 2 * size_of::<usize>();
    let before = counts.next_multiple_of(align_of::<T>());
    (before + size_of::<T>()).next_multiple_of(align_of::<usize>())
}

// SAFETY: the value is in memory that does not move.
unsafe impl<T: Send + Sync + 'static> RefCnt for Arc<T> {
    type Target = T;

    const BYTES: usize = bytes_of_arc::<T>();

    #[inline(always)]
    fn target(me: &Self) -> &T {
        me
    }

    #[inline(always)]
    fn base(me: &Self) -> Option<&T> {
        Some(me)
    }
}

// SAFETY: as for the `Arc`; the target is the pointer itself.
unsafe impl<T: Send + Sync + 'static> RefCnt for Option<Arc<T>> {
    type Target = Self;

    const BYTES: usize = bytes_of_arc::<T>();

    #[inline(always)]
    fn target(me: &Self) -> &Self {
        me
    }

    #[inline(always)]
    fn base(me: &Self) -> Option<&T> {
        me.as_deref()
    }
}

// SAFETY: the target is the pointer itself.
unsafe impl<T: Send + Sync + 'static> RefCnt for Weak<T> {
    type Target = Self;

    const BYTES: usize = bytes_of_arc::<T>();

    fn target(me: &Self) -> &Self {
        me
    }

    /// The value may be gone.
    fn base(_me: &Self) -> Option<&T> {
        None
    }
}

/// What [`compare_and_swap`](super::ArcCellAny::compare_and_swap) can compare with: a reference to
/// the pointer, a guard or a reference to one, or an address.
///
/// While a pointer or a guard exists, no other object can have its address, so there is no ABA
/// problem. A bare address does not keep its object alive.
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
