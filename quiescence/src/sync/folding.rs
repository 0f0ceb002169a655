//! Per-CPU words that can be folded into one word.
//!
//! An addition is one restartable sequence: *load the place of the words; if it is null, refuse;
//! add to this CPU's word.* The thread that folds takes the words out of their place, and restarts
//! all sequences ([`percpu::barrier`]). After that, every sequence has either added, or finds the
//! place empty. So the words do not change any more, and are moved to one word, `central`. Threads
//! whose addition was refused add to `central`, which they may do at any time. So no thread waits
//! for the thread that folds.
//!
//! ```text
//!   addition, a sequence                   the thread that folds, one at a time
//!     words = place; null: refused         place = null
//!     words[this cpu] += n                 barrier                  [FD-1]
//!   refused:                               for each cpu: central += word, word = 0
//!     central += n (or as the tool needs)    ... `central` is exact ...
//!                                          place = words (Release)  [FD-2]
//! ```
//!
//! If the process has no sequences, an addition is an atomic exchange, and each word itself says
//! that it is gone:
//!
//! ```text
//!     words = place; null: refused         place = null
//!     word = words[this cpu]               for each cpu: central += swap(word, GONE)  [FD-1]
//!     GONE: refused                          ...
//!     exchange word for word + n           for each cpu: word = 0;  place = words     [FD-2]
//! ```
//!
//! The words are those of [`PerCpuCounters`]; its shared counters stay zero. The folding thread
//! writes the words by atomic stores, even if sequences write them otherwise [PC-1], but only while
//! no sequence does.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use crate::os::percpu::{self, PerCpuPath};
use crate::os::sync::{self, Mutex, MutexGuard, Rank, const_unless_loom};
use crate::percpu::counters::{PerCpuCounters, word_of};

/// What a word is that must not be added to, where words are written by atomic instructions. No
/// count gets there.
const GONE: u64 = 1 << 63;

/// `W` words of each CPU, and the one that all can be folded into. Amounts wrap: one that is taken
/// away is added as its complement.
pub(super) struct Folding<const W: usize> {
    /// The words of CPU 0 while additions may use them, else null.
    place: AtomicPtr<u64>,
    /// The one word. What is done to it counts at all times.
    pub(super) central: AtomicU64,
    words: PerCpuCounters<W>,
    /// Not 0 while words that there are must not be in their place.
    stopped: AtomicU32,
    /// Held by the thread that changes the two; by one that folds for itself, until it is through.
    turn: Mutex<()>,
}

/// It is the turn of the thread that has this to fold, or to have the words used again.
pub(super) type Turn<'a> = MutexGuard<'a, ()>;

impl<const W: usize> Folding<W> {
    const_unless_loom! {
        pub(super) fn new(central: u64, stopped: bool) -> Self {
            Self {
                place: AtomicPtr::new(ptr::null_mut()),
                central: AtomicU64::new(central),
                words: PerCpuCounters::new(),
                stopped: AtomicU32::new(stopped as u32),
                turn: Mutex::new(Rank::Turn, ()),
            }
        }
    }

    /// Adds so much to the first word of this CPU, unless it is folded or has none: then it says
    /// no, and has done nothing.
    #[inline(always)]
    pub(super) fn add(&self, amount: u64) -> bool {
        // SAFETY: every CPU has W words; they are there as long as `self`.
        let added = unsafe { percpu::add_at::<0>(&self.place, amount) }; // [FD-1]
        // SAFETY: it is `self`.
        added || unsafe { Self::add_slow(self, 0, amount) }
    }

    /// The same with the second word, for a thread whose addition lets others free `this`: no
    /// function that adds may have a reference to it as an argument, which must not outlive it.
    ///
    /// # Safety
    /// `this` is there until it has been added.
    #[inline(always)]
    pub(super) unsafe fn add_second(this: *const Self, amount: u64) -> bool {
        const { assert!(W > 1) };
        // SAFETY: by the contract. (An atomic may be freed while a function borrows it.)
        let place = unsafe { &(*this).place };
        // SAFETY: as in `add`.
        let added = unsafe { percpu::add_at::<8>(place, amount) }; // [FD-1]
        // SAFETY: the same contract; nothing has been added yet.
        added || unsafe { Self::add_slow(this, 1, amount) }
    }

    /// Takes so much from the first word of this CPU, unless it is folded, has none, or less than
    /// that.
    #[inline(always)]
    pub(super) fn take(&self, amount: u64) -> bool {
        // SAFETY: as in `add`.
        let taken = unsafe { percpu::take_at(&self.place, amount) }; // [FD-1]
        taken || self.take_slow(amount)
    }

    /// # Safety
    /// As [`add_second`](Self::add_second).
    #[cold]
    #[inline(never)]
    unsafe fn add_slow(this: *const Self, word: usize, amount: u64) -> bool {
        // SAFETY: by the contract.
        let word = unsafe { &*this }.portable_word(word);
        word.is_some_and(|word| change(word, |count| Some(count.wrapping_add(amount))))
    }

    #[cold]
    #[inline(never)]
    fn take_slow(&self, amount: u64) -> bool {
        self.portable_word(0).is_some_and(|word| change(word, |count| count.checked_sub(amount)))
    }

    /// The word of this CPU, for [`change`], where there are no sequences in the whole process.
    /// Where others use sequences the word is not for us [PC-1].
    fn portable_word(&self, word: usize) -> Option<&'static AtomicU64> {
        if !self.has_words() {
            self.note_use();
            return None;
        }
        if percpu::path() != PerCpuPath::Portable {
            return None;
        }
        // Acquire: pairs with the Release in `publish`.
        let first = self.place.load(Acquire);
        debug_assert!(word < W);
        // SAFETY: every slot has W words, and this is one of them.
        (!first.is_null()).then(|| unsafe { word_of(first, percpu::slot(), word) })
    }

    fn note_use(&self) {
        // Its turn is not waited for: this may be a signal handler.
        if self.words.note_use()
            && let Some(turn) = self.try_turn()
            && !self.is_stopped()
        {
            self.publish(&turn);
        }
    }

    /// Whether the CPUs have words.
    pub(super) fn has_words(&self) -> bool {
        !self.words.first().is_null()
    }

    /// Whether it is stopped, for a thread whose turn it is; or a guess.
    pub(super) fn is_stopped(&self) -> bool {
        // Acquire: pairs with the Release in `go_on`, for those who rely on its being 0.
        self.stopped.load(Acquire) != 0
    }

    /// Waits for the threads that fold.
    pub(super) fn turn(&self) -> Turn<'_> {
        sync::lock(&self.turn)
    }

    /// The same, if no thread does.
    pub(super) fn try_turn(&self) -> Option<Turn<'_>> {
        sync::try_lock(&self.turn)
    }

    /// Has additions say no from soon on. Returns `false` if they did so already.
    pub(super) fn stop(&self, _turn: &Turn<'_>) -> bool {
        // Relaxed: `gather` has the fence.
        self.place.store(ptr::null_mut(), Relaxed); //~ no-stall-flag
        self.stopped.swap(1, Relaxed) == 0
    }

    /// After [`stop`](Self::stop), by the same thread: waits until the words stand still, and moves
    /// what is in them to the one word, and `more`. Returns what that has become.
    pub(super) fn gather(&self, more: u64) -> u64 {
        let mut sum = more;
        // Words that were ever in their place were put there before `stop`; those that come do not
        // get there. So where there are none no thread has added to any.
        if self.has_words() {
            let restartable = percpu::path() == PerCpuPath::Restartable;
            //~ no-stall-barrier:
            if restartable {
                percpu::barrier(); // [FD-1]
            }
            self.each(|word| {
                sum = sum.wrapping_add(if restartable {
                    // Relaxed, both: no other thread writes it; [FD-2] tells of the zero.
                    let count = word.load(Relaxed);
                    word.store(0, Relaxed);
                    count
                } else {
                    // AcqRel: a thread that has added is in it, with all that it did before; a
                    // thread that comes later finds it [FD-1].
                    word.swap(GONE, AcqRel) //~ no-stall-flag
                });
            });
        }
        //~ point gathered
        // AcqRel: with those who have come to `central` before, or will.
        self.central.fetch_add(sum, AcqRel).wrapping_add(sum)
    }

    /// Lets the words be used again.
    pub(super) fn go_on(&self, turn: &Turn<'_>) {
        // Release: for those who still know the words' place [FD-2]. (With sequences they are zero
        // already, and no thread does.)
        if self.has_words() && percpu::path() == PerCpuPath::Portable {
            self.each(|word| word.store(0, Release));
        }
        // Release: pairs with the Acquire in `is_stopped`.
        self.stopped.store(0, Release);
        self.publish(turn);
    }

    /// Hands over the words of all CPUs.
    fn each(&self, mut f: impl FnMut(&AtomicU64)) {
        let first = self.words.first();
        for slot in 0..percpu::slots() {
            // SAFETY: every slot has W words, ours as long as `self` is there.
            (0..W).for_each(|word| f(unsafe { word_of(first, slot, word) }));
        }
    }

    /// Puts the words in their place.
    fn publish(&self, _turn: &Turn<'_>) {
        // Release: pairs with each addition's load of the place [FD-2], which is an Acquire on x86,
        // and elsewhere has the words' addresses depend on it. So it finds the words zero, and all
        // else that was done meanwhile.
        self.place.store(self.words.first(), Release);
    }

    /// The sum of all words, while additions go on. It may be torn.
    pub(super) fn guess(&self) -> u64 {
        let mut sum = self.central.load(Relaxed);
        if self.has_words() {
            self.each(|word| {
                let count = word.load(Relaxed);
                sum = sum.wrapping_add(if count == GONE { 0 } else { count });
            });
        }
        sum
    }
}

/// The twin of a sequence: changes a word, unless that is gone.
fn change(word: &AtomicU64, change: impl Fn(u64) -> Option<u64>) -> bool {
    let change = |count| if count == GONE { None } else { change(count) };
    // AcqRel: with the exchange in `gather` [FD-1] and the zero in `go_on` [FD-2].
    fetch_update!(word, AcqRel, Acquire, |old| change(old).filter(|count| *count != GONE)).is_ok()
}
