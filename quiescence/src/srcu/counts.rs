//! The two indexes of a sleepable domain, and how a reader counts itself in and out.
//!
//! ```text
//!   reader                                    the thread that checks whether an index has drained
//!   b = the current index                     u = sum of unlock[b]
//!   lock[b] += 1, on this cpu                 heavy fence [SR-1]
//!   light fence [SR-1]                        l = sum of lock[b]
//!     ... section ...                         drained if u = l
//!   light fence [SR-1]
//!   unlock[b] += 1, on any cpu
//! ```
//!
//! The counts are in a cache line of their own that never moves, since a worker may read them while
//! their [`Srcu`](crate::Srcu) is moved.

use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU64, compiler_fence};

use super::track;
use crate::gp::stall::SlotBalance;
use crate::os::fence::{self, Fences};
use crate::percpu::counters::{self, PerCpuCounters};

const UNLOCKS: usize = 2;

/// The bit of [`SrcuCounts::index`] that says: note who reads.
const TRACKED: u64 = 2;

/// Counts of readers; a cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct SrcuCounts {
    /// Lock counts of index 0 and 1, unlock counts of index 0 and 1.
    counts: PerCpuCounters<4>,
    /// The index that readers use, and whether they are tracked.
    index: AtomicU64,
    /// The state of the domain, once it has one. Here it is an address.
    pub(crate) state: AtomicPtr<()>,
}

const _: () = assert!(size_of::<SrcuCounts>() <= 64);

/// One of the two.
pub(crate) type Index = usize;

/// What a reader has to remember: the index that it counted itself into, and its ticket if it is
/// tracked.
#[derive(Debug)]
pub(crate) struct Entry(u64);

impl Entry {
    #[inline(always)]
    fn index(&self) -> Index {
        (self.0 & 1) as Index
    }
}

impl SrcuCounts {
    /// Counts that no thread reads in; `None` where the system has no memory.
    pub(crate) fn take() -> Option<NonNull<Self>> {
        let srcu_counts = NonNull::new(counters::take_line()?.cast::<Self>())?;
        let empty = Self {
            counts: PerCpuCounters::new(),
            index: AtomicU64::new(0),
            state: AtomicPtr::new(ptr::null_mut()),
        };
        // SAFETY: a line of our own.
        unsafe { srcu_counts.write(empty) };
        Some(srcu_counts)
    }

    /// Gives the line and the words of the CPUs back. Takes no lock, since a signal handler does it
    /// whose section was not the first.
    ///
    /// # Safety
    /// From [`take`](Self::take), and no thread uses them any more. No guard of them is listed.
    pub(crate) unsafe fn give_back(srcu_counts: NonNull<Self>) {
        // SAFETY: by the contract.
        unsafe { srcu_counts.drop_in_place() };
        // SAFETY: by the contract.
        unsafe { counters::give_line_back(srcu_counts.as_ptr().cast()) };
    }

    /// What the list of guards knows them by.
    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Begins a section.
    #[inline(always)]
    pub(crate) fn enter(&self, location: &'static Location<'static>) -> Entry {
        // Relaxed: whichever index it is, it is waited for.
        let word = self.index.load(Relaxed);
        let index = (word & 1) as Index;
        //~ point index-chosen
        if !self.counts.try_increment(index) {
            self.enter_slow(index);
        }
        // The light fence [SR-1]; a sequence is used only where the heavy one is a membarrier.
        compiler_fence(SeqCst);
        //~ point entered
        if word & TRACKED == 0 { Entry(word) } else { self.enter_tracked(index, location) }
    }

    #[cold]
    #[inline(never)]
    fn enter_tracked(&self, index: Index, location: &'static Location<'static>) -> Entry {
        Entry(index as u64 | track::note(self.address(), location) << 1)
    }

    #[cold]
    #[inline(never)]
    fn enter_slow(&self, index: Index) {
        self.counts.add_slow(index, 1);
        if fence::chosen() == Fences::Portable {
            fence::full(); // [SR-1]
        }
    }

    /// Ends a section, on whatever thread.
    #[inline(always)]
    pub(crate) fn leave(&self, entry: &Entry) {
        let index = entry.index(); //~ wrong-index

        //~ point leave-before-store
        if entry.0 > 1 {
            track::forget(entry.0 >> 1);
        }
        compiler_fence(SeqCst); // as in `enter`
        if !self.counts.try_increment(UNLOCKS + index) {
            self.leave_slow(index);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_slow(&self, index: Index) {
        if fence::chosen() == Fences::Portable {
            fence::full(); // [SR-1]
        }
        self.counts.add_slow(UNLOCKS + index, 1);
    }

    /// The thread that begins a section from now on is noted, or not.
    pub(crate) fn track(&self, on: bool) {
        // Relaxed: who misses it is not noted.
        if on {
            self.index.fetch_or(TRACKED, Relaxed);
        } else {
            self.index.fetch_and(!TRACKED, Relaxed);
        }
    }

    /// The sum of an index's unlock counts. To be taken before the heavy fence.
    pub(crate) fn unlocks(&self, index: Index) -> u64 {
        self.counts.sum(UNLOCKS + index)
    }

    /// The sum of an index's lock counts. To be taken after the heavy fence.
    pub(crate) fn locks(&self, index: Index) -> u64 {
        self.counts.sum(index)
    }

    /// What each CPU has counted under an index. Not a snapshot of one moment.
    pub(crate) fn balances(&self, index: Index) -> Vec<SlotBalance> {
        let [begun, ended] = [index, UNLOCKS + index].map(|count| self.counts.shared(count));
        let mut balances = vec![SlotBalance { cpu: None, begun, ended }];
        self.counts.each(UNLOCKS + index, |slot, ended| {
            balances.push(SlotBalance { cpu: Some(slot as u32), begun: 0, ended });
        });
        self.counts.each(index, |slot, begun| {
            if let Some(balance) = balances.get_mut(slot + 1) {
                balance.begun = begun;
            }
        });
        balances.retain(|slot| (slot.begun, slot.ended) != (0, 0));
        balances
    }

    /// Sections that have begun and not ended, in both indexes. Just a look.
    pub(crate) fn sections(&self) -> u64 {
        let unlocks = [0, 1].map(|index| self.unlocks(index));
        let locks = [0, 1].map(|index| self.locks(index));
        (0..2).map(|index| locks[index].saturating_sub(unlocks[index])).sum()
    }

    /// Takes all sections as ended. Takes no lock: a `fork` in progress may hold that of the list
    /// of guards.
    pub(crate) fn forget_sections(&self) {
        for index in 0..2 {
            let left = self.locks(index).wrapping_sub(self.unlocks(index));
            self.counts.add_shared(UNLOCKS + index, left);
        }
    }

    /// The index that readers do not use. Under the lock of the domain's machine it stays so.
    pub(crate) fn other_index(&self) -> Index {
        // Relaxed: it changes under that lock, and readers do not look for what came before.
        (self.index.load(Relaxed) & 1 ^ 1) as Index
    }

    /// Makes `index` the one that readers use.
    pub(crate) fn flip_to(&self, index: u8) {
        // Release is more than is needed: the explorer finds the fences around the flip to be
        // needed for nothing.
        let other = u64::from(index) ^ 1;
        if self.index.load(Relaxed) & 1 == other {
            self.index.fetch_xor(1, Release);
        }
    }
}

/// What leads to the counts of a sleepable domain, always the same ones, which live as long.
pub(crate) trait Place: Send + Sync + std::panic::RefUnwindSafe {
    fn srcu_counts(&self) -> &SrcuCounts;
}

impl Place for &SrcuCounts {
    #[inline(always)]
    fn srcu_counts(&self) -> &SrcuCounts {
        self
    }
}

impl<P: Place + ?Sized> Place for Arc<P> {
    #[inline(always)]
    fn srcu_counts(&self) -> &SrcuCounts {
        (**self).srcu_counts()
    }
}

/// A section: counted in until it is dropped, on whatever thread.
#[derive(Debug)]
pub(crate) struct Section<P: Place> {
    pub(crate) place: P,
    entry: Entry,
}

impl<P: Place> Section<P> {
    #[inline(always)]
    pub(crate) fn begin(place: P, location: &'static Location<'static>) -> Self {
        let entry = place.srcu_counts().enter(location);
        Self { place, entry }
    }

    /// The state of the domain, if it has one yet.
    #[inline(always)]
    pub(crate) fn state(&self) -> *const () {
        self.place.srcu_counts().state.load(Relaxed) // compared only
    }
}

impl<P: Place> Drop for Section<P> {
    #[inline]
    fn drop(&mut self) {
        // Before the place goes, which may be the last handle of the domain.
        self.place.srcu_counts().leave(&self.entry);
    }
}

/// Counts that a domain gives back when it ends.
#[derive(Clone, Copy)]
pub(crate) struct OwnSrcuCounts(NonNull<SrcuCounts>);

// SAFETY: counts may be used and given back by any thread.
unsafe impl Send for OwnSrcuCounts {}
// SAFETY: as above.
unsafe impl Sync for OwnSrcuCounts {}

impl OwnSrcuCounts {
    /// # Safety
    /// They came from [`SrcuCounts::take`], and are used no more once they are given back.
    pub(crate) unsafe fn new(srcu_counts: NonNull<SrcuCounts>) -> Self {
        Self(srcu_counts)
    }

    pub(crate) fn get(&self) -> &SrcuCounts {
        // SAFETY: by the contract of `new`.
        unsafe { self.0.as_ref() }
    }

    /// Gives them back.
    ///
    /// # Safety
    /// Done once. The domain ends, so there are no guards.
    pub(crate) unsafe fn give_back(self) {
        track::forget_all(self.get().address());
        // SAFETY: by the contract.
        unsafe { SrcuCounts::give_back(self.0) };
    }
}
