//! Atomics, cells and locks: the standard library's, or loom's when it explores the code.
//!
//! Each lock has a [`Rank`], which alone defines the order in which they are taken. Poisoning is
//! ignored: user code runs under none of these locks but [`Rank::Consumers`], so what they guard is
//! consistent even if a thread has panicked.

#[cfg(loom)]
use loom as base;
#[cfg(not(loom))]
use std as base;

pub(crate) use base::cell::Cell;
pub(crate) use base::sync::{
    Condvar,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence},
};

use base::sync as locks;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

pub(crate) use super::for_loom::{Tracked, array_of, const_unless_loom};
pub(crate) use super::lock_rank::Rank;
use super::lock_rank::{Held, OfLock};

/// A lock with its rank.
#[derive(Debug)]
pub(crate) struct Mutex<T: ?Sized> {
    rank: OfLock,
    lock: locks::Mutex<T>,
}

impl<T> Mutex<T> {
    const_unless_loom! {
        pub(crate) fn new(rank: Rank, value: T) -> Self {
            Self { rank: OfLock::new(rank), lock: locks::Mutex::new(value) }
        }
    }
}

impl<T: ?Sized> Mutex<T> {
    fn acquire(&self) -> locks::MutexGuard<'_, T> {
        if cfg!(loom) { locked(&self.lock) } else { acquire(&self.lock) } // loom's panics unwind
    }

    fn taken<'a>(&'a self, guard: locks::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { held: self.rank.taken(), guard: Base(ManuallyDrop::new(guard)) }
    }
}

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T: ?Sized> {
    /// Dropped before the lock is released.
    held: Held,
    guard: Base<'a, T>,
}

/// The guard of the standard library, or loom's.
#[derive(Debug)]
struct Base<'a, T: ?Sized>(ManuallyDrop<locks::MutexGuard<'a, T>>);

impl<T: ?Sized> Drop for Base<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is being dropped, so nothing uses it afterwards.
        let guard = unsafe { ManuallyDrop::take(&mut self.0) };
        // Loom's panics unwind.
        if cfg!(loom) { drop(guard) } else { release(guard) }
    }
}

/// Locks. By its ABI the compiler knows what it cannot see, that this does not unwind; so callers,
/// of which there are many, need no code for that. [`release`] is the same.
#[allow(improper_ctypes_definitions)] // no C calls them
#[inline(never)]
extern "C" fn acquire<T: ?Sized>(lock: &locks::Mutex<T>) -> locks::MutexGuard<'_, T> {
    locked(lock)
}

fn locked<T: ?Sized>(lock: &locks::Mutex<T>) -> locks::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(improper_ctypes_definitions)]
#[inline(never)]
extern "C" fn release<T: ?Sized>(guard: locks::MutexGuard<'_, T>) {
    drop(guard);
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard.0
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard.0
    }
}

/// Locks, even if a thread has panicked under the lock.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.rank.check(false);
    mutex.taken(mutex.acquire())
}

/// As [`lock`], if the thread may hold other locks of the same rank. Another lock, which it holds
/// already, keeps other threads from doing the same; or users must take them in one order.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn lock_another<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.rank.check(true);
    mutex.taken(mutex.acquire())
}

/// Locks if no thread holds the lock. It does not wait, so it may be called in any order.
#[inline]
pub(crate) fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.lock.try_lock() {
        Ok(guard) => Some(mutex.taken(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(mutex.taken(poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits for a notification; may return without one.
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    wait_at_most(condvar, guard, None).0
}

/// Tells the CPU that the thread spins; under loom, yields.
pub(crate) fn relax() {
    base::hint::spin_loop();
}

/// Waits for a notification, but no longer than `most`; may return without one. Loom has no clock.
/// Returns whether `most` has passed.
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn wait_at_most<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    most: Option<Duration>,
) -> (MutexGuard<'a, T>, bool) {
    let MutexGuard { held, guard } = guard;
    let mut base = ManuallyDrop::new(guard);
    // SAFETY: nothing uses `base` afterwards, nor drops it.
    let guard = unsafe { ManuallyDrop::take(&mut base.0) };
    let wait = || match most {
        Some(most) => {
            let waited = condvar.wait_timeout(guard, most);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            (guard, timeout.timed_out())
        }
        None => (condvar.wait(guard).unwrap_or_else(PoisonError::into_inner), false),
    };
    let (held, (guard, late)) = held.without(wait);
    (MutexGuard { held, guard: Base(ManuallyDrop::new(guard)) }, late)
}
