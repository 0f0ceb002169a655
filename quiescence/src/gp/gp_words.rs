//! What a domain shares with its readers: the number that they copy, and the words by which they
//! wake its driver. A slot knows its domain by this.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

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
    /// What its sleeping driver waits for.
    pub(crate) wake: Line<Wake>,
}

/// What a sleeping driver waits for.
#[derive(Debug)]
pub(crate) struct Wake {
    /// How many holdouts there still are.
    pub(crate) left: AtomicU32,
    /// How often all of them had left, or a driver had been superseded: what it sleeps on. A count
    /// of holdouts comes back to what it was, and a superseded driver that is late to its sleep
    /// would sleep for those of the next.
    bell: AtomicU32,
}

impl GpWords {
    const_unless_loom! {
        pub(crate) fn new(entered: u64, readers_fence: bool) -> Self {
            Self {
                gp: AtomicU64::new(entered),
                liburcu: None,
                readers_fence,
                wake: Line(Wake { left: AtomicU32::new(0), bell: AtomicU32::new(0) }),
            }
        }
    }

    /// A holdout that was marked has left its section.
    pub(crate) fn holdout_left(&self) {
        if let Some(words) = self.liburcu_words() {
            return words.wake();
        }
        let left = &self.wake.0.left;
        // AcqRel: the decrements form one chain, so that the last one carries what all holdouts
        // did to the sleeper [GP-7].
        match left.fetch_sub(1, AcqRel) {
            1 => self.wake.0.ring(),
            // A handler has forked since this thread took its mark away: the child knows of none.
            // (Unless another thread of the child sleeps by now. That one looks once too often.)
            0 => _ = left.fetch_add(1, Relaxed),
            _ => {}
        }
    }

    /// The words of its liburcu readers, if it has such.
    pub(crate) fn liburcu_words(&self) -> Option<&'static Words> {
        self.liburcu.as_ref()?.words()
    }
}

impl Wake {
    /// How often the bell has been rung: to be asked before `left` is, or who drives, and handed to
    /// [`wait`](Self::wait) then.
    pub(crate) fn rung(&self) -> u32 {
        // Acquire: pairs with the Release in `ring`; a sleeper that has this ring behind it sees
        // what was changed before it.
        self.bell.load(Acquire)
    }

    /// Sleeps until the bell is rung once more than that, but no longer than `most`; may return
    /// early. Returns whether it has slept for as long as it may.
    pub(crate) fn wait(&self, rung: u32, most: Option<Duration>) -> bool {
        futex::wait(&self.bell, rung, most)
    }

    /// Wakes the driver and those who sleep beside it: `left` is 0, or a term has begun.
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

    /// Has all threads return that sleep on the word, whatever it says.
    pub(crate) fn wake_all(&self) {
        // Relaxed: the thread that is woken looks at the readers' own words.
        self.futex.store(0, Relaxed);
        futex::wake_shared(&self.futex);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A handler that interrupts a reader in its report may fork: the child forgets the mark, and
    /// then the reader reports there.
    #[test]
    fn a_report_that_a_fork_has_forgotten_counts_for_nothing() {
        let words = GpWords::new(0, false);
        words.holdout_left();
        assert_eq!(words.wake.0.left.load(Relaxed), 0);
        words.wake.0.left.fetch_add(2, Relaxed);
        words.holdout_left();
        assert_eq!(words.wake.0.left.load(Relaxed), 1);
    }
}
