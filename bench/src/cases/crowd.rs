//! Threads that have come, and rest until they are sent home.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// Room for a parked thread and its thread-local data, and not more: thousands of them fit.
const STACK_BYTES: usize = 64 << 10;

/// Dropped, all go home.
#[derive(Debug)]
pub(crate) struct Crowd {
    threads: Vec<JoinHandle<()>>,
    leave: Arc<AtomicBool>,
}

impl Crowd {
    /// Gathers so many threads, which make themselves ready and then call what they are given: it
    /// returns when they are to go home. All are ready when this returns.
    ///
    /// # Errors
    /// When the system does not give so many threads, or one has panicked.
    pub(crate) fn gather(
        threads: usize,
        come: impl Fn(&dyn Fn()) + Clone + Send + 'static,
    ) -> io::Result<Crowd> {
        let mut crowd = Crowd { threads: Vec::new(), leave: Arc::default() };
        let (ready, all_ready) = mpsc::channel();
        for _ in 0..threads {
            let (come, leave) = (come.clone(), Arc::clone(&crowd.leave));
            let ready = Cell::new(Some(ready.clone()));
            let rest = move || {
                // Given up as well, so that who waits for all sees that one has panicked. The crowd
                // may have been given up already; then `leave` is set.
                let _ = ready.take().map(|ready| ready.send(()));
                // Relaxed: the flag carries no data, and `unpark` orders it before the wake-up.
                while !leave.load(Ordering::Relaxed) {
                    thread::park();
                }
            };
            // If this fails, dropping the crowd sends those home that have come.
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            crowd.threads.push(thread.spawn(move || come(&rest))?);
        }
        drop(ready);
        if all_ready.into_iter().count() < threads {
            return Err(io::Error::other("a thread ended before it was ready"));
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.leave.store(true, Ordering::Relaxed);
        for thread in &self.threads {
            thread.thread().unpark();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself; there is nothing to add.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn all_are_ready_and_go_home_with_what_they_hold() {
        let held = Arc::new(AtomicUsize::new(0));
        let come = {
            let held = Arc::clone(&held);
            move |rest: &dyn Fn()| {
                let _own = Arc::clone(&held);
                held.fetch_add(1, Ordering::Relaxed);
                rest();
            }
        };
        let crowd = Crowd::gather(5, come).expect("five threads");
        assert_eq!((held.load(Ordering::Relaxed), crowd.threads.len()), (5, 5));
        drop(crowd);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn one_that_panics_is_an_error_and_keeps_no_thread_waiting() {
        let come = {
            let came = Arc::new(AtomicUsize::new(0));
            move |rest: &dyn Fn()| {
                assert_ne!(came.fetch_add(1, Ordering::Relaxed), 1, "the second one");
                rest();
            }
        };
        assert!(Crowd::gather(3, come).is_err());
    }
}
