//! Two of the standard library's locks at once, in an order that rules out a deadlock.

#![allow(unreachable_pub, reason = "several programs share it")]

use std::ptr;
use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// The guards of two locks, in the order of the arguments.
type Pair<'l, T, U> = (MutexGuard<'l, T>, MutexGuard<'l, U>);

/// Locks two mutexes, the one with the lower address first; the guards come in the order of the
/// arguments.
///
/// Threads that take pairs of locks by this function do not wait for each other in a cycle: each
/// waits only for a lock whose address is higher than that of the lock it holds. That holds as long
/// as they have no other lock of these when they call it.
///
/// # Progress and cost
/// Blocking, as [`Mutex::lock`]: a comparison more than two of those.
///
/// # Errors
/// As [`Mutex::lock`], if a thread has panicked that held one of the two; both guards are in the
/// error.
///
/// # Panics
/// If both are the same mutex, before anything is locked.
///
/// # Source
/// Dijkstra's ordered resources (EWD 310, 1971); with addresses, `double_lock_balance` and
/// `lock_two_nondirectories` of the Linux kernel, and McKenney, "Is Parallel Programming Hard, And,
/// If So, What Can You Do About It?", chapter 7.
#[track_caller]
pub fn lock_pair<'l, T: ?Sized, U: ?Sized>(
    first: &'l Mutex<T>,
    second: &'l Mutex<U>,
) -> LockResult<Pair<'l, T, U>> {
    let addresses = (ptr::from_ref(first).addr(), ptr::from_ref(second).addr());
    assert_ne!(addresses.0, addresses.1, "lock_pair() of a mutex with itself");
    let (first, second) = if addresses.0 < addresses.1 {
        let first = first.lock();
        (first, second.lock())
    } else {
        let second = second.lock();
        (first.lock(), second)
    };
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (first, second) => {
            let first = first.unwrap_or_else(PoisonError::into_inner);
            Err(PoisonError::new((first, second.unwrap_or_else(PoisonError::into_inner))))
        }
    }
}
