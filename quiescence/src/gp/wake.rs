//! The words by which the readers of a domain wake its driver, and the marks by which a reader
//! knows that it has something to do when it leaves.
//!
//! An error here leaves a driver asleep, or wakes it for nothing: then it scans again. Or it leaves
//! work undone that the end of a section was to do, or has it done too often.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use crate::os::sync::{AtomicU32, const_unless_loom};
use crate::os::{fence, futex};

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

/// A sleeping updater waits for this reader to leave its section.
pub(crate) const WAITED_FOR: u32 = 1;
/// The thread is exiting, in a section that a guard keeps open or that a thread-local's destructor
/// began: unregister once the section has ended.
pub(crate) const LEAVING: u32 = 2;
/// Where a section ends, a light fence is not enough. (Where one begins, the slot asks
/// [`is_fast`](crate::gp::slot::Slot::is_fast), not this.)
const PORTABLE: u32 = 4;
/// The owner has deferred work to do when its section ends or, for QSBR, at its next quiescent
/// state: it is above a limit, or callbacks wait.
pub(crate) const OVERDUE: u32 = 8;

/// Marks in the slot of a reader, on which it acts when it leaves.
#[derive(Debug)]
pub(crate) struct Marks(AtomicU32);

// Relaxed, where it says nothing else: but for `WAITED_FOR` only the owner sets and clears them.
impl Marks {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Whether there are any.
    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    pub(crate) fn has(&self, mark: u32) -> bool {
        self.0.load(Relaxed) & mark != 0
    }

    pub(crate) fn set(&self, mark: u32) {
        // Of `WAITED_FOR`: the sleeper's heavy fence follows, before its second check [GP-6].
        self.0.fetch_or(mark, Relaxed);
    }

    /// Clears a mark. Of [`WAITED_FOR`] the thread that gets `true` must report to the sleeper.
    pub(crate) fn take(&self, mark: u32) -> bool {
        // AcqRel: the thread that clears the mark is ordered after the thread that set it, and its
        // report carries what it did before [GP-7].
        self.has(mark) && self.0.fetch_and(!mark, AcqRel) & mark != 0
    }

    /// The owner has deferred work.
    pub(crate) fn mark_overdue(&self) {
        if !self.has(OVERDUE) {
            self.set(OVERDUE);
        }
    }

    /// The slot has a new owner, whose fences are `portable`.
    pub(super) fn adopt(&self, lost: bool, portable: bool) {
        // `WAITED_FOR` stays if it is set and not `lost`: the previous owner may have left its
        // section while a sleeper was marking it, and the sleeper clears or waits for every mark it
        // made. At worst the new owner reports for the old one.
        self.0.fetch_and(if lost { 0 } else { WAITED_FOR }, Relaxed);
        self.set(if portable { PORTABLE } else { 0 });
    }

    /// A full fence, where the light one of the section's end is not enough [GP-6].
    pub(super) fn fence_if_portable(&self) {
        if self.has(PORTABLE) {
            fence::full();
        }
    }
}
