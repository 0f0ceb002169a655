//! The reporter: one thread per process, started by the first stall, that makes the reports and
//! calls the hook.
//!
//! The thread that notices a stall (a driver, a thread that waits for one, the worker) leaves a
//! [`Note`] and continues. So a hook that panics, blocks or itself waits for grace periods holds up
//! only the reporter. At most [`NOTES_MAX`] notes wait. Notes for which there is no room, or no
//! reporter, are counted as lost, and the next report says how many.
//!
//! The reporter locks the registry only while it looks for holdouts. Asking the system and the
//! holdouts takes time, so it checks afterwards whether each holdout is still in the same section.

use std::panic::Location;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::word;

use super::report::{Holdout, OldestGuard, StallReport};
use super::{hook, places};
use crate::event::statistics::Statistics;
use crate::event::trace;
use crate::gp::grace_periods::Counted;
use crate::gp::slot::Slot;
use crate::gp::stall::{Note, Unfinished};
use crate::gp::wake::LEAVING;
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::modules::StackFrame;
use crate::os::stack::{self, Alternate, StackMissing};
use crate::os::sync::{self, Condvar, Rank, const_unless_loom};
use crate::os::thread_state::{self, ThreadState};
use crate::os::{clock, exit::OwnThread, user_code};
use crate::reclaim::domain_state::{self, DomainState};

/// The name of the reporter's thread.
const NAME: &str = "quiescence-stall";
/// The largest number of notes that wait.
const NOTES_MAX: usize = 64;
/// The largest number of holdouts that a report names.
const HOLDOUTS_MAX: usize = 64;
/// The largest number of stacks in a report: each takes a signal, and up to 100 ms if the thread
/// does not answer.
const STACKS_MAX: usize = 16;

const_unless_loom! {
    static REPORTER: ForkMutex<State> =
        ForkMutex::new(Rank::Reporter, State {
            thread: OwnThread::NONE,
            notes: Vec::new(),
        });
    static NOTED: Condvar = Condvar::new();
}

/// Reports that could not be made.
static LOST: AtomicU64 = AtomicU64::new(0);
/// How often the hook has panicked.
static HOOK_PANICS: AtomicU64 = AtomicU64::new(0);

struct State {
    thread: OwnThread,
    notes: Vec<Note>,
}

/// Leaves a note for the reporter. The caller holds no lock of the library.
pub(crate) fn send(note: Note) {
    let mut state = REPORTER.lock();
    if state.thread.start(NAME, run) && state.notes.len() < NOTES_MAX {
        state.notes.push(note);
        NOTED.notify_one();
    } else {
        LOST.fetch_add(1, Relaxed); // a statistic, as are all Relaxed counts here
    }
}

fn run() {
    if !user_code::is_whole(work) {
        // The thread ends by a bug of the library. Another one takes its place, at once if notes
        // wait.
        let mut state = REPORTER.lock();
        if !state.thread.note_end() && !state.notes.is_empty() {
            state.thread.start(NAME, run);
        }
    }
}

fn work() {
    loop {
        let mut state = REPORTER.lock();
        let note = loop {
            if state.thread.is_to_end {
                _ = state.thread.note_end();
                return;
            }
            if !state.notes.is_empty() {
                break state.notes.remove(0);
            }
            state = sync::wait(&NOTED, state);
        };
        drop(state);
        // Whatever goes wrong: the next report is to be made.
        let told = user_code::is_whole(|| {
            if let Some(report) = report(&note, stack_of) {
                let holdouts = (report.holdouts.len() + report.holdouts_unnamed) as u64;
                trace::stall_reported(note.identity, note.grace_period, note.age_ns, holdouts);
                hook::call(&report);
            }
        });
        if !told {
            HOOK_PANICS.fetch_add(1, Relaxed);
        }
    }
}

/// A thread's id, if it has one.
fn id(thread: u32) -> Option<u32> {
    (thread != 0).then_some(thread)
}

/// The stack of a holdout, with its places.
fn stack_of(holding: &Holding) -> Result<Vec<StackFrame>, StackMissing> {
    stack::take(holding.thread, holding.alternate).map(|pointers| places::of(&pointers))
}

/// Makes the report, unless the grace period has ended, perhaps while stacks were taken.
fn report(
    note: &Note,
    stack_of: impl Fn(&Holding) -> Result<Vec<StackFrame>, StackMissing>,
) -> Option<StallReport> {
    let domain = domain_state::find(note.core, note.identity)?;
    let core: &DomainState = &domain;
    let is_over = || core.grace_periods.sequence().ended() >= note.grace_period;
    let (found, unnamed) = find(core);
    if is_over() {
        return None;
    }
    let unfinished =
        core.grace_periods.counted().and_then(|counted| counted.unfinished(&core.grace_periods));
    let mut holdouts: Vec<Holdout> = Vec::with_capacity(found.len());
    for (index, holding) in found.iter().enumerate() {
        // Before the signal, which would wake the thread.
        let seen = thread_state::look_at(holding.thread);
        let stack = match index {
            _ if holding.leaving => Err(StackMissing::ThreadEnded),
            STACKS_MAX.. => Err(StackMissing::EnoughTaken),
            _ if !may_be_asked(core, seen.state) => Err(StackMissing::Asleep),
            _ => stack_of(holding),
        };
        let is_still_so = holding.is_still_so(core);
        holdouts.push(Holdout {
            thread_id: id(holding.thread),
            thread_name: seen.name,
            state: seen.state,
            sleeps_in: seen.sleeps_in,
            began: holding.began,
            is_qsbr: holding.qsbr,
            stack: if is_still_so { stack } else { Err(StackMissing::SectionEnded) },
        });
    }
    let Unfinished { sections, slots } = unfinished.unwrap_or_default();
    // Stacks may take seconds.
    if is_over() {
        return None;
    }
    Some(StallReport {
        domain: core.grace_periods.observers.label().into_owned(),
        grace_period: note.grace_period,
        age: Duration::from_nanos(note.age_ns),
        is_expedited: note.expedited,
        statistics: Statistics::of(core),
        holdouts,
        holdouts_unnamed: unnamed,
        sections,
        slots,
        oldest_guard: core.grace_periods.counted().and_then(Counted::oldest_guard).map(
            |(live, listed)| OldestGuard {
                location: live.location,
                thread_id: id(live.thread),
                age: Duration::from_nanos(clock::monotonic_ns().saturating_sub(live.since_ns)),
                listed,
            },
        ),
        reports_lost: LOST.load(Relaxed),
        hook_panics: HOOK_PANICS.load(Relaxed),
    })
    // The handle to the domain is dropped here, before the hook, which may never return.
}

/// Whether a thread in this state may be sent the signal. A program that was compiled against
/// liburcu does not expect one: a system call that it sleeps in and that Linux never restarts
/// (`poll`, `sem_timedwait`) would fail with `EINTR`, and `pause` would return. This may still
/// happen to a thread that falls asleep after its state was read.
fn may_be_asked(core: &DomainState, state: ThreadState) -> bool {
    let is_liburcu = core.grace_periods.gp_words.links().is_some(); //~ signal-to-sleepers
    !is_liburcu || state == ThreadState::Running
}

/// A reader as it was found.
#[derive(Clone, Copy)]
struct Holding {
    slot: *const Slot,
    thread: u32,
    alternate: Alternate,
    number: grace::Number,
    began: Option<&'static Location<'static>>,
    qsbr: bool,
    /// The thread is exiting, so its id may belong to another thread by now.
    leaving: bool,
}

/// Up to [`HOLDOUTS_MAX`] holdouts, and how many more there are.
fn find(core: &DomainState) -> (Vec<Holding>, usize) {
    // Before the lock, for which a thread may wait whose handler has interrupted the allocator: see
    // `LiburcuDomain::make_room`.
    let mut found = Vec::with_capacity(HOLDOUTS_MAX);
    let mut unnamed = 0;
    let registry = core.grace_periods.registry();
    for slot in registry.holding_up(core.grace_periods.announced()) {
        // Relaxed: it is only reported.
        let word = slot.word().load(Relaxed);
        if word::nesting(word) == 0 {
            continue; // it has just left
        } else if found.len() == HOLDOUTS_MAX {
            unnamed += 1;
            continue;
        }
        found.push(Holding {
            slot,
            thread: slot.notes.thread.get(),
            alternate: slot.notes.alternate.get(),
            number: word::number(word),
            began: slot.notes.began(),
            qsbr: slot.is_qsbr(),
            leaving: slot.marks.has(LEAVING),
        });
    }
    (found, unnamed)
}

impl Holding {
    /// Whether the same thread is in the same section.
    fn is_still_so(&self, core: &DomainState) -> bool {
        // Under the lock a slot does not change hands, and is not unregistered. Once a program's
        // record is unregistered its memory may be gone. So the pointer is looked up in the
        // registry again before it is dereferenced.
        let registry = core.grace_periods.registry();
        let reader = registry.readers().find(|reader| std::ptr::eq(*reader, self.slot));
        let Some(slot) = reader else { return false };
        // Relaxed: as in `find`. A section that begins later is under a later number.
        let word = slot.word().load(Relaxed);
        slot.notes.thread.get() == self.thread
            && word::nesting(word) != 0
            && word::number(word) == self.number
    }
}

impl AtFork for State {
    /// There is no reporter. The next note starts one.
    fn in_child(&mut self) {
        self.thread = OwnThread::NONE;
        self.notes.clear();
        stack::after_fork();
        places::after_fork();
    }

    /// The thread ends, even if notes wait.
    fn end(&mut self) -> bool {
        NOTED.notify_one();
        self.thread.ask_to_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::engine::{Engine, Settings};
    use crate::gp::grace_periods::Me;
    use crate::gp::slot::ReaderKind;
    use crate::os::thread;
    use grace::policy::Budget;
    use grace::{Start, Urgency};

    /// Taking a holdout's stack takes time, in which the grace period may end.
    #[test]
    fn a_grace_period_that_ends_while_stacks_are_taken_is_not_reported() {
        let domain = crate::Domain::new();
        let core = domain.core();
        let reader = std::cell::RefCell::new(domain.qsbr());
        let cookie = domain.start_poll();
        let note = Note {
            core: &raw const core.grace_periods.gp_words,
            identity: core.grace_periods.observers.identity(),
            grace_period: 1,
            age_ns: 1,
            expedited: false,
        };
        let none = |_: &Holding| Err(StackMissing::EnoughTaken);
        let report_of = |stack_of: &dyn Fn(&Holding) -> _| report(&note, stack_of);
        let holdouts = |report: StallReport| report.holdouts.len();
        assert_eq!(report_of(&none).map(holdouts), Some(1));
        let ends = |holding: &Holding| {
            reader.borrow_mut().quiescent_state();
            while !domain.poll(cookie) {}
            none(holding)
        };
        assert!(report_of(&ends).is_none(), "it has ended");
        assert!(report_of(&none).is_none());
    }

    /// A stack is reported only if the section is still the same one when it has been taken.
    #[test]
    fn a_section_that_has_ended_is_not_taken_for_the_next_one() {
        let core = DomainState::new(Start::ZERO, Settings::of(Engine::Poll, Budget::DEFAULT));
        let location = Location::caller();
        let slot = core.grace_periods.register(1, ReaderKind::Ordinary);
        slot.enter_outermost(&core.grace_periods.gp_words.gp, location);
        core.grace_periods.lock().request(Urgency::Normal);
        core.grace_periods.advance(Me::NOBODY);
        let (found, unnamed) = find(&core);
        let [holding] = &found[..] else { panic!("{}", found.len()) };
        assert_eq!((holding.thread, unnamed), (thread::id(), 0));
        assert_eq!(holding.began, Some(location));
        assert!(holding.is_still_so(&core));
        slot.enter_slow(&core.grace_periods.gp_words.gp, location);
        assert!(holding.is_still_so(&core), "nested in the same one");
        slot.leave();
        slot.leave();
        assert!(!holding.is_still_so(&core), "it has ended");
        slot.enter_outermost(&core.grace_periods.gp_words.gp, location);
        assert!(!holding.is_still_so(&core), "this one began after the grace period");
        assert!(find(&core).0.is_empty());
        slot.leave();
        core.grace_periods.unregister(slot);
        let stranger = Holding { thread: thread::id() + 1, ..found[0] };
        let slot = core.grace_periods.register(1, ReaderKind::Ordinary);
        slot.enter_outermost(&core.grace_periods.gp_words.gp, location);
        assert!(!stranger.is_still_so(&core));
        slot.leave();
    }

    /// The memory of a program's record is the program's again once the record is unregistered.
    #[test]
    fn a_record_that_is_unregistered_is_not_looked_at() {
        let core = DomainState::new(Start::ZERO, Settings::of(Engine::Poll, Budget::DEFAULT));
        let record = Box::into_raw(Box::new(Slot::new(grace::word::QUIESCENT)));
        let reader_kind = ReaderKind::Liburcu(crate::call_rcu::liburcu_readers::Readers::Light);
        // SAFETY: from a box that is freed below, after it was unregistered.
        unsafe { core.grace_periods.register_at(record, 1, reader_kind) };
        // SAFETY: as above.
        let slot = unsafe { &*record };
        slot.enter_outermost(&core.grace_periods.gp_words.gp, Location::caller());
        core.grace_periods.lock().request(Urgency::Normal);
        core.grace_periods.advance(Me::NOBODY);
        let (found, _) = find(&core);
        let [holding] = &found[..] else { panic!("{}", found.len()) };
        assert!(holding.is_still_so(&core));
        let word = slot.word().load(Relaxed);
        slot.leave();
        core.grace_periods.unregister(slot);
        slot.word().store(word, Relaxed); // whatever the program has there now
        assert!(!holding.is_still_so(&core), "it is no reader any more");
        // SAFETY: from the box, and unregistered.
        drop(unsafe { Box::from_raw(record) });
        assert!(!holding.is_still_so(&core), "and not followed");
    }
}
