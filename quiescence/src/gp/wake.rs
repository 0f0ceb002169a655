//! The words by which the readers of a domain wake its driver.
//!
//! An error here leaves a driver asleep, or wakes it for nothing: then it scans again.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use crate::os::futex;
use crate::os::sync::{AtomicU32, const_unless_loom};

/// A value in cache lines of its own: keeps what readers load apart from what updaters store.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

/// What a sleeping driver waits for.
#[derive(Debug)]
pub(crate) struct Wake {
    /// How many marked holdouts have not reported yet.
    pub(crate) left: AtomicU32,
    /// How often all of them had reported, or a driver had been superseded. The driver sleeps on
    /// this, not on `left`, which returns to earlier values: a superseded driver that is late to
    /// its sleep would then wait for the holdouts of its successor.
    bell: AtomicU32,
}

impl Wake {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self { left: AtomicU32::new(0), bell: AtomicU32::new(0) }
        }
    }

    /// A holdout that was marked has left its section.
    pub(super) fn holdout_left(&self) {
        // AcqRel: the decrements form one chain, so that the last one carries what all holdouts
        // did to the sleeper [GP-7].
        match self.left.fetch_sub(1, AcqRel) {
            1 => self.ring(),
            // A handler has forked since this thread cleared its mark: the child reset `left`. (If
            // another thread of the child sleeps by now, that thread scans once too often.)
            0 => _ = self.left.fetch_add(1, Relaxed),
            _ => {}
        }
    }

    /// How often the bell has been rung. The caller loads this before it checks `left` or the term,
    /// and passes it to [`wait`](Self::wait).
    pub(crate) fn rung(&self) -> u32 {
        // Acquire: pairs with the Release in `ring`; a sleeper that counts a ring sees what was
        // changed before it.
        self.bell.load(Acquire)
    }

    /// Sleeps until the bell has been rung more often than `rung`, but no longer than `most`; may
    /// return early.
    pub(crate) fn wait(&self, rung: u32, most: Option<Duration>) {
        futex::wait(&self.bell, rung, most);
    }

    /// Wakes the driver: `left` is 0, or a new term has begun.
    pub(crate) fn ring(&self) {
        // Release: see `rung`.
        self.bell.fetch_add(1, Release);
        futex::wake_all(&self.bell);
    }
}
