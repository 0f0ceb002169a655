//! What a guard defers: among the retired objects of its thread, so that this thread runs it.

use std::marker::PhantomData;

use grace::limit::Amount;

use super::pointable::Pointable;
use crate::reclaim::free::{Callback, Counted};
use crate::reclaim::weigh::{held, held_by};

/// A function that is called, and whose result is dropped.
#[repr(transparent)]
pub(super) struct Function<F, R>(F, PhantomData<fn() -> R>);

impl<F: FnOnce() -> R, R> Function<F, R> {
    /// What it is charged.
    pub(super) const AMOUNT: Amount = Amount::object(held_by::<F>() as u64);

    #[inline(always)]
    pub(super) fn new(f: F) -> Self {
        Self(f, PhantomData)
    }
}

impl<F: FnOnce() -> R, R> Callback for Function<F, R> {
    const BYTES: Option<u64> = Some(Self::AMOUNT.bytes);

    unsafe fn run(self) {
        drop((self.0)());
    }
}

/// An object that is destroyed, by its address.
#[repr(transparent)]
pub(super) struct Object<T: ?Sized>(*mut (), PhantomData<*mut T>);

impl<T: ?Sized + Pointable> Object<T> {
    pub(super) fn at(address: usize) -> Self {
        // Nothing is read through it: `Pointable` takes an address.
        Self(std::ptr::without_provenance_mut(address), PhantomData)
    }

    /// What it is charged.
    ///
    /// # Safety
    /// The object is valid.
    pub(super) unsafe fn amount(&self) -> Amount {
        if let Some(amount) = const { Self::AMOUNT } {
            return amount;
        }
        // SAFETY: by the contract.
        let object = unsafe { T::deref(self.0.addr()) };
        Amount::object((held_by::<Counted<Self>>() + size_of_val(object)) as u64)
    }

    /// The same, if it is so for all.
    const AMOUNT: Option<Amount> = match T::SIZE_OF_EACH {
        Some(bytes) => Some(Amount::object((held(1) + bytes) as u64)),
        None => None,
    };
}

impl<T: ?Sized + Pointable> Callback for Object<T> {
    const POINTER: bool = T::SIZE_OF_EACH.is_some();
    const BYTES: Option<u64> = match Self::AMOUNT {
        Some(amount) => Some(amount.bytes),
        None => None,
    };

    unsafe fn run(self) {
        // SAFETY: by the contract of `Guard::defer_destroy`; its grace period has ended.
        unsafe { T::drop(self.0.addr()) };
    }
}
