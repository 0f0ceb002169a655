//! The driver asleep: marks, second look, futex. The steps `Wait Sleep` of `driver`, which shows
//! the transcription. Mirrors `Core::sleep` in `quiescence/src/core.rs`.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use grace::{Event, word};

use super::driver::{Step, cut};
use super::reader::WAITED_FOR;
use super::{Asleep, Outcome, Turn, World, members};
use crate::memory::{Location, Lock, Memory};
use crate::mutant::Mutant;
use crate::scenario::Flavour;

impl<M: Memory> World<M> {
    pub(super) fn mark_begin(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        if turn.is(Mutant::MarkAfterFence) && *self.todo(me) == 0 {
            *self.todo(me) = u8::MAX; // the fence, all at once, comes first
            self.memory.heavy_begin(me);
            for reader in 0..self.threads.len() {
                if reader != me && self.threads[reader].registered {
                    self.memory.heavy_arrives(me, reader);
                }
            }
            self.memory.heavy_end(me);
            turn.tell(|| "heavy fence, too early".into());
            return Outcome::Moved;
        }
        if self.registry.held_by.is_some() {
            return Outcome::Blocked;
        }
        self.memory.lock(me, Lock::Registry);
        self.registry.held_by = Some(me as u8);
        let holdouts = self.registry.holdouts;
        *self.todo(me) = holdouts;
        self.memory.store(me, Location::Wake, u64::from(holdouts.count_ones()), Relaxed);
        turn.tell(|| format!("wake = {}", holdouts.count_ones()));
        self.goto_step(turn, Step::Mark)
    }

    pub(super) fn mark(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        if let Some(slot) = members(*self.todo(me)).next() {
            let at = Location::Attention(slot);
            let mark = |marks, mark| marks | mark;
            self.memory.update(me, at, Relaxed, mark, WAITED_FOR);
            *self.todo(me) &= !(1 << slot);
            turn.tell(|| format!("marks {at}"));
            return Outcome::Moved;
        }
        self.registry.held_by = None;
        self.memory.unlock(me, Lock::Registry);
        match turn.setup.mutant {
            Some(Mutant::NoFenceBeforeSecondLook | Mutant::MarkAfterFence) => {
                self.goto_step(turn, Step::SecondLookBegin)
            }
            Some(Mutant::NoSecondLook) => self.goto_step(turn, Step::LoadWake),
            _ => {
                let light =
                    |thread: &usize| turn.setup.scenario.threads[*thread].flavour == Flavour::Light;
                let own = turn.is(Mutant::OwnFenceBeforeSleep)
                    && !self.registered_but(me).iter().any(light);
                self.begin_fence(turn, true, !own)
            }
        }
    }

    pub(super) fn second_look_begin(&mut self, turn: &mut Turn<'_>) -> Outcome {
        if self.registry.held_by.is_some() {
            return Outcome::Blocked;
        }
        self.memory.lock(turn.me, Lock::Registry);
        self.registry.held_by = Some(turn.me as u8);
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
        let number = cut(turn.setup, self.machine.number());
        let step = if word::is_holdout(self.load_word(turn, slot), number) {
            Step::SecondLook
        } else {
            Step::TakeMark(slot)
        };
        self.goto_step(turn, step)
    }

    pub(super) fn load_wake(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let order = if turn.is(Mutant::RelaxedWakeLoad) { Relaxed } else { Acquire };
        let left = self.memory.load(turn.me, Location::Wake, order, turn.choice);
        turn.tell(|| format!("load wake: {left}"));
        let step = if left == 0 { Step::Report(Event::Woken) } else { Step::Sleep(left) };
        self.goto_step(turn, step)
    }

    /// `futex_wait`: sleeps unless the value has changed.
    pub(super) fn sleep(&mut self, turn: &mut Turn<'_>, seen: u64) -> Outcome {
        self.memory.system_call(turn.me);
        if self.memory.newest(Location::Wake) == seen {
            self.threads[turn.me].asleep = Some(Asleep::Wake);
            turn.tell(|| "sleeps until the hold-outs have left".into());
        }
        self.goto_step(turn, Step::LoadWake)
    }
}
