//! Threads that have come, and rest until they are sent home.

use std::cell::Cell;
use std::sync::mpsc;
use std::{io, thread};

use parking_lot::RwLock;

/// Room for a parked thread and its thread-local data, and not more: thousands of them fit.
const STACK_BYTES: usize = 64 << 10;

/// Gathers so many threads, which make themselves ready and then call what they are given: it
/// returns when they are to go home. Does `inside` while all of them are ready.
///
/// # Errors
/// When the system does not give so many threads, or one has panicked.
pub(crate) fn beside<R>(
    threads: usize,
    come: impl Fn(&dyn Fn()) + Sync,
    inside: impl FnOnce() -> R,
) -> io::Result<R> {
    let (come, exit) = (&come, &RwLock::new(()));
    let (ready, all_ready) = mpsc::channel();
    thread::scope(|scope| {
        // Opened before the threads are waited for, however this ends.
        let closed = exit.write();
        let mut crowd = Vec::new();
        for _ in 0..threads {
            let ready = Cell::new(Some(ready.clone()));
            let rest = move || {
                // Given up as well, so that who waits for all sees that one has panicked. The crowd
                // may have been given up already; then the exit is open.
                let _ = ready.take().map(|ready| ready.send(()));
                drop(exit.read());
            };
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            crowd.push(thread.spawn_scoped(scope, move || come(&rest))?);
        }
        drop(ready);
        let are_all_ready = all_ready.into_iter().count() == threads;
        let result = are_all_ready.then(inside);
        drop(closed);
        // A thread that panicked has said so itself; there is nothing to add.
        crowd.into_iter().for_each(|thread| _ = thread.join());
        result.ok_or_else(|| io::Error::other("a thread ended before it was ready"))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_are_ready_and_go_home() {
        let (came, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let come = |rest: &dyn Fn()| {
            came.fetch_add(1, Ordering::Relaxed);
            rest();
            gone.fetch_add(1, Ordering::Relaxed);
        };
        let seen = || [&came, &gone].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(beside(5, come, seen).expect("five threads"), [5, 0]);
        assert_eq!(seen(), [5, 5]);
    }

    #[test]
    fn one_that_panics_is_an_error_and_keeps_no_thread_waiting() {
        let came = AtomicUsize::new(0);
        let come = |rest: &dyn Fn()| {
            assert_ne!(came.fetch_add(1, Ordering::Relaxed), 1, "the second one");
            rest();
        };
        assert!(beside(3, come, || ()).is_err());
    }
}
