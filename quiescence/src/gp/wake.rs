//! The words by which the readers of a domain wake its driver: its own, or those of programs that
//! were compiled against liburcu.
//!
//! An error here leaves a driver asleep, or wakes it for nothing: then it scans again.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use crate::os::futex;
use crate::os::sync::{AtomicU32, AtomicU64, const_unless_loom};

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

/// How the readers of a liburcu domain order and announce themselves. See the
/// [module](crate::liburcu_readers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Readers {
    /// Light fences; a reader that leaves wakes the driver.
    Light,
    /// Full fences; a reader that leaves wakes the driver.
    Full,
    /// Quiescent states.
    Qsbr,
    /// Light fences; no reader wakes the driver.
    Silent,
}

/// liburcu's `struct urcu_gp`: the words that all readers of a flavour load.
#[repr(C)]
#[derive(Debug)]
pub struct Words {
    /// What a reader copies when its section begins: 1 in the low half, the grace period's number
    /// in the high one.
    pub ctr: AtomicU64,
    /// -1 while an updater sleeps until readers leave; else 0.
    pub futex: AtomicU32,
}

/// What a thread calls before and after it runs callbacks: makes it a reader, if they expect to run
/// on one.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Called before callbacks are run on this thread. What it returns is passed to `end`.
    pub begin: fn() -> usize,
    /// Called after them.
    pub end: fn(usize),
}

/// The driver sleeps: liburcu's -1.
pub(crate) const ASLEEP: u32 = u32::MAX;

impl Words {
    /// Wakes the driver, if it sleeps.
    pub(crate) fn wake(&self) {
        // Relaxed: the caller's light fence, or the registry's lock, comes before [FR-1].
        if self.futex.load(Relaxed) == ASLEEP {
            // Release: what the section read happens before what the driver does next; the scan
            // orders that, too.
            self.futex.store(0, Release);
            futex::wake_shared(&self.futex);
        }
    }

    /// Wakes all threads that sleep on the word, whatever its value.
    pub(crate) fn wake_all(&self) {
        // Relaxed: a thread that is woken checks the readers' own words.
        self.futex.store(0, Relaxed);
        futex::wake_shared(&self.futex);
    }
}

/// What only a domain of liburcu readers has.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) readers: Readers,
    attached: OnceLock<(&'static Words, Surroundings)>,
}

impl Links {
    pub(crate) const fn new(readers: Readers) -> Self {
        Self { readers, attached: OnceLock::new() }
    }

    pub(crate) fn attach(&self, words: &'static Words, surroundings: Surroundings) {
        self.attached.get_or_init(|| (words, surroundings));
    }

    pub(crate) fn words(&self) -> Option<&'static Words> {
        self.attached.get().map(|(words, _)| *words)
    }

    pub(crate) fn surroundings(&self) -> Option<Surroundings> {
        self.attached.get().map(|(_, surroundings)| *surroundings)
    }
}
