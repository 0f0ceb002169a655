//! [`ExactGuard`]: the result of a load from a cell.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use super::counted::Counted;
use crate::domain::impls::{made_of_value, shown_as_target};
use crate::hazptr::borrows::{Borrow, Borrowed};
use crate::os::user_code::{self, Site};

/// The pointer that a load found in a cell: borrowed from the cell, or with a count of its own. It
/// stays valid as long as the guard, even if the cell is replaced or dropped.
///
/// A guard may be kept, held across `.await`, and sent to another thread if its pointer may. While
/// it lives it occupies one of eight slots of the thread that created it, unless it has a count of
/// its own. Dropping it is wait-free. If the cell was replaced meanwhile, this drops a reference,
/// which may be the last.
///
/// A guard that is leaked with [`std::mem::forget`] occupies its slot forever, and its value is
/// never dropped.
#[must_use = "the value is borrowed while the guard lives"]
pub struct ExactGuard<P: Counted> {
    pointer: ManuallyDrop<P>,
    /// The slot that has the borrow. None if the reference is the guard's own, or there is none.
    slot: Option<&'static Borrow>,
}

impl<P: Counted> ExactGuard<P> {
    /// Of what was borrowed from a cell of such pointers.
    ///
    /// # Safety
    /// It is the guard's alone.
    #[inline(always)]
    pub(super) unsafe fn of(borrowed: Borrowed<'static, P::Base>) -> Self {
        let (address, slot) = match borrowed {
            Borrowed::Null => (std::ptr::null_mut(), None),
            Borrowed::Confirmed(address, slot) => (address, Some(slot)),
            Borrowed::Paid(address) => (address, None),
        };
        // SAFETY: by the contract, and from a cell. What is borrowed is not dropped.
        let pointer = ManuallyDrop::new(unsafe { P::from_ptr(address) });
        Self { pointer, slot }
    }

    /// Creates a guard of a pointer that need not be in any cell.
    #[inline]
    pub fn from_inner(pointer: P) -> Self {
        Self { pointer: ManuallyDrop::new(pointer), slot: None }
    }

    /// Consumes the guard, and returns a counted reference. Costs as much as a clone, unless the
    /// guard already has a count of its own.
    #[inline]
    pub fn into_inner(guard: Self) -> P {
        if guard.slot.is_some() {
            return user_code::run(Site::Pointer, || P::clone(&guard.pointer));
        }
        let mut guard = ManuallyDrop::new(guard);
        // SAFETY: taken once: the guard is not dropped.
        unsafe { ManuallyDrop::take(&mut guard.pointer) }
    }
}

impl<P: Counted> Drop for ExactGuard<P> {
    #[inline]
    fn drop(&mut self) {
        if self.slot.is_none_or(|slot| !slot.give_back()) {
            // SAFETY: its own, or paid for; and dropped once.
            drop(unsafe { ManuallyDrop::take(&mut self.pointer) })
        }
    }
}

impl<P: Counted> Deref for ExactGuard<P> {
    type Target = P;

    #[inline(always)]
    fn deref(&self) -> &P {
        &self.pointer
    }
}

made_of_value!(ExactGuard<P: Counted>, from_inner);

shown_as_target!(impl<P: Counted + fmt::Debug> fmt::Debug for ExactGuard<P>);

shown_as_target!(impl<P: Counted + fmt::Display> fmt::Display for ExactGuard<P>);
