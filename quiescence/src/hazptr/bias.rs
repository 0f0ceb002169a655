//! Who pays for the order between a borrow and an update: the updater alone, by a `membarrier(2)`,
//! or both sides, by a full fence each.
//!
//! A membarrier costs as much as some thousand full fences. So the phase is *biased* towards
//! readers while there are many loads for each update, *fair* while there are few, and *changing*
//! on the way from biased to fair. One word holds the phase and a number, which each change of the
//! phase and each update in a fair phase increments.
//!
//! ```text
//! reader:   write the borrow (Release); light fence; phase (Acquire)          [EB-3]
//!           biased? nothing; else: full fence
//!           load the cell again (Acquire)
//! updater:  exchange the cell (AcqRel); phase (Acquire)
//!           fair?  number + 1 (AcqRel), and the phase was still fair? full fence [EB-3]
//!           else:  biased, and too dear? biased -> changing (AcqRel)
//!                  heavy fence
//!                  it was changing before that? changing -> fair (AcqRel), if the number is
//!                    still the same                                           [EB-3]
//!           look at the slots
//! a reader: fair or changing -> biased (AcqRel)                               [EB-3]
//! ```
//!
//! **Invariant [EB-D]: an updater that executes no heavy fence sees each borrow, unless its reader
//! sees the exchange or has executed a full fence.** The updater's increment found the phase fair.
//! A reader that found it biased did so before the last change to fair, or after a later change to
//! biased.
//!
//! - Before: a heavy fence came between biased and fair, after the word said *changing*. The
//!   reader's light fence came before that heavy fence, or it would have found *changing* or what
//!   came later. So the thread that made the phase fair sees the borrow, and through the word this
//!   updater does.
//! - After: all stores to the word are read-modify-writes. So the reader, which acquires the later
//!   change, acquires what the updater released by its increment, and sees the exchange.
//!
//! The phase is fair at first, and stays so where readers must fence ([`Fences::Portable`]). An
//! updater that stops before it makes the phase fair leaves that to the next one, after a heavy
//! fence of its own; and a child process to its updaters or readers.
//!
//! All cells of the process have one phase: a cell that is updated often makes loads of the others
//! execute fences, and updates of cells in fair phases share the word.
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

/// The cost of a heavy fence, in full fences of readers. While a reader loads in a loop it costs
/// twice as much (11 us on an idle machine of two CPUs), and such a reader makes some 600 loads
/// meanwhile: a lesser number would keep that phase.
const LOADS_PER_UPDATE: u64 = 1_024;
/// An updater ends a biased phase when its updates have cost this many loads more than it saved.
const MOST_LOST: u64 = 16 * LOADS_PER_UPDATE;
/// A reader considers ending a fair phase once in this many uses of a slot.
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
    /// All uses of slots, when a thread last considered the phase.
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

    /// The reader's part, after its light fence. Its slot was used `uses` times, all slots `all()`.
    #[inline(always)]
    pub(crate) fn reader(&self, uses: u64, all: impl FnOnce() -> u64) {
        // Acquire: pairs with `updater` and `change` [EB-3].
        let word = self.word.load(Acquire); //~ bias-stale

        //~ bias-changing:
        if word & PHASES != BIASED {
            self.fence(word, uses, all);
        }
    }

    #[cold]
    #[inline(never)]
    fn fence(&self, word: u64, uses: u64, all: impl FnOnce() -> u64) {
        fence::full(); //~ bias-no-fence
        if uses.is_multiple_of(USES_PER_LOOK)
            && fence::chosen() == Fences::Membarrier
            && self.is_worth_it(word / (PHASES + 1), all())
        {
            self.change(word, BIASED);
        }
    }

    /// Whether readers would have lost less by the updates since the last look. False if that was
    /// not long ago.
    fn is_worth_it(&self, number: u64, uses: u64) -> bool {
        let loads = uses.saturating_sub(self.estimates.uses.load(Relaxed));
        if loads < USES_PER_LOOK {
            return false;
        }
        self.estimates.uses.fetch_max(uses, Relaxed);
        let updates = number.saturating_sub(self.estimates.number.swap(number, Relaxed));
        updates.saturating_mul(LOADS_PER_UPDATE) < loads
    }

    /// The updater's part, after its exchange: `heavy` is a heavy fence; all slots were used
    /// `all()` times.
    #[inline(always)] // a step of each update
    pub(crate) fn updater(&self, heavy: impl FnOnce(), all: impl FnOnce() -> u64) {
        // Acquire: `CHANGING` comes before the heavy fence [EB-3].
        let mut word = self.word.load(Acquire);
        if word & PHASES == FAIR {
            // AcqRel: pairs with `reader` and `change` [EB-3].
            word = self.word.fetch_add(PHASES + 1, AcqRel); //~ bias-no-increment

            //~ bias-late:
            if word & PHASES == FAIR {
                return fence::full_after_locked(); //~ bias-no-own-fence
            }
            word = word.wrapping_add(PHASES + 1);
        }
        if word & PHASES == BIASED && self.is_too_dear(all()) {
            word = self.change(word, CHANGING);
        }
        //~ bias-early
        heavy();
        if word & PHASES == CHANGING {
            self.change(word, FAIR);
        }
    }

    /// Counts an update of a biased phase.
    fn is_too_dear(&self, uses: u64) -> bool {
        let loads = uses.saturating_sub(self.estimates.uses.fetch_max(uses, Relaxed));
        let lost = self.estimates.lost.load(Relaxed) + LOADS_PER_UPDATE;
        let lost = lost.saturating_sub(loads);
        let is_too_dear = lost >= MOST_LOST;
        self.estimates.lost.store(if is_too_dear { 0 } else { lost }, Relaxed);
        is_too_dear
    }

    /// Changes the phase, unless the word is not `word` any more. Returns what it was changed to,
    /// or `word`.
    fn change(&self, word: u64, phase: u64) -> u64 {
        let next = (word & !PHASES).wrapping_add(PHASES + 1) | phase;
        // AcqRel: pairs with `reader` and `updater` [EB-3]. Relaxed: another thread has changed it.
        let changed = self.word.compare_exchange(word, next, AcqRel, Relaxed); //~ bias-any-number
        if changed.is_ok() { next } else { word }
    }

    /// For tests and models.
    #[cfg(any(test, loom))]
    pub(crate) fn go_to(&self, phase: u64) {
        self.change(self.word.load(Relaxed), phase);
    }

    #[cfg(test)]
    pub(super) fn phase(&self) -> u64 {
        self.word.load(Relaxed) & PHASES
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Slots of which there are `slots`, used in turns: a load counts one use of one of them.
    struct Process {
        bias: Bias,
        slots: Vec<u64>,
        heavy: u64,
    }

    impl Process {
        fn new(slots: usize) -> Self {
            Self { bias: Bias::new(), slots: vec![0; slots], heavy: 0 }
        }

        fn load(&mut self, slot: usize) {
            self.slots[slot] += 1;
            self.bias.reader(self.slots[slot], || self.slots.iter().sum());
        }

        fn loads(&mut self, loads: u64) {
            (0..loads).for_each(|load| self.load(load as usize % self.slots.len()));
        }

        fn update(&mut self) {
            self.bias.updater(|| self.heavy += 1, || self.slots.iter().sum());
        }

        /// Makes `updates` updates, each after `loads_each` loads. Returns how many executed a
        /// heavy fence.
        fn updates(&mut self, updates: u64, loads_each: u64) -> u64 {
            let before = self.heavy;
            for _ in 0..updates {
                self.loads(loads_each);
                self.update();
            }
            self.heavy - before
        }
    }

    #[test]
    fn the_side_that_does_less_pays() {
        for slots in [1, 2, 16] {
            let mut process = Process::new(slots);
            assert_eq!(process.updates(1_000, 0), 0, "before any load, heavy fences");
            process.loads(slots as u64 * 4 * USES_PER_LOOK);
            if fence::chosen() != Fences::Membarrier {
                assert_eq!(process.bias.phase(), FAIR);
                continue;
            }
            assert_eq!(process.bias.phase(), BIASED, "{slots} slots, no updates");
            assert_eq!(process.updates(1_000, LOADS_PER_UPDATE), 1_000, "{slots} slots");
            let heavy = process.updates(1_000, LOADS_PER_UPDATE / 2);
            assert!(heavy < 100, "{slots} slots: {heavy} heavy fences with few loads");
            assert_eq!(process.bias.phase(), FAIR);
        }
    }

    /// `ExactCell::rcu` has two guards, whose slots are used equally often: the second one's look
    /// comes right after the first one's, and finds no updates since.
    #[test]
    fn a_look_right_after_another_one_changes_nothing() {
        let mut process = Process::new(2);
        assert_eq!(process.updates(10_000, 2), 0);
    }

    /// The updater that finds the phase too dear makes it fair itself: there may be no other.
    #[test]
    fn the_last_update_leaves_no_phase_that_is_dear_for_both_sides() {
        for updates in 1..40 {
            let mut process = Process::new(1);
            process.bias.go_to(BIASED);
            process.updates(updates, 0);
            assert_ne!(process.bias.phase(), CHANGING, "after {updates} updates");
        }
        // An updater of the parent process has left it like this, in the middle of its work, at a
        // fork.
        let mut process = Process::new(1);
        process.bias.go_to(CHANGING);
        process.loads(4 * USES_PER_LOOK);
        assert!(process.bias.phase() == BIASED || fence::chosen() == Fences::Portable);
    }

    /// Two updaters count the loads at once: the lesser count comes later.
    #[test]
    fn counts_that_arrive_out_of_order_are_no_loads() {
        let bias = Bias::new();
        bias.go_to(BIASED);
        let most = MOST_LOST / LOADS_PER_UPDATE;
        for update in 0..most {
            let uses = 1_000 - update % 2 * 10;
            bias.updater(|| (), || uses);
        }
        (0..4).for_each(|_| bias.updater(|| (), || 1_000));
        assert_eq!(bias.phase(), FAIR);
    }

    /// Between the heavy fence of an updater and what it makes of it, the phase was biased again:
    /// a reader of that phase has met no heavy fence.
    #[test]
    fn a_late_updater_does_not_end_another_change() {
        let bias = Bias::new();
        bias.go_to(CHANGING);
        let meanwhile = || [FAIR, BIASED, CHANGING].into_iter().for_each(|phase| bias.go_to(phase));
        bias.updater(meanwhile, || 0);
        assert_eq!(bias.phase(), CHANGING);
        bias.updater(|| (), || 0);
        assert_eq!(bias.phase(), FAIR);
    }
}
