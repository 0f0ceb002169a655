//! The driver of the machine, step by step. Mirrors `GracePeriods::drive` and `Locked::step` in
//! `driver.rs` and `steps.rs` of `quiescence/src/gp/grace_periods`. The machine is the real one.
//!
//! ```text
//! Fence:      machine's and registry's lock held: is no other thread registered?         [GP-5]
//!                then Alone; else is some reader not QSBR?
//!             without locks: heavy fence, or if all are QSBR a full fence       [GP-1] [GP-8]
//! Announce:   machine's lock held; gp.ctr = number (Release)                           [GP-3]
//! Scan:       registry's lock: each reader's word (Acquire), the second time
//!             only those of the holdouts                                          [GP-2]
//! Wait Again: until a holdout's word may have changed
//! Wait Tick:  the same; if the grace period has not begun, or a tick is what advance came
//!             with, at once; else advance stops
//! Wait Sleep: registry's lock: wake += number of holdouts (Relaxed);
//!                each holdout: attention |= mark (Relaxed)
//!             heavy fence                                                          [GP-6]
//!             registry's lock: each holdout's word (Acquire); if it has left:
//!                attention &= !mark (AcqRel); if it was marked: wake -= 1 (AcqRel) [GP-7]
//!             until wake (Acquire) = 0: futex_wait(wake)                           [GP-7]
//! Complete:   machine's lock held; completed = sequence (Release), notify          [GP-4]
//! leave:      machine's lock held; no thread drives; notify
//! any lock:   if another driver has taken over: give it back, and wait             [HO-1]
//! ```
//!
//! A look after `Again` that finds the same holdouts is left out: it changes nothing but the count
//! of looks, which only the policy reads, and without bound.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grace::{Action, Cookie, Event, Hint, Number, Sequence, word};

use super::{Asleep, At, Outcome, Turn, World, members};
use crate::memory::{Location, Lock, Memory};
use crate::scenario::{Op, Scenario};

/// How far a driver goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Until {
    Done(Cookie),
    MustWait { tick: bool },
}

/// A step of the driver, named by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    FenceNeeded,
    Fence {
        heavy: bool,
    },
    FenceReaders {
        sleeping: bool,
    },
    FenceEnd {
        sleeping: bool,
    },
    Announce(Number),
    ScanBegin(Number),
    ScanLook(Number),
    LookAgain(Number),
    MarkBegin,
    Mark,
    SecondLookBegin,
    SecondLook,
    TakeMark(u8),
    CountDown,
    LoadWake,
    Sleep(u64),
    Complete(Sequence),
    /// Takes the machine's lock to report.
    Report(Event),
}

/// What a driver keeps in mind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Drive {
    until: Option<Until>,
    /// The number of its term.
    term: u8,
    /// It has taken over, and has not carried out any action yet.
    took_over: bool,
    looked: bool,
    /// Threads or slots still to be dealt with in the loop it is in.
    todo: u8,
}

/// The bits that a mutant leaves of a number.
pub(super) fn number_mask(scenario: &Scenario, mutant: &str) -> Option<u32> {
    match mutant {
        "one-pass-after-a-turn" => Some(u32::MAX >> (32 - scenario.start().number_bits)),
        "phase-bit" => Some(1),
        _ => None,
    }
}

pub(super) fn cut(turn: &Turn<'_>, number: Number) -> Number {
    Number(number.0 & number_mask(turn.scenario, turn.mutant).unwrap_or(u32::MAX))
}

impl<M: Memory> World<M> {
    /// Under the machine's lock, which is held on.
    pub(super) fn begin_to_drive(&mut self, turn: &mut Turn<'_>, until: Until) -> Outcome {
        turn.tell(|| "becomes the driver".into());
        self.begin_term(turn, until, false);
        self.next_action(turn)
    }

    /// Under the machine's lock.
    pub(super) fn begin_term(&mut self, turn: &Turn<'_>, until: Until, took_over: bool) {
        self.driven = true;
        self.term += 1;
        let term = self.term;
        self.threads[turn.me].drive =
            Drive { until: Some(until), term, took_over, ..Drive::default() };
    }

    /// Whether another driver has taken its place. Under the machine's lock or the registry's.
    pub(super) fn is_superseded(&self, me: usize) -> bool {
        self.threads[me].drive.term != self.term
    }

    /// Takes the registry's lock for a step of the driver's. Else what comes of the step: if
    /// another driver has taken its place, it reports this.
    pub(super) fn lock_registry(&mut self, turn: &Turn<'_>, event: Event) -> Result<(), Outcome> {
        if self.registry.held_by.is_some() {
            return Err(Outcome::Blocked);
        }
        self.memory.lock(turn.me, Lock::Registry);
        if self.is_superseded(turn.me) && !turn.is("superseded-driver-marks") {
            self.memory.unlock(turn.me, Lock::Registry);
            return Err(self.goto_step(turn, Step::Report(event)));
        }
        self.registry.held_by = Some(turn.me as u8);
        Ok(())
    }

    /// Asks the machine what to do next; releases its lock unless that is done under it.
    pub(super) fn next_action(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        let drive = self.threads[me].drive;
        self.threads[me].drive.took_over = false;
        let action = self.machine.poll();
        turn.tell(|| format!("{action:?}"));
        let step = match action {
            Action::Idle => return self.leave_driving(turn),
            Action::Fence => Step::FenceNeeded,
            Action::Announce(number) => Step::Announce(cut(turn, number)),
            Action::Scan(number) => Step::ScanBegin(cut(turn, number)),
            Action::Wait(hint) if matches!(drive.until, Some(Until::MustWait { .. })) => {
                if hint == Hint::Tick && drive.until == Some(Until::MustWait { tick: true }) {
                    // The tick that it waits for is this one.
                    self.threads[me].drive.until = Some(Until::MustWait { tick: false });
                } else if hint == Hint::Tick || drive.looked {
                    return self.leave_driving(turn);
                }
                return self.report_event(turn, Event::Woken);
            }
            // The driver before has waited; what for may have come.
            Action::Wait(_) if drive.took_over => return self.report_event(turn, Event::Woken),
            // Before a grace period has begun a tick is all that is waited for.
            Action::Wait(Hint::Tick) if !self.machine.sequence().in_progress() => {
                Step::Report(Event::Woken)
            }
            Action::Wait(Hint::Again | Hint::Tick) => {
                Step::LookAgain(cut(turn, self.machine.number()))
            }
            Action::Wait(Hint::Sleep) => Step::MarkBegin,
            Action::Complete(sequence) => Step::Complete(sequence),
        };
        let locked = matches!(step, Step::FenceNeeded | Step::Announce(_) | Step::Complete(_));
        self.held_by = locked.then_some(me as u8);
        if !locked {
            self.memory.unlock(me, Lock::Machine);
        }
        self.goto(me, At::Drive(step))
    }

    /// Under the machine's lock.
    fn report_event(&mut self, turn: &mut Turn<'_>, event: Event) -> Outcome {
        if let Err(refused) = self.machine.observe(event) {
            return Outcome::Violation(refused.to_string());
        }
        if event == Event::Completed {
            let is_reached = match self.threads[turn.me].drive.until {
                Some(Until::Done(cookie)) => self.machine.sequence().is_done(cookie),
                _ => true,
            };
            if is_reached {
                return self.leave_driving(turn);
            }
        }
        self.next_action(turn)
    }

    /// Under the machine's lock, which is released.
    fn leave_driving(&mut self, turn: &mut Turn<'_>) -> Outcome {
        turn.tell(|| "drives no longer".into());
        self.driven = false;
        if !turn.is("nobody-is-notified") {
            self.wake(Asleep::Turn);
        }
        self.held_by = None;
        self.memory.unlock(turn.me, Lock::Machine);
        self.finish(turn.me)
    }

    pub(super) fn drive(&mut self, turn: &mut Turn<'_>, step: Step) -> Outcome {
        match step {
            Step::FenceNeeded => self.fence_needed(turn),
            Step::Fence { heavy } => self.begin_fence(turn, false, heavy),
            Step::FenceReaders { sleeping } => self.fence_readers(turn, sleeping),
            Step::FenceEnd { sleeping } => self.fence_end(turn, sleeping),
            Step::Announce(number) => self.announce(turn, number),
            Step::ScanBegin(number) => self.scan_begin(turn, number),
            Step::ScanLook(number) => self.scan_look(turn, number),
            Step::LookAgain(number) => self.look_again(turn, number),
            Step::MarkBegin => self.mark_begin(turn),
            Step::Mark => self.mark(turn),
            Step::SecondLookBegin => self.second_look_begin(turn),
            Step::SecondLook => self.second_look(turn),
            Step::TakeMark(slot) => {
                let took = self.take_mark(turn, slot);
                let took = took || turn.is("mark-counted-twice");
                self.goto_step(turn, if took { Step::CountDown } else { Step::SecondLook })
            }
            Step::CountDown => {
                if self.count_down(turn) {
                    self.wake(Asleep::Wake); // a superseded one may sleep there still
                }
                self.goto_step(turn, Step::SecondLook)
            }
            Step::LoadWake => self.load_wake(turn),
            Step::Sleep(seen) => self.sleep(turn, seen),
            Step::Complete(sequence) => self.complete(turn, sequence),
            Step::Report(event) => self.lock_and_report(turn, event),
        }
    }

    pub(super) fn goto_step(&mut self, turn: &Turn<'_>, step: Step) -> Outcome {
        self.goto(turn.me, At::Drive(step))
    }

    pub(super) fn todo(&mut self, me: usize) -> &mut u8 {
        &mut self.threads[me].drive.todo
    }

    fn lock_and_report(&mut self, turn: &mut Turn<'_>, event: Event) -> Outcome {
        if self.held_by.is_some() {
            return Outcome::Blocked;
        }
        self.memory.lock(turn.me, Lock::Machine);
        if self.is_superseded(turn.me) && !turn.is("superseded-driver-reports") {
            turn.tell(|| "is superseded".into());
            self.memory.unlock(turn.me, Lock::Machine);
            self.threads[turn.me].drive = Drive::default();
            return match self.op(turn.scenario, turn.me) {
                Some(Op::Advance | Op::AdvanceAtTick) => self.finish(turn.me),
                _ => self.goto(turn.me, At::Begin),
            };
        }
        turn.tell(|| format!("reports {event:?}"));
        self.report_event(turn, event)
    }

    // ---- Fence --------------------------------------------------------------------------------

    /// Which fence the readers ask for; decided while both locks are held.
    fn fence_needed(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        if self.registry.held_by.is_some() {
            return Outcome::Blocked;
        }
        let own = u32::from(self.threads[me].registered);
        let alone = turn.is("always-alone") || self.registry.readers.count_ones() <= own;
        let heavy = self.has_light_reader(turn);
        if !turn.is("alone-without-lock") {
            self.memory.lock(me, Lock::Registry);
            self.memory.unlock(me, Lock::Registry);
        }
        turn.tell(|| if alone { "is alone".into() } else { "is not alone".into() });
        if alone {
            return self.report_event(turn, Event::Alone);
        }
        self.held_by = None;
        self.memory.unlock(me, Lock::Machine);
        let skip = matches!(
            turn.mutant,
            "no-heavy-fence" | "fence-before-publication" | "announce-before-fence"
        );
        let fence = Step::Fence { heavy: heavy && !turn.is("own-fence-only") };
        self.goto_step(turn, if skip { Step::Report(Event::Fenced) } else { fence })
    }

    pub(super) fn registered_but(&self, me: usize) -> Vec<usize> {
        let is_registered = |thread: &usize| *thread != me && self.threads[*thread].registered;
        (0..self.threads.len()).filter(is_registered).collect()
    }

    /// Whether a reader with light fences is registered, other than the driver's own.
    pub(super) fn has_light_reader(&self, turn: &Turn<'_>) -> bool {
        self.registered_but(turn.me).iter().any(|reader| !turn.scenario.threads[*reader].is_qsbr)
    }

    /// The heavy fence in one step: what a mutant does too early.
    pub(super) fn fence_at_once(&mut self, me: usize) {
        self.memory.heavy_begin(me);
        for reader in self.registered_but(me) {
            self.memory.heavy_arrives(me, reader);
        }
        self.memory.heavy_end(me);
    }

    /// The heavy fence, or what does in its place.
    pub(super) fn begin_fence(
        &mut self,
        turn: &mut Turn<'_>,
        sleeping: bool,
        heavy: bool,
    ) -> Outcome {
        let me = turn.me;
        let heavy = heavy && !turn.scenario.portable;
        let readers = if heavy { self.registered_but(me) } else { Vec::new() };
        *self.todo(me) = readers.iter().fold(0, |set, reader| set | 1 << reader);
        self.memory.heavy_begin(me);
        turn.tell(|| if heavy { "heavy fence begins".into() } else { "full fence".into() });
        if readers.is_empty() {
            return self.goto_step(turn, Step::FenceEnd { sleeping });
        }
        self.goto_step(turn, Step::FenceReaders { sleeping })
    }

    fn fence_readers(&mut self, turn: &mut Turn<'_>, sleeping: bool) -> Outcome {
        let me = turn.me;
        let reader = turn.choice.one_of(*self.todo(me));
        self.memory.heavy_arrives(me, reader);
        turn.tell(|| format!("heavy fence at {}", turn.scenario.threads[reader].name));
        *self.todo(me) &= !(1 << reader);
        if *self.todo(me) == 0 {
            return self.goto_step(turn, Step::FenceEnd { sleeping });
        }
        Outcome::Moved
    }

    fn fence_end(&mut self, turn: &mut Turn<'_>, sleeping: bool) -> Outcome {
        let step = if sleeping {
            Step::SecondLookBegin
        } else if turn.is("announce-before-fence") {
            Step::ScanBegin(self.machine.number())
        } else {
            Step::Report(Event::Fenced)
        };
        if let Step::Report(event) = step {
            if self.held_by.is_some() {
                return Outcome::Blocked;
            }
            self.memory.heavy_end(turn.me);
            return self.lock_and_report(turn, event);
        }
        self.memory.heavy_end(turn.me);
        turn.tell(|| "heavy fence ends".into());
        self.goto_step(turn, step)
    }

    // ---- Announce and Scan --------------------------------------------------------------------

    fn announce(&mut self, turn: &mut Turn<'_>, number: Number) -> Outcome {
        let me = turn.me;
        let order = if turn.is("relaxed-announce") { Relaxed } else { Release };
        self.memory.store(me, Location::GP_CTR, word::entered(number), order);
        turn.tell(|| format!("gp.ctr = {:#x}", word::entered(number)));
        if turn.is("completed-before-scan") {
            let sequence = self.machine.sequence().end();
            self.memory.store(me, Location::COMPLETED, sequence.to_bits(), Release);
        }
        let outcome = self.report_event(turn, Event::Announced);
        if turn.is("announce-before-fence") {
            return self.goto_step(turn, Step::Fence { heavy: true });
        }
        outcome
    }

    fn scan_begin(&mut self, turn: &mut Turn<'_>, number: Number) -> Outcome {
        let me = turn.me;
        if let Err(outcome) = self.lock_registry(turn, Event::Scanned { holdouts: 0 }) {
            return outcome;
        }
        let looks = if self.registry.pass == Some(number) {
            self.registry.holdouts
        } else {
            self.registry.readers
        };
        let first = looks & looks.wrapping_neg();
        *self.todo(me) = match turn.mutant {
            "scan-first-reader-only" => first,
            "no-scan" => 0,
            _ => looks,
        };
        self.registry.holdouts = 0;
        self.registry.pass = Some(number);
        turn.tell(|| format!("scans slots {looks:#b}"));
        if *self.todo(me) == 0 {
            return self.scan_end(turn);
        }
        self.goto_step(turn, Step::ScanLook(number))
    }

    pub(super) fn load_word(&mut self, turn: &mut Turn<'_>, slot: u8) -> u64 {
        let order = if turn.is("relaxed-scan") { Relaxed } else { Acquire };
        let value = self.memory.load(turn.me, Location::word(slot), order, turn.choice);
        turn.tell(|| format!("load {}: {value:#x}", Location::word(slot)));
        value
    }

    fn scan_look(&mut self, turn: &mut Turn<'_>, number: Number) -> Outcome {
        let slot = members(*self.todo(turn.me)).next().expect("else the scan had ended");
        if word::is_holdout(self.load_word(turn, slot), number) {
            self.registry.holdouts |= 1 << slot;
        }
        *self.todo(turn.me) &= !(1 << slot);
        if *self.todo(turn.me) == 0 { self.scan_end(turn) } else { Outcome::Moved }
    }

    fn scan_end(&mut self, turn: &mut Turn<'_>) -> Outcome {
        self.registry.held_by = None;
        self.memory.unlock(turn.me, Lock::Registry);
        self.threads[turn.me].drive.looked = true;
        let holdouts = self.registry.holdouts.count_ones() as usize;
        self.goto_step(turn, Step::Report(Event::Scanned { holdouts }))
    }

    fn look_again(&mut self, turn: &mut Turn<'_>, number: Number) -> Outcome {
        let me = turn.me;
        let left = |value| !word::is_holdout(value, number);
        let leavers: Vec<Location> = members(self.registry.holdouts)
            .map(Location::word)
            .filter(|at| self.memory.may_load(me, *at, left))
            .collect();
        if self.held_by.is_some() || leavers.is_empty() {
            return Outcome::Blocked;
        }
        let leaver = leavers[turn.choice.choose(leavers.len())];
        self.memory.skip_to(me, leaver, left);
        self.lock_and_report(turn, Event::Woken)
    }

    // ---- Complete -----------------------------------------------------------------------------

    fn complete(&mut self, turn: &mut Turn<'_>, sequence: Sequence) -> Outcome {
        let order = if turn.is("relaxed-complete") { Relaxed } else { Release };
        self.memory.store(turn.me, Location::COMPLETED, sequence.to_bits(), order);
        turn.tell(|| format!("completed = {:#x}", sequence.to_bits()));
        if !turn.is("nobody-is-notified") {
            self.wake(Asleep::Turn);
        }
        self.report_event(turn, Event::Completed)
    }
}
