//! The driver asleep: marks, second look, futex. The steps `Wait Sleep` of `driver`, which shows
//! the transcription. Mirrors `GracePeriods::sleep` and `take_over`, in `driver.rs` and
//! `handover.rs` of `quiescence/src/gp/grace_periods`.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use grace::{Event, word};

use super::driver::{Step, Until, cut};
use super::reader::WAITED_FOR;
use super::{Asleep, Outcome, Turn, World, members};
use crate::memory::{Location, Lock, Memory};

impl<M: Memory> World<M> {
    pub(super) fn mark_begin(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        if turn.is("mark-after-fence") && *self.todo(me) == 0 {
            *self.todo(me) = u8::MAX; // the fence, all at once, comes first
            self.fence_at_once(me);
            turn.tell(|| "heavy fence, too early".into());
            return Outcome::Moved;
        }
        if let Err(outcome) = self.lock_registry(turn, Event::Woken) {
            return outcome;
        }
        let holdouts = self.registry.holdouts;
        *self.todo(me) = holdouts;
        let count = holdouts.count_ones();
        let add = |old| u64::from((old as u32).wrapping_add(count));
        self.memory.update(me, Location::WAKE, Relaxed, add);
        turn.tell(|| format!("wake += {count}"));
        self.goto_step(turn, Step::Mark)
    }

    pub(super) fn mark(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        if let Some(slot) = members(*self.todo(me)).next() {
            let at = Location::attention(slot);
            self.memory.update(me, at, Relaxed, |marks| marks | WAITED_FOR);
            *self.todo(me) &= !(1 << slot);
            turn.tell(|| format!("marks {at}"));
            return Outcome::Moved;
        }
        self.registry.held_by = None;
        self.memory.unlock(me, Lock::Registry);
        match turn.mutant {
            "no-fence-before-second-look" | "mark-after-fence" => {
                self.goto_step(turn, Step::SecondLookBegin)
            }
            "no-second-look" => self.goto_step(turn, Step::LoadWake),
            _ => {
                let own = turn.is("own-fence-before-sleep") && !self.has_light_reader(turn);
                self.begin_fence(turn, true, !own)
            }
        }
    }

    pub(super) fn second_look_begin(&mut self, turn: &mut Turn<'_>) -> Outcome {
        if let Err(outcome) = self.lock_registry(turn, Event::Woken) {
            return outcome;
        }
        *self.todo(turn.me) = self.registry.holdouts;
        turn.tell(|| "begins its second look".into());
        self.goto_step(turn, Step::SecondLook)
    }

    pub(super) fn second_look(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        let Some(slot) = members(*self.todo(me)).next() else {
            self.registry.held_by = None;
            self.memory.unlock(me, Lock::Registry);
            turn.tell(|| "ends its second look".into());
            return self.goto_step(turn, Step::LoadWake);
        };
        *self.todo(me) &= !(1 << slot);
        let number = cut(turn, self.machine.number());
        let step = if word::is_holdout(self.load_word(turn, slot), number) {
            Step::SecondLook
        } else {
            Step::TakeMark(slot)
        };
        self.goto_step(turn, step)
    }

    pub(super) fn load_wake(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let order = if turn.is("relaxed-wake-load") { Relaxed } else { Acquire };
        let left = self.memory.load(turn.me, Location::WAKE, order, turn.choice);
        turn.tell(|| format!("load wake: {left}"));
        let step = if left == 0 || self.is_superseded(turn.me) {
            Step::Report(Event::Woken)
        } else {
            Step::Sleep(left)
        };
        self.goto_step(turn, step)
    }

    /// Under the machine's lock, the registry's free: ends the term of the driver at work, takes
    /// its marks away and wakes it. The registry's lock is held meanwhile; readers take their marks
    /// away without it.
    pub(super) fn take_over(&mut self, turn: &mut Turn<'_>, until: Until) -> Outcome {
        let me = turn.me;
        turn.tell(|| "takes over".into());
        self.memory.lock(me, Lock::Registry);
        self.begin_term(turn, until, true);
        if !turn.is("marks-outlive-their-driver") {
            let mut withdrawn = 0;
            for slot in members(self.registry.holdouts) {
                let at = Location::attention(slot);
                let before = self.memory.update(me, at, AcqRel, |marks| marks & !WAITED_FOR);
                withdrawn += before & WAITED_FOR;
            }
            if withdrawn != 0 {
                let subtract = |count| u64::from((count as u32).wrapping_sub(withdrawn as u32));
                self.memory.update(me, Location::WAKE, AcqRel, subtract);
            }
            self.wake(Asleep::Wake);
        }
        self.memory.unlock(me, Lock::Registry);
        self.next_action(turn)
    }

    /// `futex_wait`: sleeps unless the value has changed.
    pub(super) fn sleep(&mut self, turn: &mut Turn<'_>, seen: u64) -> Outcome {
        self.memory.system_call(turn.me);
        if self.memory.newest(Location::WAKE) == seen {
            self.threads[turn.me].asleep = Some(Asleep::Wake);
            turn.tell(|| "sleeps until the holdouts have left".into());
        }
        self.goto_step(turn, Step::LoadWake)
    }
}
