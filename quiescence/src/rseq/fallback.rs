//! Fallback sections: reads outside restartable sequences, and how they survive a `fork`.
//!
//! A section lasts a few instructions, but a signal handler that interrupts it may fork. The
//! child's only thread then continues the interrupted section; all other counted sections belong to
//! threads that the child does not have. Nothing shows whether the interrupted section has already
//! incremented `lock` or `unlock`. So the child starts *fresh* counts. The interrupted section
//! finishes on the old ones, which no updater reads any more. The fork handler begins a *stand-in*
//! for it on the fresh ones, which the interrupted section ends when it has finished.
//!
//! ```text
//!   section                                        the child, while the handler forks
//!   nested? if INSIDE is null: INSIDE = SECTION    INSIDE is null: forget all counted sections
//!   fallback = CURRENT; fallback.lock += 1         else: CURRENT = fresh; begin a section there;
//!     ... loads ...                                      INSIDE = that section, the *stand-in*
//!   fallback.unlock += 1
//!   INSIDE: SECTION -> null, or else
//!   stand-in -> SECTION, end it, and once more
//! ```
//!
//! **Invariant [RR-3]: the counts that a child's updaters read contain only its own sections, and
//! each of them until it has finished.** `INSIDE` is not null from before a section increments
//! `lock` until after it has incremented `unlock`, on whichever counts. Each change of `INSIDE` is
//! one instruction, so a fork comes before or after it. A fork that finds it set leaves a stand-in,
//! which the exchange that would clear `INSIDE` finds. A fork that finds it null interrupts no
//! section. While a stand-in is being ended, `INSIDE` is `SECTION`, so a fork at that point starts
//! fresh counts again. Nested sections, in signal handlers, end before the one that they interrupt.

use std::panic::Location;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, compiler_fence};

use grace::Urgency;

use crate::gp::grace_periods::Me;
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::sync::{Rank, const_unless_loom};
use crate::reclaim::domain_state::Named;
use crate::reclaim::sleepable::SleepableDomain;
use crate::reclaim::{domain_state, worker};
use crate::srcu::{Index, Section, SrcuCounts};

/// The counts of readers that cannot use a sequence.
pub(super) struct Fallback {
    domain: SleepableDomain,
    prepared: AtomicBool,
}

/// The counts of a process that no fork in a section has created.
static FIRST: Fallback = Fallback::new();

/// The counts that new sections use, and that updaters read.
static CURRENT: AtomicPtr<Fallback> = AtomicPtr::new((&raw const FIRST).cast_mut());

thread_local! {
    /// Null outside sections; inside one, [`SECTION`] or its stand-in. Signal handlers on this
    /// thread use it, so it is atomic, and has no destructor.
    static INSIDE: AtomicPtr<StandIn> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// This thread is in a section that has no stand-in.
const SECTION: *mut StandIn = ptr::without_provenance_mut(1);

/// Stands for a section that a fork has interrupted. In a box.
type StandIn = Section<&'static SrcuCounts>;

impl Fallback {
    const fn new() -> Self {
        let domain = SleepableDomain::named("restartable reads");
        Self { domain, prepared: AtomicBool::new(false) }
    }

    pub(super) fn current() -> &'static Self {
        // Acquire: pairs with the Release in `Sections::in_child`, for threads that the child
        // starts.
        // SAFETY: a static, or leaked.
        unsafe { &*CURRENT.load(Acquire) }
    }

    /// Registers the domain for `fork`, so that a child does not wait for sections of threads that
    /// it does not have. Takes locks.
    pub(super) fn prepare(&self) {
        AT_FORK.list();
        // No `Once`: a child that is forked meanwhile would wait for it for ever. Each step may be
        // done twice. Acquire and Release: a thread that finds `prepared` set finds all steps done.
        if self.prepared.load(Acquire) {
            return;
        }
        let state = domain_state::known(&self.domain);
        // A preempted reader is not at fault: no stall report after `stall_after_expedited`.
        let mut tuning = state.grace_periods.tuning.get();
        tuning.stall_after_expedited = tuning.stall_after;
        state.grace_periods.tuning.set(tuning);
        worker::retune(&self.domain.handle());
        self.prepared.store(true, Release);
    }

    /// A count under each of the two indexes; zeroes if no thread was ever in a fallback section.
    pub(super) fn srcu_counts(&self, what: impl Fn(&SrcuCounts, Index) -> u64) -> [u64; 2] {
        self.domain
            .srcu_counts_if_any()
            .map_or([0; 2], |srcu_counts| [what(srcu_counts, 0), what(srcu_counts, 1)])
    }

    /// Waits until all sections that have begun have ended.
    pub(super) fn synchronize(&self) {
        self.prepare();
        let domain = domain_state::known(&self.domain);
        // It is refused only in a section of the calling thread, and no thread registers here.
        while !domain.grace_periods.synchronize(Urgency::Expedited, Me::NOBODY) {}
    }

    /// Begins a section.
    #[inline]
    fn enter(&'static self) -> Section<&'static SrcuCounts> {
        Section::begin(self.domain.srcu_counts(), Location::caller())
    }
}

/// A fallback section. The fields are dropped in this order: `unlock` first, then `INSIDE`.
pub(crate) struct FallbackSection {
    _counted: Section<&'static SrcuCounts>,
    _inside: Inside,
}

impl FallbackSection {
    #[inline]
    pub(super) fn begin() -> Self {
        let inside = Inside::begin(); // first [RR-3]
        Self { _counted: Fallback::current().enter(), _inside: inside }
    }
}

/// Marks this thread as being in a section, if the section is the outermost one.
struct Inside {
    outermost: bool,
}

impl Inside {
    #[inline]
    fn begin() -> Self {
        let outermost = INSIDE.with(|inside| {
            // Relaxed, here and below: only this thread and its signal handlers use it. A handler
            // leaves it as it was, so nothing is lost between the load and the store.
            let outermost = inside.load(Relaxed).is_null();
            //~ no-stand-in:
            if outermost {
                inside.store(SECTION, Relaxed);
            }
            outermost
        });
        compiler_fence(SeqCst); // before the section increments `lock` [RR-3]
        Self { outermost }
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(SeqCst); // after the section has incremented `unlock` [RR-3]
        if self.outermost {
            INSIDE.with(|inside| {
                if let Err(found) =
                    inside.compare_exchange(SECTION, ptr::null_mut(), Relaxed, Relaxed)
                {
                    end_stand_in(inside, found);
                }
            });
        }
    }
}

/// Ends a section that a fork has interrupted, with its stand-in.
#[cold]
fn end_stand_in(inside: &AtomicPtr<StandIn>, mut found: *mut StandIn) {
    while !found.is_null() {
        let next = if found == SECTION { ptr::null_mut() } else { SECTION };
        match inside.compare_exchange(found, next, Relaxed, Relaxed) {
            Ok(_) => {
                if found != SECTION {
                    // SAFETY: from `into_raw` in `in_child`, and taken out by this exchange only.
                    drop(unsafe { Box::from_raw(found) });
                    compiler_fence(SeqCst);
                }
                found = next;
            }
            // Another fork. A stand-in that was there is leaked: no updater reads its counts any
            // more.
            Err(now) => found = now,
        }
    }
}

const_unless_loom! {
    /// Lets a fork repair the counts. It guards nothing else.
    static AT_FORK: ForkMutex<Sections> = ForkMutex::new(Rank::FallbackSections, Sections);
}

struct Sections;

impl AtFork for Sections {
    /// All sections belonged to threads that the child does not have, except one that the forking
    /// signal handler has interrupted [RR-3].
    fn in_child(&mut self) {
        INSIDE.with(|inside| {
            if inside.load(Relaxed).is_null() {
                if let Some(srcu_counts) = Fallback::current().domain.srcu_counts_if_any() {
                    srcu_counts.forget_sections();
                }
                return;
            }
            let fresh: &'static Fallback = Box::leak(Box::new(Fallback::new()));
            let stand_in = Box::new(fresh.enter());
            inside.store(Box::into_raw(stand_in), Relaxed);
            // Release: pairs with the Acquire in `current`.
            CURRENT.swap(ptr::from_ref(fresh).cast_mut(), AcqRel);
        });
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;
    use crate::common::threads::*;
    use crate::rseq::grace_period;

    /// Forks. The child runs `f`, which continues what the fork interrupted, within 20 s.
    fn in_child(f: impl FnOnce()) {
        Fallback::current().prepare(); // as the creation of a `Snapshot` does
        crate::common::processes::in_child(|| {
            // SAFETY: kills this process if it has not ended by then.
            unsafe { libc::alarm(20) };
            f();
        });
    }

    fn sections() -> u64 {
        Fallback::current().domain.srcu_counts_if_any().map_or(0, SrcuCounts::sections)
    }

    /// By the counts that updaters read, no thread is in a section; and later sections are counted.
    fn is_at_rest() {
        grace_period();
        assert_eq!(sections(), 0);
        let section = FallbackSection::begin();
        assert_eq!(sections(), 1);
        drop(section);
        grace_period();
        assert!(INSIDE.with(|inside| inside.load(Relaxed).is_null()));
    }

    /// Between any two steps of a section, and during a section of a thread that the child does not
    /// have.
    #[test]
    fn a_fork_between_any_two_steps_of_a_section() {
        while_held(FallbackSection::begin, |_| {
            in_child(is_at_rest);
            let marked = Inside::begin();
            in_child(|| {
                // It has not loaded `CURRENT` yet.
                drop(Fallback::current().enter());
                drop(marked);
                is_at_rest();
            });
            let (marked, before) = (Inside::begin(), Fallback::current());
            in_child(|| {
                // It has, and increments the old counts.
                drop(before.enter());
                drop(marked);
                is_at_rest();
            });
            let section = FallbackSection::begin();
            in_child(|| {
                assert_eq!(sections(), 1, "the one that goes on is waited for");
                drop(section);
                is_at_rest();
            });
            let FallbackSection { _counted: counted, _inside: marked } = FallbackSection::begin();
            drop(counted);
            in_child(|| {
                drop(marked);
                is_at_rest();
            });
        });
    }

    /// The section lasts until the updater sleeps, so the two always overlap.
    #[test]
    fn a_section_that_lasts_is_waited_for() {
        let sleeps =
            || Fallback::current().domain.state().grace_periods.counters().sleeps.load(Relaxed);
        let (section, before) = (FallbackSection::begin(), sleeps());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                grace_period();
                is_over.store(true, Release);
            });
            until(|| sleeps() != before || is_over.load(Acquire));
            let too_early = is_over.load(Acquire);
            drop(section);
            assert!(!too_early, "the section had begun before");
        });
    }

    /// In the child of a child, and in a section of a handler that has interrupted another one.
    #[test]
    fn a_fork_in_a_child_or_in_a_nested_section() {
        let section = FallbackSection::begin();
        in_child(|| {
            in_child(|| {
                let nested = FallbackSection::begin();
                drop((nested, section));
                is_at_rest();
            });
            is_at_rest();
        });
        let (outer, nested) = (FallbackSection::begin(), FallbackSection::begin());
        in_child(|| {
            drop(nested);
            assert_eq!(sections(), 1, "the outer one goes on");
            drop(outer);
            is_at_rest();
        });
        // While the stand-in is being ended.
        let FallbackSection { _counted: counted, _inside: marked } = FallbackSection::begin();
        in_child(|| {
            drop(counted);
            let stand_in = INSIDE.with(|inside| inside.swap(SECTION, Relaxed));
            in_child(|| {
                // SAFETY: from the fork, and taken out above.
                drop(unsafe { Box::from_raw(stand_in) });
                drop(marked);
                is_at_rest();
            });
        });
    }
}
