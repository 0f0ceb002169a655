//! How many callbacks a domain has, for its statistics.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{Queues, bytes_between};
use crate::event::statistics::Callbacks;
use crate::os::sync;

impl Queues {
    /// Callbacks ever added and ever finished, and the bytes that wait.
    pub(crate) fn counts(&self) -> Callbacks {
        let list = sync::lock(&self.list);
        // Relaxed: under the list's lock. Those in `gone` were added and have finished.
        let gone = self.gone.load(Relaxed);
        let none = Callbacks { queued: gone, run: gone, bytes_waiting: 0 };
        // Under the lock to the end: meanwhile no callback moves from one queue to another.
        let mut look = || {
            list.iter().fold(none, |all, queue| {
                // `finished` is loaded before `written`, so `run <= queued`: what happens between
                // the two loads is counted in `queued` only.
                let run = queue.finished.load(Acquire);
                let bytes_run = queue.bytes_finished.load(Relaxed);
                let bytes = queue.own.0.bytes.load(Relaxed);
                Callbacks {
                    queued: all.queued + queue.own.0.stream.written(),
                    run: all.run + run,
                    bytes_waiting: all
                        .bytes_waiting
                        .saturating_add(bytes_between(bytes_run, bytes)),
                }
            })
        };
        let run = || list.iter().fold(gone, |all, queue| all + queue.finished.load(Acquire));
        Callbacks::steadiest(&mut look, &run)
    }
}
