//! Who pays for the order between a borrow and an update: the updater alone, by a `membarrier(2)`,
//! or both sides, by a full fence each.
//!
//! A membarrier costs as much as some hundred full fences. So the phase is *biased* towards readers
//! while there are many loads for each update, and *fair* while there are few. One word holds the
//! phase and a number, which each change of the phase and each update in a fair phase increments.
//!
//! ```text
//! reader:   write the borrow (Release); light fence; phase (Acquire)        [EB-3]
//!           biased? nothing; else: full fence
//!           load the cell again (Acquire)
//! updater:  exchange the cell (AcqRel); phase (Acquire)
//!           fair?  number + 1 (AcqRel), and the phase was still fair? full fence [EB-3]
//!           else:  heavy fence
//!                  the phase was changing before that? changing -> fair (AcqRel), if the number
//!                    is still the same                                      [EB-3]
//!           look at the slots
//! change:   biased -> changing, by an updater; fair -> biased, by a reader (AcqRel)
//! ```
//!
//! **Invariant [EB-D]: an updater that executes no heavy fence sees each borrow, unless its reader
//! sees the exchange or has executed a full fence.** The updater's increment found the phase fair.
//! A reader that found it biased did so before the last change to fair, or after a later change to
//! biased.
//!
//! - Before: a heavy fence came between biased and fair, after the word said *changing*. The
//!   reader's light fence came before that heavy fence, since it would have found *changing* after
//!   it. So the thread that made the phase fair sees the borrow, and through the word this updater
//!   does.
//! - After: all stores to the word are read-modify-writes. So the reader, which acquires the later
//!   change, acquires what the updater released by its increment, and sees the exchange.
//!
//! The phase is fair at first, and stays so where readers must fence ([`Fences::Portable`]). An
//! updater that ends or forks before it makes the phase fair leaves that to the next one, which may
//! do it after a heavy fence of its own.
//!
//! Source of the idea: Dice and Kogan, *BRAVO*, USENIX ATC 2019, whose locks are biased towards
//! readers until a writer comes.

use std::sync::atomic::AtomicU64 as Estimate;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::os::fence::{self, Fences};
use crate::os::sync::{AtomicU64, const_unless_loom};

/// The phase is below the number.
const PHASES: u64 = 0b11;
/// Readers and updaters execute full fences.
pub(crate) const FAIR: u64 = 0;
/// Readers execute light fences, updaters heavy ones.
pub(crate) const BIASED: u64 = 1;
/// From biased to fair: readers execute full fences, updaters heavy ones.
pub(crate) const CHANGING: u64 = 2;

/// One heavy fence is taken to cost as much as so many full fences of readers.
const LOADS_PER_UPDATE: u64 = 256;
/// An updater ends a biased phase when its updates have cost so many loads more than it saved.
const MOST_LOST: u64 = 16 * LOADS_PER_UPDATE;
/// A reader considers the end of a fair phase once in so many uses of a slot.
const USES_PER_LOOK: u64 = 4 * LOADS_PER_UPDATE;

/// The phase of a set of borrows.
pub(crate) struct Bias {
    word: AtomicU64,
    estimates: Estimates,
}

/// What decides about the phase: guesses, by relaxed accesses. Apart from the word, which all
/// readers load.
#[repr(align(128))]
struct Estimates {
    /// The number, when a reader last considered the phase.
    number: Estimate,
    /// All uses of slots, when an updater last considered the phase.
    uses: Estimate,
    /// What the updates of the biased phase have cost, less what it saved, in loads.
    lost: Estimate,
}

impl Bias {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            let [number, uses, lost] = [const { Estimate::new(0) }; 3];
            Self { word: AtomicU64::new(FAIR), estimates: Estimates { number, uses, lost } }
        }
    }

    /// The reader's part, after its light fence. `uses` is how often its slot was used.
    #[inline(always)]
    pub(crate) fn reader(&self, uses: u64) {
        // Acquire: pairs with `updater` and `change` [EB-3].
        let word = self.word.load(Acquire); //~ bias-stale
        if word & PHASES != BIASED {
            self.fence(word, uses);
        }
    }

    #[cold]
    #[inline(never)]
    fn fence(&self, word: u64, uses: u64) {
        fence::full(); //~ bias-no-fence
        if uses.is_multiple_of(USES_PER_LOOK) && fence::chosen() == Fences::Membarrier {
            let number = word / (PHASES + 1);
            let updates = number.wrapping_sub(self.estimates.number.swap(number, Relaxed));
            if word & PHASES == FAIR && updates < USES_PER_LOOK / LOADS_PER_UPDATE {
                self.change(word, BIASED);
            }
        }
    }

    /// The updater's part, after its exchange: `heavy` is a heavy fence, `uses` returns how often
    /// all slots were used.
    pub(crate) fn updater(&self, heavy: impl FnOnce(), uses: impl FnOnce() -> u64) {
        // Acquire: `CHANGING` comes before the heavy fence [EB-3].
        let mut word = self.word.load(Acquire);
        if word & PHASES == FAIR {
            // AcqRel: pairs with `reader` and `change` [EB-3].
            word = self.word.fetch_add(PHASES + 1, AcqRel); //~ bias-no-increment
            if word & PHASES == FAIR {
                return fence::full_after_locked(); //~ bias-no-fence
            }
        }
        //~ bias-early {
        heavy();
        if word & PHASES == CHANGING {
            self.change(word, FAIR);
        }
        //~ }
        if word & PHASES == BIASED && self.is_too_dear(uses()) {
            self.change(word, CHANGING);
        }
    }

    /// Counts an update of a biased phase, of which slots were used so often.
    fn is_too_dear(&self, uses: u64) -> bool {
        let loads = uses.wrapping_sub(self.estimates.uses.swap(uses, Relaxed));
        let lost = self.estimates.lost.load(Relaxed) + LOADS_PER_UPDATE;
        let lost = lost.saturating_sub(loads);
        let is_too_dear = lost >= MOST_LOST;
        self.estimates.lost.store(if is_too_dear { 0 } else { lost }, Relaxed);
        is_too_dear
    }

    /// Changes the phase, unless the word has changed since it was `word`.
    fn change(&self, word: u64, phase: u64) {
        let next = (word & !PHASES).wrapping_add(PHASES + 1) | phase;
        // AcqRel: pairs with `reader` and `updater` [EB-3]. Relaxed: another thread has changed it.
        let _ = self.word.compare_exchange(word, next, AcqRel, Relaxed); //~ bias-any-number
    }

    /// For models, which have no estimates.
    #[cfg(any(test, loom))]
    pub(crate) fn go_to(&self, phase: u64) {
        self.change(self.word.load(Relaxed), phase);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn phase(bias: &Bias) -> u64 {
        bias.word.load(Relaxed) & PHASES
    }

    /// So many updates beside a slot that was used so often before the first of them; returns how
    /// many executed a heavy fence.
    fn updates(bias: &Bias, updates: u64, mut uses: u64, uses_each: u64) -> u64 {
        let mut heavy = 0;
        for _ in 0..updates {
            uses += uses_each;
            bias.updater(|| heavy += 1, || uses);
        }
        heavy
    }

    #[test]
    fn the_side_that_does_less_pays() {
        let bias = Bias::new();
        assert_eq!(updates(&bias, 1_000, 0, 0), 0, "an update before any load pays little");

        // Readers that meet no updates: they look again after 1,024 uses at most.
        for uses in 1..=2 * USES_PER_LOOK {
            bias.reader(uses);
        }
        let is_biased = fence::chosen() == Fences::Membarrier;
        assert_eq!(phase(&bias) == BIASED, is_biased);
        if is_biased {
            assert_eq!(updates(&bias, 1_000, 0, LOADS_PER_UPDATE), 1_000, "the loads are worth it");
            let heavy = updates(&bias, 1_000, 1_000_000, LOADS_PER_UPDATE / 2);
            assert!(heavy < 100, "{heavy} heavy fences with few loads");
            assert_eq!(phase(&bias), FAIR);
        }

        // Updates are frequent: looks do not change the phase.
        for uses in 1..=4 * USES_PER_LOOK {
            bias.reader(uses);
            if uses.is_multiple_of(LOADS_PER_UPDATE / 2) {
                updates(&bias, 1, 0, 0);
            }
        }
        assert_eq!(phase(&bias), FAIR);
    }

    /// Between the heavy fence of an updater and what it makes of it, the phase was biased again:
    /// a reader of that phase has met no heavy fence.
    #[test]
    fn a_late_updater_does_not_end_another_change() {
        let bias = Bias::new();
        bias.go_to(BIASED);
        bias.go_to(CHANGING);
        let meanwhile = || [FAIR, BIASED, CHANGING].into_iter().for_each(|phase| bias.go_to(phase));
        bias.updater(meanwhile, || 0);
        assert_eq!(phase(&bias), CHANGING);
        bias.updater(|| (), || 0);
        assert_eq!(phase(&bias), FAIR);
    }
}
