//! The two banks of a sleepable domain, and how a reader counts itself in and out.
//!
//! ```text
//!   reader                                    whoever looks whether a bank has drained
//!   b = the current bank                      u = sum of unlock[b]
//!   lock[b] += 1, on this cpu           heavy fence [SR-1]
//!   light fence [SR-1]                        l = sum of lock[b]
//!     ... section ...                         drained if u = l
//!   light fence [SR-1]
//!   unlock[b] += 1, on any cpu
//! ```
//!
//! The banks stand in a line of their own that never moves, since a worker may look at them while their
//! [`Srcu`](crate::Srcu) is moved.

use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU64, compiler_fence};

use super::track;
use crate::chaos::{self, Mutant, Point};
use crate::os::fence::{self, Fences};
use crate::percpu::counters::{self, Cells};

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
    /// The state of the domain, once it has one. Here it is an address.
    pub(crate) core: AtomicPtr<()>,
}

const _: () = assert!(size_of::<Banks>() <= 64);

/// One of the two.
pub(crate) type Bank = usize;

/// What a reader has to remember: the bank that it counted itself into, and its ticket if it is tracked.
#[derive(Debug)]
pub(crate) struct Entry(u64);

impl Entry {
    #[inline(always)]
    fn bank(&self) -> Bank {
        (self.0 & 1) as Bank
    }
}

impl Banks {
    /// Banks that nobody reads in; `None` where the system has no memory.
    pub(crate) fn take() -> Option<NonNull<Self>> {
        let banks = NonNull::new(counters::take_line()?.cast::<Self>())?;
        let empty = Self {
            counts: Cells::new(),
            index: AtomicU64::new(0),
            core: AtomicPtr::new(ptr::null_mut()),
        };
        // SAFETY: a line of our own.
        unsafe { banks.write(empty) };
        Some(banks)
    }

    /// Gives the line and the words of the CPUs back.
    ///
    /// # Safety
    /// From [`take`](Self::take), and nobody uses them any more.
    pub(crate) unsafe fn give_back(banks: NonNull<Self>) {
        track::forget_all(banks.as_ptr().addr());
        // SAFETY: by the contract.
        unsafe { banks.drop_in_place() };
        // SAFETY: by the contract.
        unsafe { counters::give_line_back(banks.as_ptr().cast()) };
    }

    /// What the list of guards knows them by.
    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Begins a section.
    #[inline(always)]
    pub(crate) fn enter(&self, place: &'static Location<'static>) -> Entry {
        // Relaxed: whichever bank it is, it is waited for.
        let index = self.index.load(Relaxed);
        let bank = (index & 1) as Bank;
        chaos::point(Point::BankChosen);
        if !self.counts.try_increment(bank) {
            self.enter_slow(bank);
        }
        // The light fence [SR-1]; a sequence is used only where the heavy one is a membarrier.
        compiler_fence(SeqCst);
        chaos::point(Point::Entered);
        if index & TRACKED == 0 { Entry(index) } else { self.enter_tracked(bank, place) }
    }

    #[cold]
    #[inline(never)]
    fn enter_tracked(&self, bank: Bank, place: &'static Location<'static>) -> Entry {
        Entry(bank as u64 | track::note(self.address(), place) << 1)
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
    pub(crate) fn leave(&self, entry: &Entry) {
        let wrong = chaos::mutant(Mutant::WrongBank);
        let bank = if wrong { (self.index.load(Relaxed) & 1) as Bank } else { entry.bank() };
        chaos::point(Point::LeaveBeforeStore);
        if entry.0 > 1 {
            track::forget(self.address(), entry.0 >> 1);
        }
        compiler_fence(SeqCst); // as in `enter`
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

    /// What each CPU has counted: its number, and the lock and unlock counts of a bank; `None` for the words
    /// that all share. Not a snapshot of one moment.
    pub(crate) fn balances(&self, bank: Bank) -> Vec<(Option<u32>, u64, u64)> {
        let mut balances =
            vec![(None, self.counts.shared(bank), self.counts.shared(UNLOCKS + bank))];
        self.counts.each(UNLOCKS + bank, |slot, unlocks| {
            balances.push((Some(slot as u32), 0, unlocks));
        });
        self.counts.each(bank, |slot, locks| {
            if let Some(balance) = balances.get_mut(slot + 1) {
                balance.1 = locks;
            }
        });
        balances.retain(|(_, locks, unlocks)| (*locks, *unlocks) != (0, 0));
        balances
    }

    /// Sections that have begun and not ended, in both banks. Just a look.
    pub(crate) fn sections(&self) -> u64 {
        let unlocks = [0, 1].map(|bank| self.unlocks(bank));
        let locks = [0, 1].map(|bank| self.locks(bank));
        (0..2).map(|bank| locks[bank].saturating_sub(unlocks[bank])).sum()
    }

    /// Takes all sections as ended. Takes no lock: a `fork` in progress may hold that of the list of guards.
    pub(crate) fn forget_sections(&self) {
        for bank in 0..2 {
            let left = self.locks(bank).wrapping_sub(self.unlocks(bank));
            self.counts.add_shared(UNLOCKS + bank, left);
        }
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

/// A section: counted in until it is dropped, on whatever thread.
#[derive(Debug)]
pub(crate) struct Section<'b> {
    banks: &'b Banks,
    entry: Entry,
}

impl<'b> Section<'b> {
    #[inline(always)]
    pub(crate) fn begin(banks: &'b Banks, place: &'static Location<'static>) -> Self {
        Self { banks, entry: banks.enter(place) }
    }

    /// Where it is counted.
    #[inline(always)]
    pub(crate) fn banks(&self) -> &'b Banks {
        self.banks
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        self.banks.leave(&self.entry);
    }
}

/// Banks that a domain gives back when it ends.
pub(crate) struct OwnBanks(NonNull<Banks>);

// SAFETY: banks may be used and given back by any thread.
unsafe impl Send for OwnBanks {}
// SAFETY: as above.
unsafe impl Sync for OwnBanks {}

impl OwnBanks {
    /// # Safety
    /// They came from [`Banks::take`], and nobody else gives them back.
    pub(crate) unsafe fn new(banks: NonNull<Banks>) -> Self {
        Self(banks)
    }

    pub(crate) fn get(&self) -> &Banks {
        // SAFETY: its own, until it is dropped.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for OwnBanks {
    fn drop(&mut self) {
        // SAFETY: its own; the domain ends, so there are no guards.
        unsafe { Banks::give_back(self.0) };
    }
}
