//! Fallback sections: reads that are no restartable sequence, and what a `fork` makes of them.
//!
//! A section takes a few instructions, but a signal handler that interrupts it may fork. The child
//! then continues with that section; all others that were counted belong to threads that it does
//! not have. How far the interrupted section has come, in counting itself in or out, cannot be seen
//! from outside. So the child begins with *fresh* counts. The interrupted section finishes on the
//! old ones, which no updater looks at any more; on the fresh ones a section is begun in its stead,
//! which it ends when it has finished.
//!
//! ```text
//!   section                                        the child, while the handler forks
//!   nested? if INSIDE is null: INSIDE = SECTION    INSIDE is null: all that are counted have ended
//!   fallback = CURRENT; fallback.lock += 1         else: CURRENT = a fresh one; begin a section there;
//!     ... loads ...                                      INSIDE = that section, the *stand-in*
//!   fallback.unlock += 1
//!   INSIDE: SECTION -> null, or else
//!   stand-in -> SECTION, end it, and once more
//! ```
//!
//! **Invariant [RR-3]: of a child's counts, those that its updaters look at have its own sections
//! only, and each until it has finished.** `INSIDE` is not null from before a section counts itself
//! in until after it has counted itself out, on whatever counts. Each change of it is one
//! instruction, so a fork comes before or after it: a fork that finds it set leaves a stand-in,
//! which is found by the exchange that is to clear it; a fork that finds it null interrupts no
//! section. While a stand-in is being ended `INSIDE` is `SECTION`, so that a fork there begins with
//! fresh counts again. Nested sections, of handlers, are over before the one that they interrupt.

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

/// The counts of those who cannot read in a sequence.
pub(super) struct Fallback {
    domain: SleepableDomain,
    prepared: AtomicBool,
}

/// Those of a process that was not made by a fork in a section.
static FIRST: Fallback = Fallback::new();

/// Those that sections are counted in from now on, and that updaters look at.
static CURRENT: AtomicPtr<Fallback> = AtomicPtr::new((&raw const FIRST).cast_mut());

thread_local! {
    /// Null outside of sections; in one [`SECTION`], or its stand-in. Signal handlers on this
    /// thread use it, so it is atomic, and has no destructor.
    static INSIDE: AtomicPtr<StandIn> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// This thread is in a section that has no stand-in.
const SECTION: *mut StandIn = ptr::without_provenance_mut(1);

/// What stands for a section that a fork has interrupted. In a box.
type StandIn = Section<'static>;

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

    /// Has a `fork` know of the domain, so that a child does not wait for sections of threads that
    /// it does not have. Takes locks.
    pub(super) fn prepare(&self) {
        AT_FORK.list();
        // No `Once`: a child that was forked meanwhile would wait for ever. Each step may be done
        // twice. Acquire and Release: the thread that finds it done finds all of it done.
        if self.prepared.load(Acquire) {
            return;
        }
        let state = domain_state::known(&self.domain);
        // A reader that is preempted there is not at fault: no report after milliseconds.
        let mut tuning = state.grace_periods.tuning.get();
        tuning.stall_after_expedited = tuning.stall_after;
        state.grace_periods.tuning.set(tuning);
        worker::retune(&self.domain.handle());
        self.prepared.store(true, Release);
    }

    /// Something of both indexes; zero if no thread has ever been in a fallback section.
    pub(super) fn srcu_counts(&self, what: impl Fn(&SrcuCounts, Index) -> u64) -> [u64; 2] {
        self.domain
            .srcu_counts_if_any()
            .map_or([0; 2], |srcu_counts| [what(srcu_counts, 0), what(srcu_counts, 1)])
    }

    /// Waits until all sections that have begun have ended.
    pub(super) fn synchronize(&self) {
        self.prepare();
        let domain = domain_state::known(&self.domain);
        // No thread is registered here, whose section it would have to be refused for.
        while !domain.grace_periods.synchronize(Urgency::Expedited, Me::NOBODY) {}
    }

    /// Counts a section in.
    #[inline]
    fn enter(&'static self) -> Section<'static> {
        Section::begin(self.domain.srcu_counts(), Location::caller())
    }
}

/// A fallback section. What it counts ends first, then what says that this thread is in one.
pub(crate) struct FallbackSection {
    _counted: Section<'static>,
    _inside: Inside,
}

impl FallbackSection {
    #[inline]
    pub(super) fn begin() -> Self {
        let inside = Inside::begin(); // first [RR-3]
        Self { _counted: Fallback::current().enter(), _inside: inside }
    }
}

/// This thread says that it is in a section; if it is the outermost one.
struct Inside {
    outermost: bool,
}

impl Inside {
    #[inline]
    fn begin() -> Self {
        let outermost = INSIDE.with(|inside| {
            // Relaxed, all of it: for this thread and handlers on it. A handler leaves it as it
            // was, so nothing is lost between the load and the store.
            let outermost = inside.load(Relaxed).is_null();
            //~ no-stand-in:
            if outermost {
                inside.store(SECTION, Relaxed);
            }
            outermost
        });
        compiler_fence(SeqCst); // before the section counts itself in [RR-3]
        Self { outermost }
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(SeqCst); // after it has counted itself out [RR-3]
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

/// A fork has interrupted the section that ends.
#[cold]
fn end_stand_in(inside: &AtomicPtr<StandIn>, mut found: *mut StandIn) {
    while !found.is_null() {
        if found == SECTION {
            match inside.compare_exchange(SECTION, ptr::null_mut(), Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => found = now,
            }
        } else {
            match inside.compare_exchange(found, SECTION, Relaxed, Relaxed) {
                Ok(_) => {
                    // SAFETY: from `into_raw` in `in_child`, and taken out by this exchange only.
                    drop(unsafe { Box::from_raw(found) });
                    compiler_fence(SeqCst);
                    found = SECTION;
                }
                // Another fork: the counts that the first one stood in are looked at by no thread,
                // and it stays there.
                Err(now) => found = now,
            }
        }
    }
}

const_unless_loom! {
    /// Has a fork know of the sections. There is nothing else to lock.
    static AT_FORK: ForkMutex<Sections> = ForkMutex::new(Rank::FallbackSections, Sections);
}

struct Sections;

impl AtFork for Sections {
    /// The thread that was in a section, which takes a few instructions, is another thread and
    /// gone; but for the one that a handler has interrupted which forks [RR-3].
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
    use crate::rseq::grace_period;

    /// Forks; in the child `f` continues where the fork has interrupted it, and ends within 20 s.
    fn in_child(f: impl FnOnce()) {
        Fallback::current().prepare(); // as whatever has such sections does
        crate::common::processes::in_child(|| {
            // SAFETY: kills this process if it has not ended by then.
            unsafe { libc::alarm(20) };
            f();
        });
    }

    fn sections() -> u64 {
        Fallback::current().domain.srcu_counts_if_any().map_or(0, SrcuCounts::sections)
    }

    /// No thread is in a section, by the counts that updaters look at; and later sections are
    /// counted.
    fn is_at_rest() {
        grace_period();
        assert_eq!(sections(), 0);
        let section = FallbackSection::begin();
        assert_eq!(sections(), 1);
        drop(section);
        grace_period();
        assert!(INSIDE.with(|inside| inside.load(Relaxed).is_null()));
    }

    /// Between any two steps of a section, and beside a section of a thread that the child does not
    /// have.
    #[test]
    fn a_fork_between_any_two_steps_of_a_section() {
        let (inside, outside) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _section = FallbackSection::begin();
                inside.wait();
                outside.wait();
            });
            inside.wait();
            in_child(is_at_rest);
            let marked = Inside::begin();
            in_child(|| {
                // It has not loaded where it is to be counted.
                drop(Fallback::current().enter());
                drop(marked);
                is_at_rest();
            });
            let (marked, before) = (Inside::begin(), Fallback::current());
            in_child(|| {
                // It has, and is counted there.
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
            outside.wait();
        });
    }

    /// One that lasts until the updater sleeps beside it: no chance decides whether the two meet.
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
            while sleeps() == before && !is_over.load(Acquire) {
                std::thread::yield_now();
            }
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
