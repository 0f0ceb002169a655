//! Threads that have come, and rest until they are sent home, or to work.

use std::sync::mpsc::{self, Sender};
use std::{io, thread};

use parking_lot::{RwLock, RwLockWriteGuard};

/// Enough for what these threads do, and not more: thousands of them fit.
pub(crate) const STACK_BYTES: usize = 128 << 10;

/// Where a thread rests that is ready.
#[derive(Debug)]
pub(crate) struct Rest<'a> {
    ready: Sender<()>,
    exit: &'a RwLock<()>,
}

impl Rest<'_> {
    /// Says that the thread is ready; returns when the exit is open.
    pub(crate) fn until_sent(self) {
        // Given up as well, so that who waits for all sees that one has panicked. The crowd may
        // have been given up already; then the exit is open.
        let _ = self.ready.send(());
        drop(self.ready);
        drop(self.exit.read());
    }
}

/// Gathers so many threads, which get their numbers, make themselves ready and then rest. Does
/// `inside` while all of them rest: until it has dropped what it is given, which keeps the exit
/// closed. What that gives, and what they give, but for those that have panicked.
///
/// # Errors
/// When the system does not give so many threads, or one has panicked before it was ready.
pub(crate) fn beside<R, T: Send>(
    threads: usize,
    come: impl Fn(usize, Rest<'_>) -> T + Sync,
    inside: impl FnOnce(RwLockWriteGuard<'_, ()>) -> R,
) -> io::Result<(R, Vec<T>)> {
    let (come, exit) = (&come, &RwLock::new(()));
    let (ready, all_ready) = mpsc::channel();
    thread::scope(|scope| {
        // Opened before the threads are waited for, however this ends.
        let closed = exit.write();
        let mut crowd = Vec::new();
        for number in 0..threads {
            let rest = Rest { ready: ready.clone(), exit };
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            crowd.push(thread.spawn_scoped(scope, move || come(number, rest))?);
        }
        drop(ready);
        let are_all_ready = all_ready.into_iter().count() == threads;
        let result = are_all_ready.then(|| inside(closed));
        // A thread that panicked has said so itself; there is nothing to add.
        let given = crowd.into_iter().filter_map(|thread| thread.join().ok()).collect();
        let result =
            result.ok_or_else(|| io::Error::other("a thread ended before it was ready"))?;
        Ok((result, given))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_are_ready_and_go_home() {
        let (came, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let come = |_, rest: Rest<'_>| {
            came.fetch_add(1, Ordering::Relaxed);
            rest.until_sent();
            gone.fetch_add(1, Ordering::Relaxed);
        };
        let seen = || [&came, &gone].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(beside(5, come, |_closed| seen()).expect("five threads").0, [5, 0]);
        assert_eq!(seen(), [5, 5]);
    }

    #[test]
    fn one_that_panics_is_an_error_and_keeps_no_thread_waiting() {
        let came = AtomicUsize::new(0);
        let come = |_, rest: Rest<'_>| {
            assert_ne!(came.fetch_add(1, Ordering::Relaxed), 1, "the second one");
            rest.until_sent();
        };
        assert!(beside(3, come, |_closed| ()).is_err());
    }
}
