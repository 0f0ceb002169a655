//! Replacing an `Arc` that many threads have loaded: they live, and rest.
//!
//! Some designs look through something for each thread that has ever read. The place holds one of
//! two `Arc`s in turn, so that nothing is allocated or freed.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use crate::rivals::{Rival, Stored};
use crate::slices::Row;

/// Room for a parked thread and its thread-local data, and not more.
const IDLE_STACK_BYTES: usize = 64 << 10;

/// The rivals whose `Arc`s are replaced.
pub fn rivals() -> Vec<&'static Rival> {
    super::those(|rival| rival.store.is_some())
}

fn places() -> Vec<Stored> {
    rivals().iter().filter_map(|rival| rival.store).collect()
}

/// Threads that have loaded once from every place, and rest until this is dropped.
#[derive(Debug)]
pub struct Crowd {
    threads: Vec<JoinHandle<()>>,
    leave: Arc<AtomicBool>,
}

impl Crowd {
    /// Gathers so many threads; all have loaded when this returns.
    ///
    /// # Errors
    /// When the system does not give so many threads.
    ///
    /// # Panics
    /// If one of the threads does.
    pub fn gather(threads: usize) -> io::Result<Self> {
        let mut crowd = Self { threads: Vec::new(), leave: Arc::default() };
        let (ready, all_ready) = mpsc::channel();
        for _ in 0..threads {
            let (ready, leave) = (ready.clone(), Arc::clone(&crowd.leave));
            let rest = move || {
                let places = places();
                let loaded: u64 = places.iter().map(|place| (place.load)()).sum();
                assert_eq!(loaded, places.len() as u64, "every place holds a 1");
                // The crowd may have been given up already; then `leave` is set.
                let _ = ready.send(());
                drop(ready);
                // Relaxed: the flag carries no data, and `unpark` orders it before the wake-up.
                while !leave.load(Ordering::Relaxed) {
                    thread::park();
                }
            };
            // If this fails, dropping the crowd sends those home that have come.
            let thread = thread::Builder::new().stack_size(IDLE_STACK_BYTES).spawn(rest)?;
            crowd.threads.push(thread);
        }
        drop(ready);
        if all_ready.into_iter().count() < threads {
            return Err(io::Error::other("a thread ended before it had loaded"));
        }
        Ok(crowd)
    }

    /// A store beside them, which asserts that what was stored last is what is loaded afterwards.
    pub(crate) fn row<'a>(&'a self, rival: &'a Rival) -> Row<'a> {
        let place = rival.store.expect("only rivals that store are asked");
        Row::new(1, move |part| {
            let arcs = [Arc::new(1), Arc::new(1)];
            let mut number = 0;
            let took = part.times(|| {
                (place.store)(Arc::clone(black_box(&arcs[number % 2])));
                number += 1;
            });
            (place.flush)();
            assert_eq!((place.load)(), 1, "{} holds a 1", rival.name);
            let held = arcs.iter().map(|arc| Arc::strong_count(arc) - 1).sum::<usize>();
            assert_eq!(held, 1, "{} holds the last one", rival.name);
            took
        })
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
    use super::*;
    use crate::slices;

    #[test]
    fn every_place_holds_what_was_stored_last_whoever_has_loaded() {
        let crowd = Crowd::gather(20).expect("twenty threads");
        for rival in rivals() {
            for stores in [1, 100] {
                assert!(slices::once(&crowd.row(rival), stores) > 0.0, "{}", rival.name);
            }
        }
    }
}
