//! The machine's lock: taken with interrupts off, held for a grace period's few steps.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use crate::sync::{AtomicU32, Ordering, constant, pause};

/// How often [`Lock::lock_soon`] looks. A lock that others want as well is found free in between.
const LOOKS: u32 = 10_000;

/// A spin lock. It turns no interrupts off: whoever takes it has done so.
#[repr(align(128))]
pub(crate) struct Lock<T> {
    is_held: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: one CPU at a time has the guard, and only through it is the value reached.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    constant! {
        pub(crate) fn new(value: T) -> Self {
            Self { is_held: AtomicU32::new(0), value: UnsafeCell::new(value) }
        }
    }

    /// Waits until the lock is free, and takes it.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            // Relaxed: a look that takes nothing.
            while self.is_held.load(Ordering::Relaxed) != 0 {
                pause();
            }
        }
    }

    /// Takes the lock, if it becomes free soon: whoever holds it may have crashed.
    pub(crate) fn lock_soon(&self) -> Option<Guard<'_, T>> {
        (0..LOOKS).find_map(|_| {
            let guard = self.try_lock();
            if guard.is_none() {
                pause();
            }
            guard
        })
    }

    /// Takes the lock, if it is free.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire: pairs with the Release of the guard's drop [KN-3], by which all that was done
        // under the lock before is seen.
        // (A guard is made only then: the drop of another would free the lock.)
        let taken = self.is_held.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| Guard { lock: self })
    }
}

/// The lock is held.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard is there, so no other CPU reaches the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed alone.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of `try_lock` [KN-3].
        self.lock.is_held.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_get_the_lock_does_not_free_it() {
        let lock = Lock::new(0);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none() && lock.try_lock().is_none());
        drop(guard);
        *lock.try_lock().expect("it is free") += 1;
        assert_eq!(*lock.lock(), 1);
    }

    #[test]
    fn a_lock_that_is_held_is_given_up_and_one_that_becomes_free_is_not() {
        let lock = Lock::new(0);
        let guard = lock.lock();
        assert!(lock.lock_soon().is_none());
        drop(guard);
        assert!(lock.lock_soon().is_some());
        assert!(lock.try_lock().is_some(), "it is free again");
    }
}
