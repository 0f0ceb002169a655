//! Atomics, cells and locks: the standard library's, or loom's when it explores the code.
//!
//! A lock that a panicking thread held is taken as it is: user code never runs under our locks, so
//! what they guard is whole.

#[cfg(loom)]
pub(crate) use loom::cell::Cell;
#[cfg(loom)]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence},
};
#[cfg(not(loom))]
pub(crate) use std::cell::Cell;
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence},
};

use std::sync::PoisonError;
use std::time::Duration;

/// A constructor that is `const`, but for loom, whose atomics and locks cannot be made so.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $vis:vis fn new($($argument:ident: $type:ty),*) -> Self $body:block) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        $vis const fn new($($argument: $type),*) -> Self $body

        $(#[$meta])*
        #[cfg(loom)]
        $vis fn new($($argument: $type),*) -> Self $body
    };
}
pub(crate) use const_unless_loom;

/// Where loom is told of plain accesses to so many places, so that it finds those that are not ordered.
/// Without loom it is nothing.
#[derive(Debug)]
pub(crate) struct Tracked<const N: usize> {
    #[cfg(loom)]
    places: [loom::cell::UnsafeCell<()>; N],
}

impl<const N: usize> Tracked<N> {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                #[cfg(loom)]
                places: std::array::from_fn(|_| loom::cell::UnsafeCell::new(())),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn write(&self, _place: usize) {
        #[cfg(loom)]
        self.places[_place].with_mut(|_| ());
    }

    #[inline(always)]
    pub(crate) fn read(&self, _place: usize) {
        #[cfg(loom)]
        self.places[_place].with(|_| ());
    }
}

/// Locks, whoever panicked before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks if nobody holds the lock.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// Waits for a notification; may return without one.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Lets the processor breathe between two looks.
pub(crate) fn relax() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}

/// Waits for a notification, but no longer than `most`; may return without one. Loom has no clock. Returns whether it took
/// as long as that.
pub(crate) fn wait_at_most<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    most: Option<Duration>,
) -> (MutexGuard<'a, T>, bool) {
    match most {
        Some(most) if cfg!(not(loom)) => {
            let waited = condvar.wait_timeout(guard, most);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            (guard, timeout.timed_out())
        }
        _ => (wait(condvar, guard), false),
    }
}

/// Between two looks at what has no hurry: a tick at HZ = 100, rcu_ltimer's overhead.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Lets a tick go by.
pub(crate) fn tick() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    nap(TICK);
}

/// Lets others do what this thread waits for.
#[cfg(not(loom))]
pub(crate) fn moment() {
    nap(Duration::from_micros(200));
}

/// Lets so much time go by, or less, if a signal comes. Loom has no clock.
///
/// Not by the C library's `nanosleep`: that is a cancellation point, and a driver that `pthread_cancel` ends there
/// leaves its domain without one for ever.
pub(crate) fn nap(time: Duration) {
    #[cfg(loom)]
    {
        let _ = time;
        loom::thread::yield_now();
    }
    #[cfg(all(target_os = "linux", not(loom)))]
    super::futex::wait(&AtomicU32::new(0), 0, Some(time));
    #[cfg(all(not(target_os = "linux"), not(loom)))]
    std::thread::sleep(time);
}
