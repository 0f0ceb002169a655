//! In a hazard domain: which of the ready callbacks' objects are protected. One scan of the slots
//! is valid for all callbacks that were ready before it, since an object that it does not find is
//! never protected again ([`hazptr`], [HZ-A]).

use crate::hazptr;

/// The result of the last scan. Empty in other domains.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// How many callbacks, from the front, were ready before the scan and have not run.
    covers: u64,
    /// What was protected then, in ascending order; the runner has it while it runs callbacks.
    protected: Vec<usize>,
}

impl Scanned {
    /// A new scan, for `ready` callbacks. The caller has seen their grace period end, so the scan
    /// comes after its fence [HP-1].
    pub(super) fn of_now(ready: u64) -> Self {
        Self { covers: ready, protected: hazptr::scan() }
    }

    /// Whether the last scan covers nothing more.
    pub(super) fn is_used_up(&self) -> bool {
        self.covers == 0
    }

    /// How many of the `ready` callbacks the last scan covers.
    pub(super) fn covered(&self, ready: u64) -> u64 {
        ready.min(self.covers)
    }

    /// Moves out what is protected, for the runner.
    pub(super) fn take_protected(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.protected)
    }

    /// `count` of the claimed callbacks have run; takes back what [`Self::take_protected`] gave.
    pub(super) fn ran(&mut self, count: u64, protected: Vec<usize>) {
        if self.covers != 0 {
            *self = Self { covers: self.covers - count, protected };
        }
    }
}
