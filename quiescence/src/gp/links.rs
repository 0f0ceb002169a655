//! What a domain has whose readers were compiled against liburcu: how they read, the words that
//! they load, and what surrounds their callbacks.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::os::futex;
use crate::os::sync::{AtomicU32, AtomicU64};

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
