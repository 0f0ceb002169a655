//! In a hazard domain: what is protected of the callbacks that are ready. One scan of the slots
//! holds for all that were ready before it, since what it does not find is never protected again
//! ([`hazptr`](crate::hazptr), [HZ-A]).

#[cfg(not(loom))]
use crate::hazptr;

/// What the last scan has found. Empty in other domains.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// So many callbacks, from the front, that were ready before the scan.
    covers: u64,
    /// What was protected then, in ascending order; the runner's while callbacks are run.
    protected: Vec<usize>,
}

impl Scanned {
    /// A new one, for so many callbacks that are ready. It comes after the end of their grace
    /// period was seen, with its fence [HP-1].
    #[cfg(not(loom))]
    pub(super) fn of_now(ready: u64) -> Self {
        Self { covers: ready, protected: hazptr::scan() }
    }

    /// Whether the last scan covers nothing more.
    #[cfg(not(loom))]
    pub(super) fn is_used_up(&self) -> bool {
        self.covers == 0
    }

    /// How many of these callbacks, which are ready, the last scan covers.
    pub(super) fn covered(&self, ready: u64) -> u64 {
        ready.min(self.covers)
    }

    /// What is protected of those that are claimed, for the thread that runs them.
    pub(super) fn take_protected(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.protected)
    }

    /// So many of those that were claimed have run.
    pub(super) fn ran(&mut self, count: u64, protected: Vec<usize>) {
        if self.covers != 0 {
            *self = Self { covers: self.covers - count, protected };
        }
    }
}
