//! A spin lock with interrupts off.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering::*};

use crate::hart;

pub(crate) struct Lock<T> {
    is_held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one hart at a time reaches the value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { is_held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    pub(crate) fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R {
        let _irq = hart::irqs_off();
        // Acquire: pairs with the Release below.
        while self.is_held.swap(true, Acquire) {
            hart::give_turn();
        }
        // SAFETY: it is held, with interrupts off.
        let result = what(unsafe { &mut *self.value.get() });
        self.is_held.store(false, Release);
        result
    }
}
