//! A reader's slot: the word that grace periods scan, and how a section begins and ends.
//!
//! Protocol of the reader, each line one step that the explorer transcribes (docs/ORDERINGS.md):
//!
//! ```text
//! enter, outermost:  current = gp.ctr (Acquire)          [GP-3]
//!                    word = current   (Release)          [GP-2]
//!                    light fence                         [GP-1]
//! enter, nested:     word = word + 1  (Release)          [GP-2]
//! leave:             light fence
//!                    word = word - 1  (Release)          [GP-2]
//!                    done if it was nested
//!                    light fence                         [GP-6]
//!                    if there are marks: act on them
//! ```
//!
//! With membarrier every step is a plain load or store. A section that begins checks the nesting
//! alone: 0 is the outermost, and [`DEEPEST`] takes the slow path, for two reasons. One level more
//! would overflow into the number. And a thread that is not registered yet, or that must execute
//! full fences, sees a slot whose nesting is always [`DEEPEST`]: [`NOT_READY`].

use std::ops::Deref;
use std::panic::Location;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::word::{self, COUNT, QUIESCENT};

use crate::gp::links::{Links, Readers, Words};
use crate::gp::notes::Notes;
use crate::gp::wake::{LEAVING, Line, Marks, OVERDUE, WAITED_FOR, Wake};
use crate::os::fence::{self, Fences};
use crate::os::sync::{AtomicU64, Cell, const_unless_loom};

/// The part of a domain's grace periods that its readers access; the first field of those.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct GpWords {
    /// What readers copy into their words; liburcu's `gp.ctr`.
    pub(crate) gp: AtomicU64,
    /// If its readers are liburcu readers: their words, and how they read. Written once, so it may
    /// share the cache line of `gp`, which changes once per grace period.
    pub(crate) liburcu: Option<Links>,
    /// Whether its readers execute full fences even if the process has light ones: then its grace
    /// periods need no heavy one [GP-1], [GP-6]. Written once, as well.
    pub(crate) readers_fence: bool,
    /// What its sleeping driver waits for.
    pub(crate) wake: Line<Wake>,
}

impl GpWords {
    const_unless_loom! {
        pub(crate) fn new(entered: u64, readers_fence: bool) -> Self {
            Self {
                gp: AtomicU64::new(entered),
                liburcu: None,
                readers_fence,
                wake: Line(Wake::new()),
            }
        }
    }

    /// A holdout that was marked has left its section.
    pub(crate) fn holdout_left(&self) {
        if let Some(words) = self.liburcu_words() {
            return words.wake();
        }
        self.wake.0.holdout_left();
    }

    /// The words of its liburcu readers, if it has any.
    pub(crate) fn liburcu_words(&self) -> Option<&'static Words> {
        self.links()?.words()
    }

    /// As [`liburcu`](Self::liburcu); so a library without such readers has no code for them.
    pub(crate) fn links(&self) -> Option<&Links> {
        if cfg!(feature = "call_rcu") { self.liburcu.as_ref() } else { None }
    }
}

/// One registered reader, in a pair of cache lines of its own, so that readers share no line.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Slot {
    /// [`grace::word`]: nesting and grace-period number. First, as in liburcu's record.
    pub(super) word: AtomicU64,
    /// What the reader acts on when it leaves.
    pub(crate) marks: Marks,
    /// The domain of its registry; null before the first [`adopt`](Self::adopt).
    core: Cell<*const GpWords>,
    /// What reports show of the reader, and what a QSBR reader needs.
    pub(crate) notes: Notes,
    /// How many handles keep this slot registered. Owner only. Safe code can leak handles, so it
    /// has 64 bits and is checked: a count that wrapped would unregister the slot under a reader.
    references: Cell<u64>,
    /// This slot's index in the registry's list. Under the registry's lock.
    pub(super) index: Cell<usize>,
    /// The owner's [token](crate::os::thread::token). Under the registry's lock.
    owner: Cell<usize>,
    /// How the owner reads. Under the registry's lock.
    reader_kind: Cell<ReaderKind>,
    pub(crate) fence: fence::Cell,
}

// SAFETY: any thread may use the atomics. `core` is set once, before the slot is first handed out.
// `references` is accessed by the owner only. `index`, `owner`, `reader_kind` and the cells of
// `notes` are accessed under the registry's lock only, except that the owner reads `reader_kind`
// and `notes.relays` without it: those are written when the slot is handed out, and not again until
// the owner has given it back.
unsafe impl Sync for Slot {}
// SAFETY: as above; slots are created by one thread and owned by others in turn, each hand-over
// going through the registry's lock.
unsafe impl Send for Slot {}

/// A slot in the lists of a registry.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotRef(pub(super) *const Slot);

impl Deref for SlotRef {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        // SAFETY: it leads into a chunk of the registry, which is freed when the registry is
        // dropped; or the caller of `Registry::register` keeps it valid until it is
        // unregistered, and so out of the lists.
        unsafe { &*self.0 }
    }
}

/// How the owner of a slot reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderKind {
    /// In sections.
    Ordinary,
    /// Between quiescent states; it executes a full fence when it comes online.
    Qsbr,
    /// In a program that follows liburcu's protocol.
    Liburcu(Readers),
}

/// The greatest nesting of sections.
const DEEPEST: u32 = u32::MAX;

/// The slot of a thread that must take the slow path. Its nesting is [`DEEPEST`], so no section
/// begins there, and no thread writes it. Loom has none.
pub(crate) const NOT_READY: *const Slot =
    if cfg!(loom) { std::ptr::null() } else { (&raw const TOO_DEEP).cast() };

const_unless_loom! {
    static TOO_DEEP: Slot = Slot::new(DEEPEST as u64 * COUNT);
}

impl Slot {
    const_unless_loom! {
        /// An unregistered slot; [`adopt`](Self::adopt) gives it to a reader.
        pub(crate) fn new(word: u64) -> Self {
            Self {
                word: AtomicU64::new(word),
                marks: Marks::new(),
                core: Cell::new(std::ptr::null()),
                notes: Notes::new(),
                references: Cell::new(0),
                index: Cell::new(0),
                owner: Cell::new(0),
                reader_kind: Cell::new(ReaderKind::Ordinary),
                fence: fence::Cell::new(),
            }
        }
    }

    // ---- the reader's side ------------------------------------------------------------------

    /// Whether the owner is in no section (or, for QSBR, offline).
    #[inline(always)]
    pub(crate) fn is_quiescent(&self) -> bool {
        word::nesting(self.own_word()) == 0
    }

    /// Whether the owner is in a section that no other is nested in.
    pub(crate) fn is_outermost(&self) -> bool {
        word::nesting(self.own_word()) == 1
    }

    /// Begins an outermost section with light fences. Owner only, nesting 0.
    #[inline(always)]
    pub(crate) fn enter_outermost(&self, gp: &AtomicU64, location: &'static Location<'static>) {
        // Acquire: pairs with the Release in GracePeriods::announce [GP-3]; a section under the new
        // number sees what was published before the grace period that announced it.
        let current = gp.load(Acquire);
        //~ point enter-before-store
        self.notes.begin(location);
        // Release, as every store to the word [GP-2]: a scan may read this value without having
        // read the one that ended the previous section, and must still be ordered after that
        // section. The light fence below, with the updater's heavy fence, orders the store before
        // the section's loads [GP-1].
        self.word.store(current, Release); //~ relaxed-lock
        fence::light(&self.fence);
        //~ point entered
    }

    /// The word as the owner wrote it last, to decide how a section begins.
    #[inline(always)]
    pub(crate) fn own_word(&self) -> u64 {
        // Relaxed: the owner reads its own word.
        self.word.load(Relaxed)
    }

    /// Begins a nested section. False if the nesting is [`DEEPEST`]. Owner only; `word` is the
    /// slot's, its nesting not 0.
    ///
    /// Needs no fence, light or full: the word shows a section until the outermost one ends, and
    /// all loads until then belong to the outermost, in whichever order the guards are dropped. The
    /// store is ordered with the owner's previous and next stores, as they are to the same word.
    #[inline(always)]
    pub(crate) fn enter_nested(&self, word: u64) -> bool {
        if word::nesting(word) == DEEPEST {
            return false;
        }
        // Release: as in `enter_outermost` [GP-2]. The number, which the scan compares, stays.
        self.word.store(word + COUNT, Release);
        true
    }

    /// Begins a section in the cases that the fast path does not cover: no membarrier, or too deep.
    pub(crate) fn enter_slow(&self, gp: &AtomicU64, location: &'static Location<'static>) {
        if self.is_quiescent() {
            self.enter_outermost(gp, location);
            if !self.is_fast() {
                // In place of the light fence, in this process or this domain [GP-1].
                fence::full(); //~ no-reader-fence
            }
            return;
        }
        assert!(
            self.enter_nested(self.own_word()),
            "read-side sections nested 2^32 deep: guards are being leaked with mem::forget"
        );
    }

    /// Ends a section. Owner only.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        if self.leave_quietly() {
            self.leave_slow();
        }
    }

    /// The same, but for what is done last, where user code may run: returns whether that is due,
    /// by [`leave_slow`](Self::leave_slow).
    #[inline(always)]
    #[must_use]
    pub(crate) fn leave_quietly(&self) -> bool {
        let word = self.own_word();
        self.leave_to(word - COUNT) //~ nested-unlock-ends
    }

    /// Ends a section, or one level of it: `left` is the new word. As
    /// [`leave_quietly`](Self::leave_quietly).
    #[inline(always)]
    pub(super) fn leave_to(&self, left: u64) -> bool {
        fence::light(&self.fence);
        //~ point leave-before-store
        // Release: pairs with the Acquire in `is_holdout` [GP-2]; the section's loads happen before
        // whatever the updater does once it has seen this word.
        self.word.store(left, Release); //~ relaxed-unlock
        if word::nesting(left) != 0 {
            // Still in the outermost section, whose end acts on the marks. A scan that waits for
            // this reader waits until then, so no sleeper misses a report, or needs the fence.
            return false;
        }
        fence::light(&self.fence);
        //~ point left
        // The light fence above, with the sleeper's heavy fence, makes sure that either this load
        // sees the mark or the sleeper's second check sees the word [GP-6].
        self.marks.any()
    }

    /// Acts on the marks, once the section has ended.
    #[cold]
    pub(crate) fn leave_slow(&self) {
        self.marks.fence_if_portable(); // in place of the light fence [GP-6]
        self.report_quiescent();
        if self.marks.has(OVERDUE | LEAVING) {
            (crate::HOOKS.section_ended)(self);
        }
    }

    /// Wakes the sleeping updater if this reader was the last it waited for.
    pub(crate) fn report_quiescent(&self) {
        //~ no-wake-up
        if self.marks.take(WAITED_FOR) {
            self.core().holdout_left();
        }
    }

    // ---- the updater's side -----------------------------------------------------------------

    /// Whether a grace period under `number` must wait for this reader.
    #[inline]
    pub(crate) fn is_holdout(&self, number: grace::Number) -> bool {
        // Acquire: pairs with the Release in `leave` and `renew` [GP-2]; what the reader did in its
        // section happens before the end of the grace period.
        let word = self.word.load(Acquire);
        //~ phase-bit
        word::is_holdout(word, number)
    }

    // ---- registration, under the registry's lock or by the owner ------------------------------

    /// Gives a free slot to a reader. Under the registry's lock.
    ///
    /// # Safety
    /// No reader has the slot, the caller holds the lock of its registry, and `core` is of the
    /// domain of that registry, in which the slot stays.
    pub(super) unsafe fn adopt(
        &self,
        core: *const GpWords,
        index: usize,
        owner: usize,
        reader_kind: ReaderKind,
    ) {
        // Once: the previous owner, which has unregistered, may still be reporting to its domain.
        if self.core.get().is_null() {
            self.core.set(core);
        }
        self.index.set(index);
        self.owner.set(owner);
        self.reader_kind.set(reader_kind);
        self.references.set(0);
        self.word.store(QUIESCENT, Relaxed);
        // (A liburcu reader has no mark to keep.)
        let lost = self.is_liburcu(); //~ forgotten-mark
        self.marks.adopt(lost, !self.is_fast());
    }

    /// Forgets a section that cannot end, because its thread is gone (in a child process).
    ///
    /// # Safety
    /// The thread is gone, or uses neither the slot nor what it has seen again.
    pub(crate) unsafe fn forget_section(&self) {
        self.word.store(QUIESCENT, Relaxed);
    }

    pub(super) fn core(&self) -> &GpWords {
        // SAFETY: set by the first `adopt`, before any thread could hold the slot, to the domain
        // in whose registry it is: while the slot can be reached, the domain lives.
        unsafe { &*self.core.get() }
    }

    pub(crate) fn core_ptr(&self) -> *const GpWords {
        self.core.get()
    }

    pub(crate) fn owner(&self) -> usize {
        self.owner.get()
    }

    pub(crate) fn is_qsbr(&self) -> bool {
        matches!(self.reader_kind.get(), ReaderKind::Qsbr | ReaderKind::Liburcu(Readers::Qsbr))
    }

    /// Whether the program owns its memory, and reads by code compiled against liburcu.
    pub(crate) fn is_liburcu(&self) -> bool {
        cfg!(feature = "call_rcu") && matches!(self.reader_kind.get(), ReaderKind::Liburcu(_))
    }

    /// Whether its fences are light, so that the updater's must be heavy.
    pub(crate) fn has_light_fences(&self) -> bool {
        match self.reader_kind.get() {
            ReaderKind::Ordinary => !self.core().readers_fence,
            ReaderKind::Qsbr => false,
            ReaderKind::Liburcu(readers) => matches!(readers, Readers::Light | Readers::Silent),
        }
    }

    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.word
    }

    /// Whether the fast path may use this slot: light fences suffice in this process and domain.
    pub(crate) fn is_fast(&self) -> bool {
        fence::chosen() == Fences::Membarrier && !self.core().readers_fence
    }

    /// Counts `handles` more of them. Owner only.
    ///
    /// # Panics
    /// If there are then 2^64 or more.
    pub(crate) fn acquire(&self, handles: u64) {
        let references = self.references.get().checked_add(handles);
        self.references.set(references.expect(
            "quiescence: 2^64 registrations of one thread: `Reader`s are being leaked with mem::forget",
        ));
    }

    /// Counts one handle fewer. Owner only.
    pub(crate) fn release(&self) {
        self.references.set(self.references.get() - 1);
    }

    /// How many handles keep it registered. Owner only.
    pub(crate) fn references(&self) -> u64 {
        self.references.get()
    }
}

#[cfg(test)]
mod tests {
    use grace::Number;

    use super::*;
    use crate::common::threads::panic_of;

    /// The nesting is half of the word: one level more would change the number in the other half.
    #[test]
    fn a_section_nested_too_deep_is_refused_before_anything_is_changed() {
        let slot = Slot::new(word::entered(Number(5)) - COUNT + u64::from(u32::MAX) - 1);
        let (gp, location) = (AtomicU64::new(word::entered(Number(7))), Location::caller());
        slot.enter_slow(&gp, location);
        let deepest = slot.word.load(Relaxed);
        assert_eq!((word::nesting(deepest), word::number(deepest)), (u32::MAX, Number(5)));
        let too_deep = || slot.enter_slow(&gp, location);
        assert!(!panic_of(too_deep).is_empty(), "it says what leaks");
        assert_eq!(slot.word.load(Relaxed), deepest);
    }

    /// One comparison covers both cases: the slot of a thread that is not ready is [`DEEPEST`].
    #[test]
    fn no_section_begins_in_the_slot_of_threads_that_are_not_ready() {
        let word = TOO_DEEP.own_word();
        assert!(!TOO_DEEP.is_quiescent() && !TOO_DEEP.enter_nested(word));
        assert_eq!(TOO_DEEP.own_word(), word);
    }

    /// Only the end of the outermost section acts on a mark and reports.
    #[test]
    fn the_end_of_a_nested_section_leaves_the_marks_alone() {
        let (slot, words) = (Slot::new(QUIESCENT), GpWords::new(word::entered(Number(7)), false));
        // SAFETY: no other thread has either.
        unsafe { slot.adopt(&raw const words, 0, 1, ReaderKind::Ordinary) };
        slot.enter_slow(&words.gp, Location::caller());
        slot.enter_slow(&words.gp, Location::caller());
        slot.marks.set(WAITED_FOR);
        slot.leave();
        assert_eq!(slot.own_word(), word::entered(Number(7)));
        assert!(slot.marks.take(WAITED_FOR), "the mark is still there");
        slot.leave();
        assert!(slot.is_quiescent());
    }

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
