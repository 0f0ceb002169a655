//! The two banks of a sleepable domain, and how a reader counts itself in and out.
//!
//! ```text
//!   reader                                    whoever looks whether a bank has drained
//!   b = the current bank                      u = sum of unlock[b]
//!   lock[b] += 1, on this processor           heavy fence [SR-1]
//!   light fence [SR-1]                        l = sum of lock[b]
//!     ... section ...                         drained if u = l
//!   light fence [SR-1]
//!   unlock[b] += 1, on any processor
//! ```
//!
//! The banks stand in a line of their own that never moves, since a worker may look at them while their
//! [`Srcu`](crate::Srcu) is moved.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, compiler_fence};

use crate::cells::{self, Cells};
use crate::core::Core;
use crate::os::fence::{self, Fences};

const UNLOCKS: usize = 2;

/// The bit of [`Banks::index`] that says: note who reads.
const TRACKED: u64 = 2;

/// Counts of readers; a cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Banks {
    /// Lock counts of bank 0 and 1, unlock counts of bank 0 and 1.
    counts: Cells<4>,
    /// The bank that readers use, and whether they are tracked.
    index: AtomicU64,
    /// The domain's core, once it has one.
    pub(crate) core: AtomicPtr<Core>,
}

const _: () = assert!(size_of::<Banks>() <= 64);

/// Which bank a reader has counted itself into.
pub(crate) type Bank = usize;

impl Banks {
    /// Banks that nobody reads in; `None` where the system has no memory.
    pub(crate) fn take() -> Option<NonNull<Self>> {
        let banks = NonNull::new(cells::take_line()?.cast::<Self>())?;
        let empty = Self {
            counts: Cells::new(),
            index: AtomicU64::new(0),
            core: AtomicPtr::new(ptr::null_mut()),
        };
        // SAFETY: a line of our own.
        unsafe { banks.write(empty) };
        Some(banks)
    }

    /// Gives the line and the words of the processors back.
    ///
    /// # Safety
    /// From [`take`](Self::take), and nobody uses them any more.
    pub(crate) unsafe fn give_back(banks: NonNull<Self>) {
        // SAFETY: by the contract.
        unsafe { banks.drop_in_place() };
        // SAFETY: by the contract.
        unsafe { cells::give_line_back(banks.as_ptr().cast()) };
    }

    /// Begins a section.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Bank {
        // Relaxed: whichever bank it is, it is waited for.
        let bank = (self.index.load(Relaxed) & 1) as Bank;
        if !self.counts.try_increment(bank) {
            self.enter_slow(bank);
        }
        // The light fence [SR-1]; a sequence is used only where the heavy one is a membarrier.
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        bank
    }

    #[cold]
    #[inline(never)]
    fn enter_slow(&self, bank: Bank) {
        self.counts.add_slow(bank, 1);
        if fence::chosen() == Fences::Portable {
            fence::full(); // [SR-1]
        }
    }

    /// Ends a section, on whatever thread.
    #[inline(always)]
    pub(crate) fn leave(&self, bank: Bank) {
        compiler_fence(std::sync::atomic::Ordering::SeqCst); // as in `enter`
        if !self.counts.try_increment(UNLOCKS + bank) {
            self.leave_slow(bank);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_slow(&self, bank: Bank) {
        if fence::chosen() == Fences::Portable {
            fence::full(); // [SR-1]
        }
        self.counts.add_slow(UNLOCKS + bank, 1);
    }

    /// Whether the reader is to be noted.
    #[inline(always)]
    pub(crate) fn is_tracked(&self) -> bool {
        self.index.load(Relaxed) & TRACKED != 0
    }

    /// Who begins a section from now on is noted, or not.
    pub(crate) fn track(&self, on: bool) {
        // Relaxed: who misses it is not noted.
        if on {
            self.index.fetch_or(TRACKED, Relaxed);
        } else {
            self.index.fetch_and(!TRACKED, Relaxed);
        }
    }

    /// The sum of a bank's unlock counts. To be taken before the heavy fence.
    pub(crate) fn unlocks(&self, bank: Bank) -> u64 {
        self.counts.sum(UNLOCKS + bank)
    }

    /// The sum of a bank's lock counts. To be taken after the heavy fence.
    pub(crate) fn locks(&self, bank: Bank) -> u64 {
        self.counts.sum(bank)
    }

    /// Makes `bank` the one that readers use.
    pub(crate) fn flip_to(&self, bank: u8) {
        // Release is more than is needed: the explorer finds the fences around the flip to be needed for nothing.
        let other = u64::from(bank) ^ 1;
        if self.index.load(Relaxed) & 1 == other {
            self.index.fetch_xor(1, Release);
        }
    }
}
