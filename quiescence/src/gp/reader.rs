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
//!                    if attention != 0: look at what is wanted
//! ```
//!
//! Under membarrier no step is more than a plain load or store. A section asks one question, how
//! deep it is: 0 is the outermost. The greatest number is the slow path's, and not only because one
//! section more would change the other half of the word: a thread that is not registered yet and a
//! process without membarrier see a slot that is always that deep ([`NOT_READY`]).

use std::panic::Location;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use grace::word::{self, COUNT, QUIESCENT};

use crate::chaos::{self, Mutant, Point};
use crate::gp::gp_words::{GpWords, Readers};
use crate::os::fence::{self, Fences};
#[cfg(not(loom))]
use crate::os::stack::Alternate;
use crate::os::sync::{AtomicPtr, AtomicU32, AtomicU64, Cell, const_unless_loom};

/// One registered reader. A cache line pair of its own, so that readers share no line.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Slot {
    /// [`grace::word`]: nesting and grace-period number. First, as in liburcu's record.
    word: AtomicU64,
    /// What the reader should look at when it leaves: [`WAITED_FOR`], [`LEAVING`],
    /// [`PORTABLE`], [`OVERDUE`].
    attention: AtomicU32,
    /// Where the outermost section began, for messages; null while unknown.
    began: AtomicPtr<Location<'static>>,
    /// The domain whose registry owns this memory; null only for [`NOT_READY`].
    core: Cell<*const GpWords>,
    /// Handles and implicit registration that keep this slot registered. Owner only. Safe code
    /// drives it, by handles that are leaked: 64 bits, and checked, since a count that wraps would
    /// unregister the slot under a reader.
    references: Cell<u64>,
    /// Where this slot stands in the registry's list. Under the registry's lock.
    index: Cell<usize>,
    /// Whose slot it is; see [`crate::os::thread::token`]. Under the registry's lock.
    owner: Cell<usize>,
    /// The id of that thread in the system; see `os::thread`. Under the registry's lock.
    thread: Cell<u32>,
    /// On which stack that thread can handle a signal. Under the registry's lock.
    #[cfg(not(loom))]
    alternate: Cell<Alternate>,
    /// How the owner reads. Under the registry's lock.
    reader_kind: Cell<ReaderKind>,
    /// What a QSBR reader copies at a quiescent state: `gp.ctr`, or the word of its predecessor in
    /// the [relay](crate::gp::relay).
    source: AtomicPtr<AtomicU64>,
    /// Whether it takes part in a relay. Set before the slot is handed out.
    relays: Cell<bool>,
    /// Its place in the relay. Under the registry's lock.
    station: Cell<usize>,
    pub(crate) fence: fence::Cell,
}

// SAFETY: the atomics are for everybody; `core` is set once, before the slot is first handed out;
// `references` is touched by the owning thread only; `index`, `owner`, `thread`, `alternate`,
// `reader_kind`, `relays` and `station` are touched under the registry's lock only, but that the
// owner reads `reader_kind` and `relays` without it: those are written when the slot is handed out,
// and then not until the owner has given it back.
unsafe impl Sync for Slot {}
// SAFETY: as above; slots are created by one thread and owned by others in turn, each hand-over
// going through the registry's lock.
unsafe impl Send for Slot {}

/// How the owner of a slot reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderKind {
    /// In sections. All zeroes, as the records of programs are at first.
    Ordinary,
    /// Between quiescent states; it executes full fences where it comes online.
    Qsbr,
    /// In a program that follows liburcu's protocol.
    Liburcu(Readers),
}

impl ReaderKind {
    pub(crate) fn is_liburcu(self) -> bool {
        matches!(self, Self::Liburcu(_))
    }
}

/// A sleeping updater waits for this reader to leave its section.
const WAITED_FOR: u32 = 1;
/// The thread is exiting: unregister once the section has ended.
const LEAVING: u32 = 2;
/// Fences are instructions here: this process has no membarrier, or the domain wants none.
const PORTABLE: u32 = 4;
/// A reader that has retired too much: it has its part to do when its section ends, or at its next
/// quiescent state.
const OVERDUE: u32 = 8;

/// What a QSBR reader of a [relay](crate::gp::relay) shows from when it comes online until it hands
/// a number on. Online, as the nesting says; and not `gp.ctr` at any time, which has a nesting of
/// one. So its successor does not take it for one that has passed, however long it stalls before it
/// stores this.
const ARRIVED: u64 = 2 * COUNT;

/// How deep sections nest at most.
const DEEPEST: u32 = u32::MAX;

/// The slot of a thread that must take the slow path. Its nesting is neither 0 nor less than the
/// greatest, so no section begins there, and no thread writes it.
#[cfg(not(loom))]
pub(crate) static NOT_READY: Slot = Slot::new(DEEPEST as u64 * COUNT);

impl Slot {
    const_unless_loom! {
        /// An unregistered slot; [`adopt`](Self::adopt) makes it somebody's.
        pub(crate) fn new(word: u64) -> Self {
            Self {
                word: AtomicU64::new(word),
                attention: AtomicU32::new(0),
                began: AtomicPtr::new(std::ptr::null_mut()),
                core: Cell::new(std::ptr::null()),
                references: Cell::new(0),
                index: Cell::new(0),
                owner: Cell::new(0),
                thread: Cell::new(0),
                #[cfg(not(loom))]
                alternate: Cell::new(Alternate::NONE),
                reader_kind: Cell::new(ReaderKind::Ordinary),
                source: AtomicPtr::new(std::ptr::null_mut()),
                relays: Cell::new(false),
                station: Cell::new(usize::MAX),
                fence: fence::Cell::new(),
            }
        }
    }

    // ---- the reader's side ------------------------------------------------------------------

    /// Whether the owner is in no section (or, for QSBR, offline).
    #[inline(always)]
    pub(crate) fn is_quiescent(&self) -> bool {
        // Relaxed: the owner reads its own word.
        word::nesting(self.word.load(Relaxed)) == 0
    }

    /// Whether the owner is in one section, and in none inside of it.
    pub(crate) fn is_outermost(&self) -> bool {
        // Relaxed: the owner reads its own word.
        word::nesting(self.word.load(Relaxed)) == 1
    }

    /// Begins an outermost section with light fences. Owner only, nesting 0.
    #[inline(always)]
    pub(crate) fn enter_outermost(&self, gp: &AtomicU64, location: &'static Location<'static>) {
        // Acquire: pairs with the Release in GracePeriods::announce [GP-3]; under the new number
        // the section sees what was published before the grace period that announced it.
        let current = gp.load(Acquire);
        chaos::point(Point::EnterBeforeStore);
        self.began.store(std::ptr::from_ref(location).cast_mut(), Relaxed);
        // Release, as every store to the word [GP-2]: a scan that meets this one, and not that of
        // the unlock before it, must still have the section before behind it. The light fence
        // below, with the updater's heavy fence, orders the store before the section's loads
        // [GP-1].
        self.word.store(current, chaos::release_unless(Mutant::RelaxedLock));
        fence::light(&self.fence);
        chaos::point(Point::Entered);
    }

    /// The word as the owner wrote it last, to decide how a section begins.
    #[inline(always)]
    pub(crate) fn own_word(&self) -> u64 {
        // Relaxed: the owner reads its own word.
        self.word.load(Relaxed)
    }

    /// Begins a section inside another one, if that is not the deepest there can be; whether it
    /// did. Owner only; `word` is the slot's, its nesting not 0.
    ///
    /// No fence, light or full: until the outermost section ends the word says so, and what is
    /// loaded meanwhile is the outermost's, whichever of the guards goes first. All that the store
    /// has to do is to come after the one before it and before the one after, which are stores to
    /// the same word.
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
            if self.attention.load(Relaxed) & PORTABLE != 0 {
                // The light fence of this process, or of this domain [GP-1].
                if !chaos::mutant(Mutant::NoReaderFence) {
                    fence::full();
                }
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
        let all_at_once = chaos::mutant(Mutant::NestedUnlockEnds);
        self.leave_to(|word| if all_at_once { QUIESCENT } else { word - COUNT });
    }

    /// A QSBR reader holds no reference any more, until it comes online. Owner only.
    pub(crate) fn offline(&self) {
        self.leave_to(|_| QUIESCENT);
    }

    /// Ends a section, or one level of it: `left` says what its word is to be.
    #[inline(always)]
    fn leave_to(&self, left: impl FnOnce(u64) -> u64) {
        fence::light(&self.fence);
        chaos::point(Point::LeaveBeforeStore);
        let left = left(self.word.load(Relaxed));
        // Release: pairs with the Acquire in `is_holdout` [GP-2]; the section's loads happen before
        // whatever the updater does once it has seen this word.
        self.word.store(left, chaos::release_unless(Mutant::RelaxedUnlock));
        if word::nesting(left) != 0 {
            // Still in the outermost section, whose end does what there is to do. No scan passes
            // this reader before that, so no sleeper misses a report, nor has use for the fence.
            return;
        }
        fence::light(&self.fence);
        chaos::point(Point::Left);
        // Relaxed: the light fence above, with the sleeper's heavy fence, makes sure that either
        // this load sees the mark or the sleeper's second look sees the word [GP-6].
        if self.attention.load(Relaxed) != 0 {
            self.leave_slow();
        }
    }

    /// Somebody waits, or the thread is leaving, or fences are instructions here.
    #[cold]
    fn leave_slow(&self) {
        if self.attention.load(Relaxed) & PORTABLE != 0 {
            fence::full(); // the light fence of this process, or of this domain [GP-6]
        }
        self.report_quiescent();
        // Relaxed: only the owner sets these marks.
        #[cfg(not(loom))]
        if self.attention.load(Relaxed) & (OVERDUE | LEAVING) != 0 {
            (crate::HOOKS.gp.section_ended)(self);
        }
    }

    /// Takes the mark of a reader that has retired too much; whether it was there. A QSBR reader
    /// keeps it: it does its part at its quiescent states. Owner only.
    #[cfg(not(loom))]
    pub(crate) fn take_overdue(&self) -> bool {
        // Relaxed: only the owner sets the mark.
        let taken = self.attention.load(Relaxed) & OVERDUE != 0 && !self.is_qsbr();
        if taken {
            self.clear_overdue();
        }
        taken
    }

    /// Wakes the sleeping updater if this reader was the last it waited for.
    pub(crate) fn report_quiescent(&self) {
        if chaos::mutant(Mutant::NoWakeUp) {
            return;
        }
        if self.attention.load(Relaxed) & WAITED_FOR != 0 && self.clear_waited_for() {
            self.core().holdout_left();
        }
    }

    /// Announces that a QSBR reader holds no reference, and begins its next section. Owner only.
    /// Returns whether there may be something to do: the number was a new one, or too much waits.
    #[inline(always)]
    pub(crate) fn renew(&self) -> bool {
        // Acquire: pairs with the Release in `set_source`; the word that it leads to has been made,
        // in a chunk that may be younger than any that this thread has seen.
        let source = self.source.load(Acquire);
        // Acquire: pairs with the Release in GracePeriods::announce [GP-3], directly or through the
        // words of those who have handed the number on. SAFETY: `gp.ctr` or a word in the registry,
        // which both live as long as this slot.
        let mut current = unsafe { &*source }.load(Acquire);
        // Relaxed: the owner's own word and mark.
        if current == self.word.load(Relaxed) {
            // No thread has asked since the last time.
            return self.attention.load(Relaxed) & OVERDUE != 0;
        }
        if self.relays.get() {
            match self.relayed(source, current) {
                Some(handed_on) => current = handed_on,
                None => return self.attention.load(Relaxed) & OVERDUE != 0,
            }
        }
        chaos::point(Point::EnterBeforeStore);
        // Release: ends the section before as `leave` does [GP-2]. What the section after loads is
        // ordered by the Acquire above: a grace period waits for words under older numbers only.
        self.word.store(current, Release);
        fence::light(&self.fence);
        chaos::point(Point::Left);
        if self.attention.load(Relaxed) != 0 {
            if self.attention.load(Relaxed) & PORTABLE != 0 {
                fence::full(); // as in `leave_slow` [GP-6]
            }
            self.report_quiescent();
        }
        true
    }

    /// What a predecessor has handed on, if it may be taken: it is a number, and still the
    /// predecessor's.
    ///
    /// The links of a grace period are made before its number is announced, so the thread that has
    /// acquired the number sees them: if the source is the same as before, it is the right one
    /// [T-1].
    fn relayed(&self, mut source: *mut AtomicU64, mut current: u64) -> Option<u64> {
        loop {
            if word::nesting(current) != 1 {
                // It is offline, and the updater will pass it over; or it has `ARRIVED`; or its
                // slot is an ordinary reader's by now.
                return None;
            }
            let again = self.source.load(Acquire);
            if again == source || chaos::mutant(Mutant::NoSecondSource) {
                return Some(current);
            }
            source = again;
            // SAFETY: as in `renew`. Acquire: likewise.
            current = unsafe { &*source }.load(Acquire);
        }
    }

    /// A QSBR reader begins to hold references. Owner only, word quiescent.
    pub(crate) fn online(&self, gp: &AtomicU64, location: &'static Location<'static>) {
        let relays = self.relays.get();
        let mut current = gp.load(Acquire); // [GP-3]
        if relays && !chaos::mutant(Mutant::OnlineAsPassed) {
            current = ARRIVED; // [T-1]
        }
        chaos::point(Point::EnterBeforeStore);
        self.began.store(std::ptr::from_ref(location).cast_mut(), Relaxed);
        self.word.store(current, Release); // as in `enter_outermost` [GP-2]
        // A full fence, so that updaters need no membarrier for QSBR readers [GP-8].
        fence::full();
        if relays && !chaos::mutant(Mutant::OnlineForGood) {
            // It holds no reference yet: a quiescent state. A reader that goes offline again and
            // again, and has no other, hands the number on here.
            self.renew();
        }
    }

    /// Where the outermost section began, if it is known.
    pub(crate) fn began(&self) -> Option<&'static Location<'static>> {
        let location = self.began.load(Relaxed);
        // SAFETY: the pointer is null or was made from a `&'static Location` by `enter_outermost`
        // or `online`.
        unsafe { location.as_ref() }
    }

    /// Has the owner do its part at its next quiescent state. Owner only, QSBR.
    #[cfg(not(loom))]
    pub(crate) fn mark_overdue(&self) {
        // Relaxed: only the owner sets the mark and takes it away.
        if self.attention.load(Relaxed) & OVERDUE == 0 {
            self.attention.fetch_or(OVERDUE, Relaxed);
        }
    }

    /// The owner does its part. Owner only.
    #[cfg(not(loom))]
    pub(crate) fn clear_overdue(&self) {
        if self.attention.load(Relaxed) & OVERDUE != 0 {
            self.attention.fetch_and(!OVERDUE, Relaxed);
        }
    }

    // ---- the updater's side -----------------------------------------------------------------

    /// Whether a grace period under `number` must wait for this reader.
    #[inline]
    pub(crate) fn is_holdout(&self, number: grace::Number) -> bool {
        // Acquire: pairs with the Release in `leave` and `renew` [GP-2]; what the reader did in its
        // section happens before the end of the grace period.
        let word = self.word.load(Acquire);
        if chaos::mutant(Mutant::PhaseBit) {
            return word::nesting(word) != 0 && (word::number(word).0 ^ number.0) & 1 != 0;
        }
        word::is_holdout(word, number)
    }

    /// Marks the reader as waited for by a sleeper.
    pub(crate) fn mark_waited_for(&self) {
        // Relaxed: the sleeper's heavy fence follows, before its second look [GP-6].
        self.attention.fetch_or(WAITED_FOR, Relaxed);
    }

    /// Takes the mark away; the thread that gets `true` did it and must report to the sleeper.
    pub(crate) fn clear_waited_for(&self) -> bool {
        // AcqRel: the thread that takes the mark is ordered after the thread that set it, and its
        // report carries what it did before [GP-7].
        self.attention.fetch_and(!WAITED_FOR, AcqRel) & WAITED_FOR != 0
    }

    // ---- registration, under the registry's lock or by the owner ------------------------------

    /// Makes a free slot somebody's. Under the registry's lock.
    pub(crate) fn adopt(
        &self,
        core: *const GpWords,
        index: usize,
        owner: usize,
        reader_kind: ReaderKind,
        relays: bool,
    ) {
        // Once: the owner before, which has unregistered, may still be reporting to its domain.
        if self.core.get().is_null() {
            self.core.set(core);
        }
        self.index.set(index);
        self.owner.set(owner);
        self.note_thread();
        self.reader_kind.set(reader_kind);
        self.relays.set(relays);
        self.station.set(usize::MAX);
        self.set_source(&self.core().gp);
        self.references.set(0);
        self.word.store(QUIESCENT, Relaxed);
        // The mark stays if it is there: the thread that had the slot before may have left its
        // section while a sleeper was marking it, and the sleeper takes back or waits for every
        // mark it made. At worst the new owner reports for the old one. (A liburcu reader bears no
        // such mark.)
        let lost = chaos::mutant(Mutant::ForgottenMark) || reader_kind.is_liburcu();
        let kept = if lost { 0 } else { WAITED_FOR };
        self.attention.fetch_and(kept, Relaxed);
        if fence::chosen() == Fences::Portable || self.core().readers_fence {
            self.attention.fetch_or(PORTABLE, Relaxed);
        }
    }

    /// Forgets a section that cannot end, because its thread is gone (in a child process).
    #[cfg(not(loom))]
    pub(crate) fn forget_section(&self) {
        self.word.store(QUIESCENT, Relaxed);
    }

    fn core(&self) -> &GpWords {
        // SAFETY: set by the first `adopt`, before anybody could hold the slot, to the domain whose
        // registry owns this very memory: while the slot can be reached, the domain lives.
        unsafe { &*self.core.get() }
    }

    pub(crate) fn core_ptr(&self) -> *const GpWords {
        self.core.get()
    }

    pub(crate) fn index(&self) -> usize {
        self.index.get()
    }

    pub(crate) fn set_index(&self, index: usize) {
        self.index.set(index);
    }

    pub(crate) fn owner(&self) -> usize {
        self.owner.get()
    }

    /// The owner's id in the system; 0 where there is none.
    pub(crate) fn thread(&self) -> u32 {
        self.thread.get()
    }

    /// The calling thread is the owner, and has this id now.
    pub(crate) fn note_thread(&self) {
        #[cfg(not(loom))]
        self.thread.set(crate::os::thread::id());
    }

    /// Says which alternate signal stack the owner has. Under the registry's lock.
    #[cfg(not(loom))]
    pub(crate) fn set_alternate(&self, alternate: Alternate) {
        self.alternate.set(alternate);
    }

    /// The alternate signal stack that the owner had when it registered.
    #[cfg(not(loom))]
    pub(crate) fn alternate(&self) -> Alternate {
        self.alternate.get()
    }

    pub(crate) fn is_qsbr(&self) -> bool {
        matches!(self.reader_kind.get(), ReaderKind::Qsbr | ReaderKind::Liburcu(Readers::Qsbr))
    }

    /// Whether its memory is its program's, and its owner no code of ours.
    pub(crate) fn is_liburcu(&self) -> bool {
        self.reader_kind.get().is_liburcu()
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

    pub(crate) fn station(&self) -> usize {
        self.station.get()
    }

    pub(crate) fn set_station(&self, station: usize) {
        self.station.set(station);
    }

    pub(crate) fn source(&self) -> &AtomicU64 {
        // SAFETY: as in `renew`; set by `adopt`. Relaxed: the registry's lock orders it.
        unsafe { &*self.source.load(Relaxed) }
    }

    /// Says what the reader copies at quiescent states: something that lives as long as this slot.
    /// Under the registry's lock.
    pub(crate) fn set_source(&self, source: &AtomicU64) {
        // Release: pairs with the Acquire in `renew`; the reader finds the word made.
        self.source.store(std::ptr::from_ref(source).cast_mut(), Release);
    }

    /// Whether the fast path may use this slot: light fences are free here.
    pub(crate) fn is_fast(&self) -> bool {
        self.attention.load(Relaxed) & PORTABLE == 0
    }

    /// Counts so many more users of this registration. Owner only.
    ///
    /// # Panics
    /// If they are 2^64 or more.
    pub(crate) fn acquire(&self, users: u64) {
        let references = self.references.get().checked_add(users);
        self.references.set(references.expect(
            "quiescence: 2^64 registrations of one thread: `Reader`s are being leaked with mem::forget",
        ));
    }

    /// Counts one user less. Owner only.
    #[cfg(not(loom))]
    pub(crate) fn release(&self) {
        self.references.set(self.references.get() - 1);
    }

    /// How many use this registration. Owner only.
    #[cfg(not(loom))]
    pub(crate) fn references(&self) -> u64 {
        self.references.get()
    }

    /// Whether the owner has come to its end, in a section that a guard keeps open or that a
    /// thread-local's destructor began.
    #[cfg(not(loom))]
    pub(crate) fn is_leaving(&self) -> bool {
        self.attention.load(Relaxed) & LEAVING != 0
    }

    /// Asks the owner's next outermost leave to unregister. Owner only.
    pub(crate) fn mark_leaving(&self) {
        self.attention.fetch_or(LEAVING, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use grace::Number;

    use super::*;

    /// The nesting has half of the word: one section more would change the number in the other
    /// half.
    #[test]
    fn a_section_nested_too_deep_is_refused_before_anything_is_changed() {
        let slot = Slot::new(word::entered(Number(5)) - COUNT + u64::from(u32::MAX) - 1);
        let (gp, location) = (AtomicU64::new(word::entered(Number(7))), Location::caller());
        slot.enter_slow(&gp, location);
        let deepest = slot.word.load(Relaxed);
        assert_eq!((word::nesting(deepest), word::number(deepest)), (u32::MAX, Number(5)));
        let too_deep = || slot.enter_slow(&gp, location);
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(too_deep));
        assert!(refused.unwrap_err().is::<&str>(), "it says what leaks");
        assert_eq!(slot.word.load(Relaxed), deepest);
    }

    /// One comparison covers both: a thread that is not ready sees a slot that is so deep.
    #[test]
    fn no_section_begins_in_the_slot_of_threads_that_are_not_ready() {
        let word = NOT_READY.own_word();
        assert!(!NOT_READY.is_quiescent() && !NOT_READY.enter_nested(word));
        assert_eq!(NOT_READY.own_word(), word);
    }

    /// A mark is for the end of the outermost section, which alone reports.
    #[test]
    fn the_end_of_a_nested_section_leaves_the_marks_alone() {
        let slot = Slot::new(QUIESCENT);
        let (gp, location) = (AtomicU64::new(word::entered(Number(7))), Location::caller());
        slot.enter_slow(&gp, location);
        slot.enter_slow(&gp, location);
        slot.mark_waited_for();
        slot.leave();
        assert_eq!(slot.own_word(), word::entered(Number(7)));
        assert!(slot.clear_waited_for(), "the mark is still there");
        slot.leave();
        assert!(slot.is_quiescent());
    }
}
