//! The reader, step by step. Mirrors `quiescence/src/gp/slot.rs` and
//! `GracePeriods::{register, unregister}`.
//!
//! ```text
//! lock, outermost:   g = gp.ctr (Acquire)                                  [GP-3]
//!                    (may stall here for as long as it likes)
//!                    word = g (Release)                                    [GP-2]
//!                    light fence                                           [GP-1]
//! lock, nested:      word = word + 1 (Release)                             [GP-2]
//! read:              p = ptr (Acquire)                                     [GP-10]
//!                    the object p must be initialised and not freed
//! unlock:            word = word - 1 (Release)                             [GP-2]
//!                    report, if outermost
//! online:            g = gp.ctr (Acquire)                                  [GP-3]
//!                    word = g (Release)                                    [GP-2]
//!                    full fence                                            [GP-8]
//! quiescent state:   g = gp.ctr (Acquire); done if word = g                [GP-3]
//!                    word = g (Release)                                    [GP-2]
//!                    report
//! offline:           word = 0 (Release)                                    [GP-2]
//!                    report
//! report:            light fence                                           [GP-6]
//!                    a = attention (Relaxed); done unless marked
//!                    attention &= !mark (AcqRel); done unless it was marked   [GP-7]
//!                    wake -= 1 (AcqRel); if that made it 0: wake the driver   [GP-7]
//! register:          under the registry's lock: take a free slot, join the readers   [GP-5]
//!                    full fence
//!                    (the mark of a slot outlives its owner: a sleeper may wait for it)
//! unregister:        under the registry's lock: leave the readers, give the slot back [GP-5]
//!                    report, without a fence
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use grace::word;

use super::{Asleep, At, Outcome, Turn, World};
use crate::memory::{Location, Lock, Memory};
use crate::scenario::Op;

/// The mark of a reader that a sleeping driver waits for.
pub(super) const WAITED_FOR: u64 = 1;

/// The steps of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Report {
    Fence,
    Look,
    Take,
    Count,
    Wake,
}

impl<M: Memory> World<M> {
    fn slot(&self, me: usize) -> u8 {
        self.threads[me].slot.expect("readers register first")
    }

    fn store_word(&mut self, turn: &mut Turn<'_>, value: u64, release: bool) {
        let at = Location::word(self.slot(turn.me));
        self.threads[turn.me].word = value;
        self.memory.store(turn.me, at, value, if release { Release } else { Relaxed });
        turn.tell(|| format!("{at} = {value:#x}"));
    }

    fn load_gp_ctr(&mut self, turn: &mut Turn<'_>) -> u64 {
        let order = if turn.is("relaxed-number-load") { Relaxed } else { Acquire };
        let value = if turn.scenario.threads[turn.me].liburcu {
            word::entered(turn.scenario.start().number)
        } else {
            self.memory.load(turn.me, Location::GP_CTR, order, turn.choice)
        };
        turn.tell(|| format!("load gp.ctr: {value:#x}"));
        self.threads[turn.me].loaded = value;
        value
    }

    /// The outermost lock, or a QSBR reader coming online.
    pub(super) fn enter(&mut self, turn: &mut Turn<'_>, at: At) -> Outcome {
        let me = turn.me;
        let online = matches!(self.op(turn.scenario, me), Some(Op::Online));
        let fenced = if online {
            !turn.is("online-without-fence")
        } else {
            turn.scenario.portable && !turn.is("no-light-fence-at-lock")
        };
        match at {
            At::Begin => {
                self.load_gp_ctr(turn);
                self.goto(me, At::Second)
            }
            At::Second => {
                self.store_word(turn, self.threads[me].loaded, !turn.is("relaxed-lock"));
                if fenced { self.goto(me, At::Third) } else { self.finish(me) }
            }
            _ => {
                self.memory.fence(me);
                turn.tell(|| "full fence".into());
                self.finish(me)
            }
        }
    }

    pub(super) fn lock_nested(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let release = !turn.is("relaxed-nested-lock");
        self.store_word(turn, self.threads[turn.me].word + word::COUNT, release);
        self.finish(turn.me)
    }

    pub(super) fn read(&mut self, turn: &mut Turn<'_>, at: At) -> Outcome {
        if at != At::Begin {
            return self.read_object(turn);
        }
        let order = if turn.is("relaxed-pointer-load") { Relaxed } else { Acquire };
        let object = self.memory.load(turn.me, Location::POINTER, order, turn.choice);
        turn.tell(|| format!("load ptr: object {object}"));
        self.threads[turn.me].object = object as u8;
        self.goto(turn.me, At::Second)
    }

    pub(super) fn read_object(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let object = self.threads[turn.me].object;
        turn.tell(|| format!("reads object {object}"));
        if self.freed[usize::from(object)] {
            return Outcome::Violation(format!("object {object} is read after it was freed"));
        }
        if !self.memory.read_object(turn.me, object) {
            return Outcome::Violation(format!("object {object} is read before it is initialised"));
        }
        self.finish(turn.me)
    }

    pub(super) fn unlock(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let word = self.threads[turn.me].word;
        let zeroed = turn.is("nested-unlock-ends");
        let left = if zeroed { word::QUIESCENT } else { word - word::COUNT };
        if word::nesting(left) == 0 {
            return self.leave(turn, word::QUIESCENT | left);
        }
        self.store_word(turn, left, true);
        self.finish(turn.me)
    }

    /// Stores a word under which no thread need wait for the section before, and reports.
    pub(super) fn leave(&mut self, turn: &mut Turn<'_>, left: u64) -> Outcome {
        self.store_word(turn, left, !turn.is("relaxed-unlock"));
        if turn.is("no-wake-up") {
            return self.finish(turn.me);
        }
        let fenced = turn.scenario.portable && !turn.is("no-light-fence-at-unlock");
        let first = if fenced { Report::Fence } else { Report::Look };
        self.goto(turn.me, At::Report(first))
    }

    pub(super) fn quiescent_state(&mut self, turn: &mut Turn<'_>, at: At) -> Outcome {
        if at != At::Begin {
            return self.leave(turn, self.threads[turn.me].loaded);
        }
        let word = self.threads[turn.me].word;
        if self.load_gp_ctr(turn) == word {
            return self.finish(turn.me);
        }
        self.goto(turn.me, At::Second)
    }

    pub(super) fn report(&mut self, turn: &mut Turn<'_>, report: Report) -> Outcome {
        let me = turn.me;
        let attention = Location::attention(self.slot(me));
        let next = match report {
            Report::Fence => {
                self.memory.fence(me);
                turn.tell(|| "full fence".into());
                Some(Report::Look)
            }
            Report::Look => {
                let value = self.memory.load(me, attention, Relaxed, turn.choice);
                turn.tell(|| format!("load {attention}: {value}"));
                (value & WAITED_FOR != 0).then_some(Report::Take)
            }
            Report::Take => {
                let took = self.take_mark(turn, self.slot(me));
                (took || turn.is("mark-counted-twice")).then_some(Report::Count)
            }
            Report::Count => self.count_down(turn).then_some(Report::Wake),
            Report::Wake => {
                self.memory.system_call(me);
                self.wake(Asleep::Wake);
                turn.tell(|| "wakes the driver".into());
                None
            }
        };
        match next {
            Some(report) => self.goto(me, At::Report(report)),
            None => self.finish(me),
        }
    }

    /// Takes the mark off a slot; the thread that finds it there must count for the driver.
    pub(super) fn take_mark(&mut self, turn: &mut Turn<'_>, slot: u8) -> bool {
        let order = if turn.is("relaxed-mark-take") { Relaxed } else { AcqRel };
        let at = Location::attention(slot);
        let before = self.memory.update(turn.me, at, order, |marks| marks & !WAITED_FOR);
        turn.tell(|| format!("takes the mark off {at}, which was {before}"));
        before & WAITED_FOR != 0
    }

    /// One holdout less; `true` if it was the last.
    pub(super) fn count_down(&mut self, turn: &mut Turn<'_>) -> bool {
        let order = if turn.is("relaxed-count") { Relaxed } else { AcqRel };
        let subtract = |count| u64::from((count as u32).wrapping_sub(1));
        let before = self.memory.update(turn.me, Location::WAKE, order, subtract);
        turn.tell(|| format!("wake -= 1, was {before}"));
        before == 1
    }

    pub(super) fn register(&mut self, turn: &mut Turn<'_>, at: At) -> Outcome {
        let me = turn.me;
        if at != At::Begin {
            self.memory.fence(me);
            turn.tell(|| "full fence".into());
            return self.finish(me);
        }
        if self.registry.held_by.is_some() {
            return Outcome::Blocked;
        }
        self.memory.lock(me, Lock::Registry);
        let slot = self.registry.free.pop().unwrap_or_else(|| {
            self.registry.slots += 1;
            self.registry.slots - 1
        });
        self.threads[me].slot = Some(slot);
        self.threads[me].registered = true;
        self.threads[me].word = word::QUIESCENT;
        self.memory.store(me, Location::word(slot), word::QUIESCENT, Relaxed);
        let kept = if turn.is("forgotten-mark") { 0 } else { WAITED_FOR };
        self.memory.update(me, Location::attention(slot), Relaxed, |marks| marks & kept);
        if !turn.is("no-registration") {
            self.registry.readers |= 1 << slot;
        }
        self.memory.unlock(me, Lock::Registry);
        turn.tell(|| format!("registers in slot {slot}"));
        if turn.is("register-without-fence") { self.finish(me) } else { self.goto(me, At::Second) }
    }

    pub(super) fn unregister(&mut self, turn: &mut Turn<'_>) -> Outcome {
        if self.registry.held_by.is_some() {
            return Outcome::Blocked;
        }
        let slot = self.slot(turn.me);
        self.memory.lock(turn.me, Lock::Registry);
        self.registry.readers &= !(1 << slot);
        self.registry.free.push(slot);
        self.threads[turn.me].registered = false;
        self.memory.unlock(turn.me, Lock::Registry);
        turn.tell(|| format!("unregisters from slot {slot}"));
        self.goto(turn.me, At::Report(Report::Look))
    }
}
