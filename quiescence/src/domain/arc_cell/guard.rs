//! [`ArcGuard`]: the result of a load from a cell.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use super::pointer::RefCnt;
use crate::domain::impls::{made_of_value, shown_as_target};
use crate::hazptr::slots::Slot;
use crate::os::user_code::{self, Site};

/// The pointer that a load found in a cell. It stays valid as long as the guard, even if the cell
/// is replaced or dropped.
///
/// For an [`ArcCell<T>`](super::ArcCell) it dereferences to `T`, for an
/// [`ArcCellOption<T>`](super::ArcCellOption) to `Option<Arc<T>>`, for an
/// [`ArcCellWeak<T>`](super::ArcCellWeak) to `Weak<T>`: see [`RefCnt::Target`].
///
/// A guard is `Send` and `'static`: it may be kept, returned, sent to another thread, and held
/// across `.await`. It keeps only its own value alive, and delays no grace period. While it lives
/// it occupies one of the eight hazard slots of the thread that created it. If all eight are in
/// use, a new guard has a reference of its own, as [`into_inner`](Self::into_inner) returns.
/// Dropping a guard that has a slot is wait-free: one store, on any thread. Dropping any other
/// guard drops its reference, which may be the last.
///
/// A guard that is leaked with [`std::mem::forget`] occupies its slot forever, and its value is
/// never dropped.
#[must_use = "the value is protected while the guard lives"]
pub struct ArcGuard<P: RefCnt> {
    pub(super) pointer: ManuallyDrop<P>,
    /// The slot that protects it, which the guard releases. None if the reference is its own.
    pub(super) slot: Option<&'static Slot>,
}

impl<P: RefCnt> ArcGuard<P> {
    /// Creates a guard of a pointer that need not be in any cell: `arc-swap`'s `Guard::from_inner`.
    #[inline]
    pub fn from_inner(pointer: P) -> Self {
        Self { pointer: ManuallyDrop::new(pointer), slot: None }
    }

    /// The pointer that was in the cell. A clone of it has a count of its own.
    #[inline]
    pub fn as_inner(guard: &Self) -> &P {
        &guard.pointer
    }

    /// Consumes the guard, and returns a counted reference. Costs as much as a clone.
    #[inline]
    pub fn into_inner(guard: Self) -> P {
        if guard.slot.is_some() {
            // The guard is dropped afterwards, also where the clone panics.
            return user_code::run(Site::Pointer, || P::clone(&guard.pointer));
        }
        let mut guard = ManuallyDrop::new(guard);
        // SAFETY: taken once: the guard is not dropped.
        unsafe { ManuallyDrop::take(&mut guard.pointer) }
    }
}

impl<P: RefCnt> Drop for ArcGuard<P> {
    #[inline]
    fn drop(&mut self) {
        match self.slot {
            Some(slot) => slot.release(),
            // Taken, not dropped in its place: the guard stays in registers then.
            // SAFETY: its own, and dropped once.
            None => drop(unsafe { ManuallyDrop::take(&mut self.pointer) }),
        }
    }
}

impl<P: RefCnt> Deref for ArcGuard<P> {
    type Target = P::Target;

    #[inline(always)]
    fn deref(&self) -> &P::Target {
        user_code::run(Site::Pointer, || P::target(&self.pointer))
    }
}

made_of_value!(ArcGuard<P: RefCnt>, from_inner);

impl<T: Send + Sync + 'static> From<ArcGuard<Self>> for Arc<T> {
    fn from(guard: ArcGuard<Self>) -> Self {
        ArcGuard::into_inner(guard)
    }
}

shown_as_target!(impl<P: RefCnt<Target: fmt::Debug>> fmt::Debug for ArcGuard<P>);

shown_as_target!(impl<P: RefCnt<Target: fmt::Display>> fmt::Display for ArcGuard<P>);
