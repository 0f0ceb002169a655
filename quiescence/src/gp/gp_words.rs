//! What a domain shares with its readers: the number that they copy, and the words by which they
//! wake its driver. A slot knows its domain by this.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use crate::os::futex;
use crate::os::sync::{AtomicU32, AtomicU64, const_unless_loom};

/// Keeps what readers load away from what updaters store.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

/// The side of a domain's grace periods that its readers see; their first field.
#[derive(Debug)]
#[repr(C)]
pub struct GpWords {
    /// What readers copy into their words; liburcu's `gp.ctr`.
    pub(crate) gp: AtomicU64,
    /// Where its readers are liburcu readers: their words, and how they read. Written once, so it
    /// may stand in the line of `gp`, which changes once in a grace period.
    pub(crate) liburcu: Option<Links>,
    /// Whether its readers execute full fences, also where the process has light ones: then its
    /// grace periods need no heavy one [GP-1], [GP-6]. Written once, as well.
    pub(crate) readers_fence: bool,
    /// How many holdouts the sleeping driver still waits for.
    pub(crate) wake: Line<AtomicU32>,
}

impl GpWords {
    const_unless_loom! {
        pub(crate) fn new(entered: u64, readers_fence: bool) -> Self {
            Self {
                gp: AtomicU64::new(entered),
                liburcu: None,
                readers_fence,
                wake: Line(AtomicU32::new(0)),
            }
        }
    }

    /// A holdout that was marked has left its section.
    pub(crate) fn holdout_left(&self) {
        if let Some(words) = self.liburcu_words() {
            return words.wake();
        }
        // AcqRel: the decrements form one chain, so that the last one carries what all holdouts
        // did to the sleeper [GP-7].
        if self.wake.0.fetch_sub(1, AcqRel) == 1 {
            futex::wake_all(&self.wake.0);
        }
    }

    /// The words of its liburcu readers, if it has such.
    pub(crate) fn liburcu_words(&self) -> Option<&'static Words> {
        self.liburcu.as_ref()?.words()
    }
}

/// How the readers of a liburcu domain order and announce themselves. See the
/// [module](crate::liburcu_readers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Readers {
    /// Light fences; a thread that leaves wakes.
    Light,
    /// Full fences; a thread that leaves wakes.
    Full,
    /// Quiescent states.
    Qsbr,
    /// Light fences; no thread wakes.
    Silent,
}

/// liburcu's `struct urcu_gp`: the words that all readers of a flavour look at.
#[repr(C)]
#[derive(Debug)]
pub struct Words {
    /// What a reader copies when its section begins: 1 in the low half, the grace period's number
    /// in the high one.
    pub ctr: AtomicU64,
    /// -1 while an updater sleeps until readers leave; else 0.
    pub futex: AtomicU32,
}

/// What is to be done around callbacks on a thread that runs some: to make it a reader, if they
/// expect to run on one.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Before callbacks are run on this thread. What it returns is given to `end`.
    pub begin: fn() -> usize,
    /// After.
    pub end: fn(usize),
}

/// The driver sleeps: liburcu's -1.
pub(crate) const ASLEEP: u32 = u32::MAX;

impl Words {
    /// Wakes the driver, if it sleeps.
    pub(crate) fn wake(&self) {
        // Relaxed: the caller's light fence, or the registry's lock, comes before [FR-1].
        if self.futex.load(Relaxed) == ASLEEP {
            // Release: what the section read happens before what the driver does next; the scan has
            // that, too.
            self.futex.store(0, Release);
            futex::wake_shared(&self.futex);
        }
    }
}

/// What makes a domain one of liburcu readers.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) readers: Readers,
    attached: OnceLock<Attached>,
}

#[derive(Debug)]
struct Attached {
    words: &'static Words,
    surroundings: Surroundings,
}

impl Links {
    pub(crate) const fn new(readers: Readers) -> Self {
        Self { readers, attached: OnceLock::new() }
    }

    pub(crate) fn attach(&self, words: &'static Words, surroundings: Surroundings) {
        self.attached.get_or_init(|| Attached { words, surroundings });
    }

    pub(crate) fn words(&self) -> Option<&'static Words> {
        self.attached.get().map(|attached| attached.words)
    }

    pub(crate) fn surroundings(&self) -> Option<Surroundings> {
        self.attached.get().map(|attached| attached.surroundings)
    }
}
