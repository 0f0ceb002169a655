//! The watchdog: ends the run in time, and tells when a thread does not get on.
//!
//! A run must end although threads hang, so no thread joins them: the watchdog looks at their
//! counts, and leaves those that are stuck to the end of the process. It measures patience in its
//! own turns and not by the clock: while the whole machine stands still, so does the watchdog. Nor
//! does it count a turn in which the kernel has kept the thread from running ([`Task::is_kept`]),
//! or in which the thread waits for the system to start a process, or to end one (where many
//! threads are, the kernel has been seen to take ten seconds in `wait4` over the entries of a
//! process in `/proc`): the library has no part in either.
//!
//! Nor does it count turns in which a reader of low priority is kept from running, for as long as a
//! thread may have to wait for its sections: see [`LowPriority`].

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::kinds::FaultKind;
use super::ledger::Ledger;
use super::task::Task;

/// Between two looks of the watchdog.
const TURN: Duration = Duration::from_millis(50);

/// Looks without a sign of life after which a thread is stuck.
const PATIENCE_TURNS: u32 = 200;

/// How long a grace period, or any other step of a thread, may take: a thousand times what the
/// longest sections do.
pub(crate) const PATIENCE: Duration = TURN.saturating_mul(PATIENCE_TURNS);

/// Grace periods that a wait takes at most, by the library's promises: the one in progress, and the
/// next. So often a reader must have a CPU to leave a section that is waited for.
const GRACE_PERIODS: u64 = 2;

/// What the reader of low priority is called.
pub(crate) const LOW_PRIORITY: &str = "reader of low priority";

/// A reader of low priority, which loses its CPU in the midst of sections. When it gets one again
/// is the kernel's to say: beside a hundred threads on two CPUs, after three to seven seconds. Its
/// domain's grace periods wait so long, and any other thread may wait for these, since the worker
/// does where a callback retires at the limit.
///
/// So the turns are not counted in which it is kept from running, but only until it has had a CPU
/// as often as a wait needs it. What hangs for another reason, or takes more grace periods, is
/// found.
#[derive(Default)]
struct LowPriority {
    /// Which thread record is its.
    record: usize,
    task: Task,
    is_kept: bool,
    /// Turns in which it has had a CPU.
    turns: u64,
}

impl LowPriority {
    /// This is what it is at now.
    fn note(&mut self, task: Task) {
        self.is_kept = task.is_kept(&self.task);
        self.turns += u64::from(!self.is_kept);
        self.task = task;
    }

    /// Whether a thread that has waited since it had had a CPU in so many turns may be waiting for
    /// it.
    fn may_hold_up(&self, since: u64) -> bool {
        self.is_kept && self.turns - since <= GRACE_PERIODS
    }
}

/// How the watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The threads have ended, or the time is over, as asked for.
    Finished,
    /// Ctrl-C.
    Interrupted,
    /// A fault was found and one was enough.
    Caught,
    /// Some thread does not get on.
    Stuck,
}

/// Watches the threads of some thread records.
pub(crate) struct Watch<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) interrupt: &'a AtomicBool,
    /// Whether the first fault ends it.
    pub(crate) one_fault_is_enough: bool,
    /// What was seen last of each.
    seen: Vec<Seen>,
    low_priority: Option<LowPriority>,
}

/// What was seen of a thread record.
#[derive(Clone, Debug, Default)]
struct Seen {
    beats: u64,
    /// Turns since they changed, as far as they are counted.
    turns: u32,
    /// Turns in which the reader of low priority had had a CPU then.
    low_priority_turns: u64,
    task: Task,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(ledger: &'a Ledger, interrupt: &'a AtomicBool, catch: bool) -> Self {
        let seen = vec![Seen::default(); ledger.records.len()];
        let low_priority = ledger.records.iter().position(|record| record.name == LOW_PRIORITY);
        let low_priority =
            low_priority.map(|record| LowPriority { record, ..LowPriority::default() });
        Self { ledger, interrupt, one_fault_is_enough: catch, seen, low_priority }
    }

    /// Looks at these thread records every turn, until `is_over` says so.
    pub(crate) fn until(
        &mut self,
        records: Range<usize>,
        mut is_over: impl FnMut(&Ledger) -> bool,
    ) -> Ending {
        loop {
            if self.one_fault_is_enough && self.ledger.faults_total() > 0 {
                return Ending::Caught;
            }
            if is_over(self.ledger) {
                return Ending::Finished;
            }
            if self.interrupt.load(Relaxed) {
                return Ending::Interrupted;
            }
            thread::sleep(TURN);
            if self.look(records.clone()) {
                return Ending::Stuck;
            }
        }
    }

    /// The same, until their threads have ended.
    pub(crate) fn until_ended(&mut self, records: Range<usize>) -> Ending {
        self.until(records.clone(), |ledger| have_ended(ledger, records.clone()))
    }

    /// Looks at the thread records once. Whether one of them has been still for too long; all such
    /// are reported.
    fn look(&mut self, records: Range<usize>) -> bool {
        let mut stuck = Vec::new();
        if let Some(reader) = &mut self.low_priority {
            reader.note(self.ledger.records[reader.record].task());
        }
        let low_priority_turns = self.low_priority.as_ref().map_or(0, |reader| reader.turns);
        for index in records {
            let record = &self.ledger.records[index];
            let seen = &mut self.seen[index];
            if record.has_ended() || record.is_with_the_system() || record.beats() != seen.beats {
                *seen = Seen { beats: record.beats(), low_priority_turns, ..Seen::default() };
                continue;
            }
            let task = record.task();
            let reader = self.low_priority.as_ref();
            let is_held_up = reader.is_some_and(|one| one.may_hold_up(seen.low_priority_turns));
            seen.turns += u32::from(!is_held_up && !task.is_kept(&seen.task));
            seen.task = task;
            if seen.turns >= PATIENCE_TURNS {
                stuck.push(format!("{}: {}{}", record.name, record.doing(), seen.task));
            }
        }
        for _ in &stuck {
            self.ledger.fault(FaultKind::Stuck, "", None, None, || {
                let seconds = PATIENCE.as_secs();
                format!("no progress for {seconds} s: {}", stuck.join("; "))
            });
        }
        !stuck.is_empty()
    }
}

/// Whether all of these thread records' threads have ended.
fn have_ended(ledger: &Ledger, records: Range<usize>) -> bool {
    ledger.records[records].iter().all(|record| record.has_ended())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Operation, Step, Way};
    use crate::ledger::ThreadRecord;

    #[test]
    fn a_thread_without_a_sign_of_life_is_reported_with_its_step() {
        let ledger =
            Ledger::new(vec![ThreadRecord::new("a".to_owned()), ThreadRecord::new("b".to_owned())]);
        let interrupt = AtomicBool::new(false);
        let mut watch = Watch::new(&ledger, &interrupt, false);
        for _ in 0..2 * PATIENCE_TURNS {
            ledger.records.iter().for_each(|record| record.begin(Step::Read));
            assert!(!watch.look(0..2));
        }
        ledger.records[1].begin(Step::Update(Way::Barrier));
        for _ in 0..PATIENCE_TURNS {
            ledger.records[0].begin(Step::Read);
            assert!(!watch.look(0..2));
        }
        ledger.records[0].begin(Step::Read);
        assert!(watch.look(0..2));
        let fault = ledger.first.get().expect("it is stuck");
        assert_eq!(ledger.faults(FaultKind::Stuck), 1);
        assert!(fault.detail.ends_with("b: updating by call and barrier"), "{}", fault.detail);
    }

    #[test]
    fn a_thread_that_waits_for_a_process_to_start_or_to_end_is_not_stuck() {
        let ledger = Ledger::new(vec![ThreadRecord::new("a".to_owned())]);
        let interrupt = AtomicBool::new(false);
        let mut watch = Watch::new(&ledger, &interrupt, false);
        for operation in [Operation::ChildStart, Operation::Child] {
            ledger.records[0].begin(Step::Defer(operation));
            assert!((0..2 * PATIENCE_TURNS).all(|_| !watch.look(0..1)));
        }
        ledger.records[0].begin(Step::Defer(Operation::Fork));
        assert_eq!((0..=PATIENCE_TURNS).filter(|_| watch.look(0..1)).count(), 1);
    }

    #[test]
    fn a_thread_that_has_ended_is_not_stuck() {
        let ledger = Ledger::new(vec![ThreadRecord::new("a".to_owned())]);
        ledger.records[0].end();
        let interrupt = AtomicBool::new(false);
        let mut watch = Watch::new(&ledger, &interrupt, false);
        assert!((0..2 * PATIENCE_TURNS).all(|_| !watch.look(0..1)));
        assert!(have_ended(&ledger, 0..1));
    }

    /// For as many grace periods as a wait takes, and no longer.
    #[test]
    fn a_reader_without_a_cpu_is_waited_for_until_it_has_had_one_twice() {
        let mut reader = LowPriority::default();
        let running = |ran_ns| Task::at('R', ran_ns);
        reader.note(running(1));
        let since = reader.turns;
        for ran_ns in 1..=3 {
            reader.note(running(ran_ns));
            assert_eq!(reader.may_hold_up(since), ran_ns == 1, "it is kept since the turn before");
            for _ in 0..2 * PATIENCE_TURNS {
                reader.note(running(ran_ns));
                assert!(reader.may_hold_up(since));
            }
        }
        reader.note(running(4));
        reader.note(running(4));
        assert!(!reader.may_hold_up(since), "it has left what was waited for");
        assert!(reader.may_hold_up(reader.turns), "another thread has begun to wait");
        reader.note(Task::at('S', 4));
        assert!(!reader.may_hold_up(reader.turns), "it sleeps");
    }
}
