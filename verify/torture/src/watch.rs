//! The watchdog: ends the run in time, and tells when a thread does not get on.
//!
//! A run must end although threads hang, so no thread joins them: the watchdog looks at their
//! counts, and leaves those that are stuck to the end of the process. It measures patience in its
//! own turns and not by the clock: while the whole machine stands still, so does the watchdog. Nor
//! does it count a turn in which the kernel has kept the thread from running ([`Task::is_kept`]),
//! or in which the thread waits for the system to start a process, or to end one (where many
//! threads are, the kernel has been seen to take ten seconds in `wait4` over the entries of a
//! process in `/proc`): the library has no part in either.

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
}

/// What was seen of a thread record.
#[derive(Clone, Debug, Default)]
struct Seen {
    beats: u64,
    /// Turns since they changed, as far as they are counted.
    turns: u32,
    task: Task,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(ledger: &'a Ledger, interrupt: &'a AtomicBool, catch: bool) -> Self {
        let seen = vec![Seen::default(); ledger.records.len()];
        Self { ledger, interrupt, one_fault_is_enough: catch, seen }
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
        for index in records {
            let record = &self.ledger.records[index];
            let seen = &mut self.seen[index];
            if record.has_ended() || record.is_with_the_system() || record.beats() != seen.beats {
                *seen = Seen { beats: record.beats(), ..Seen::default() };
                continue;
            }
            let task = record.task();
            seen.turns += u32::from(!task.is_kept(&seen.task));
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
}
