//! Words of each processor that can be folded into one.
//!
//! An addition is one restartable sequence: *if the flag is set, say no; add to this processor's word*. Who folds
//! sets the flag and waits for a grace period of restartable reads ([`restart::grace_period`]). After that
//! every sequence has added, or has begun anew and said no; so the words stand still, and are moved to the one word,
//! `central`. Those who are told no add there, whenever they come to it: `central` is theirs at all times.
//! So nobody waits for whoever folds.
//!
//! ```text
//!   addition                               whoever folds, one at a time
//!   sequence, or a fallback section:       flag = 1
//!     if flag = 0:                         grace period             [FD-1]
//!       word[this processor] += n          for each processor: central += word, word = 0
//!       done                                 ... `central` is exact ...
//!   central += n (or what else is right)   flag = 0 (Release)       [FD-2]
//! ```
//!
//! It is on the words of [`Cells`], of which it uses those of the processors; the counters beside them stay zero. A
//! word of a processor is written here by atomic stores also where sequences write it [PC-1], but only while
//! these stand still.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::cells::Cells;
use crate::chaos::{self, Mutant};
use crate::os::percpu::{self, PerCpuPath, STRIDE_SHIFT};
use crate::restart;

/// Uses of the one word between two attempts to get words for every processor.
const GROWS_EVERY: u32 = 64;

/// `W` words of each processor, and the one that all can be folded into. Amounts wrap: one that is taken away is
/// added as its complement.
#[derive(Debug)]
pub(super) struct Folding<const W: usize> {
    words: Cells<W>,
    /// The flag: not 0 while the words of the processors must not be used.
    folded: AtomicU64,
    central: AtomicU64,
    /// How often somebody came here while there was `central` only.
    uses: AtomicU32,
}

impl<const W: usize> Folding<W> {
    pub(super) const fn new(central: u64, folded: bool) -> Self {
        Self {
            words: Cells::new(),
            folded: AtomicU64::new(folded as u64),
            central: AtomicU64::new(central),
            uses: AtomicU32::new(0),
        }
    }

    /// Adds so much to a word of this processor, unless it is folded or has none: then it says no, and has done
    /// nothing.
    #[inline(always)]
    pub(super) fn add(&self, word: usize, amount: u64) -> bool {
        debug_assert!(word < W);
        let first = self.words.first();
        if !first.is_null() {
            // SAFETY: every processor has W words.
            let first = unsafe { first.add(word) };
            // SAFETY: as above. The flag is looked at in the sequence [FD-1].
            if unsafe { percpu::add_unless(first, amount, &self.folded) } {
                return true;
            }
        }
        self.add_slow(word, amount)
    }

    /// Takes so much from the first word of this processor, unless it is folded, has none, or less than that.
    #[inline(always)]
    pub(super) fn take(&self, amount: u64) -> bool {
        let first = self.words.first();
        // SAFETY: every processor has the word. The flag is looked at in the sequence [FD-1].
        if !first.is_null() && unsafe { percpu::take(first, amount, &self.folded) } {
            return true;
        }
        self.take_slow(amount)
    }

    #[cold]
    #[inline(never)]
    fn add_slow(&self, word: usize, amount: u64) -> bool {
        self.portably(word, |count| {
            count.fetch_add(amount, Relaxed);
            true
        })
    }

    #[cold]
    #[inline(never)]
    fn take_slow(&self, amount: u64) -> bool {
        self.portably(0, |count| {
            count.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(amount)).is_ok()
        })
    }

    /// The twin of a sequence where there are none in the whole process: an atomic instruction on the word of a
    /// processor, in a fallback section. Where others use sequences the word is not for us [PC-1].
    fn portably(&self, word: usize, f: impl FnOnce(&AtomicU64) -> bool) -> bool {
        let first = self.words.first();
        if first.is_null() {
            self.note_use();
            return false;
        }
        if percpu::path() != Some(PerCpuPath::Portable) {
            return false;
        }
        let _section = restart::section();
        // In the section, so that the grace period waits for what we do [FD-1]. Acquire: pairs with the Release in
        // `unfold` [FD-2].
        if self.folded.load(Acquire) != 0 {
            return false;
        }
        f(self.word(first, percpu::slot(), word))
    }

    #[inline]
    fn note_use(&self) {
        // Relaxed: it is a count.
        if self.uses.fetch_add(1, Relaxed) % GROWS_EVERY == GROWS_EVERY - 1 {
            self.words.grow();
        }
    }

    fn word(&self, first: *mut u64, slot: usize, word: usize) -> &AtomicU64 {
        debug_assert!(word < W && slot < percpu::slots());
        // SAFETY: every slot has W words.
        let word = unsafe { first.byte_add(slot << STRIDE_SHIFT).add(word) };
        // SAFETY: aligned, and there as long as `self`. Sequences store whole words.
        unsafe { AtomicU64::from_ptr(word) }
    }

    /// Whether the processors have words.
    pub(super) fn has_words(&self) -> bool {
        !self.words.first().is_null()
    }

    /// The one word. What is done to it counts at all times.
    pub(super) fn central(&self) -> &AtomicU64 {
        &self.central
    }

    /// Whether the words are not to be used: what somebody says who holds the owner's lock, or a guess.
    pub(super) fn is_folded(&self) -> bool {
        // Acquire: pairs with the Release in `unfold` [FD-2], for those who rely on its being 0.
        self.folded.load(Acquire) != 0
    }

    /// Has additions say no from soon on. Answers `false` if that had been done already.
    pub(super) fn stop(&self) -> bool {
        if chaos::mutant(Mutant::NoStallFlag) {
            return self.folded.load(Relaxed) == 0;
        }
        // Relaxed: `gather` has the fence.
        self.folded.swap(1, Relaxed) == 0
    }

    /// After [`stop`](Self::stop), by one thread at a time: waits until the words stand still, and moves what is in
    /// them to the one word, and `more`. Answers what that has become.
    pub(super) fn gather(&self, more: u64) -> u64 {
        if !chaos::mutant(Mutant::NoStallBarrier) {
            restart::grace_period(); // [FD-1]
        }
        let mut sum = more;
        // Asked anew: words that were made before the grace period are seen after it; those made later stay zero.
        let first = self.words.first();
        if !first.is_null() {
            for slot in 0..percpu::slots() {
                for word in 0..W {
                    let word = self.word(first, slot, word);
                    // Relaxed: nobody else writes it; [FD-2] tells of the zero.
                    sum = sum.wrapping_add(word.load(Relaxed));
                    word.store(0, Relaxed);
                }
            }
        }
        // AcqRel: with those who have come to `central` before, or will.
        self.central.fetch_add(sum, AcqRel).wrapping_add(sum)
    }

    /// Lets the words be used again.
    pub(super) fn unfold(&self) {
        // Release: pairs with the look at the flag in each addition [FD-2], which finds the words zero, and all
        // else that was done meanwhile.
        self.folded.store(0, Release);
    }

    /// The sum of all words, while additions go on. It may be torn.
    pub(super) fn guess(&self) -> u64 {
        let mut sum = self.central.load(Relaxed);
        for word in 0..W {
            self.words.each(word, |_, count| sum = sum.wrapping_add(count));
        }
        sum
    }
}
