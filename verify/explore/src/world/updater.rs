//! The updater, step by step. Mirrors `GracePeriods::{request, wait, advance, sequence}` in
//! `quiescence/src/gp/grace_periods.rs`.
//!
//! ```text
//! publish:   write the new object
//!            old = swap ptr (AcqRel), or store ptr (Release)               [GP-10]
//! request:   under the machine's lock: cookie = machine.request()          [GP-9]
//! wait:      under the machine's lock: done if the cookie is done;
//!            if no thread drives: become the driver (see `driver`);
//!            else sleep on the condition variable of the lock, and again;
//!            or if no thread holds the registry's lock, take over (see `sleeper`)     [HO-1]
//! advance:   if the machine's lock is free, no thread drives and something is wanted:
//!            become the driver, until something must be waited for; the worker's comes
//!            with a tick
//! poll:      c = completed (Acquire); is the cookie done at c?             [GP-4]
//! free:      no section may read the object now or later, and none may be reading it
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use grace::{Cookie, Sequence, Urgency};

use super::{Asleep, At, Outcome, Turn, World, driver};
use crate::memory::{Location, Lock, Memory};
use crate::scenario::Op;

impl<M: Memory> World<M> {
    pub(super) fn publish(&mut self, turn: &mut Turn<'_>, object: u8) -> Outcome {
        let me = turn.me;
        if turn.is("fence-before-publication") && self.threads[me].at == At::Begin {
            self.fence_at_once(me);
            turn.tell(|| "the heavy fence, too early".into());
            return self.goto(me, At::Second);
        }
        self.memory.initialise(me, object);
        let swap = matches!(self.op(turn.scenario, me), Some(Op::Swap(_)));
        let relaxed = turn.is("relaxed-publication");
        let old = if swap {
            let order = if relaxed { Acquire } else { AcqRel };
            self.memory.update(me, Location::POINTER, order, |_| u64::from(object))
        } else {
            let old = self.threads[me].published;
            let order = if relaxed { Relaxed } else { Release };
            self.memory.store(me, Location::POINTER, u64::from(object), order);
            u64::from(old)
        };
        self.threads[me].old = old as u8;
        self.threads[me].published = object;
        turn.tell(|| format!("ptr = object {object}, was {old}"));
        self.finish(me)
    }

    pub(super) fn request(&mut self, turn: &mut Turn<'_>, urgency: Urgency) -> Outcome {
        let me = turn.me;
        if self.held_by.is_some() {
            return Outcome::Blocked;
        }
        self.memory.lock(me, Lock::Machine);
        let before = self.machine.sequence();
        let mut cookie = self.machine.request(urgency);
        if turn.is("served-by-the-present") && before.in_progress() {
            cookie = Cookie::done_at(before.end());
        }
        self.threads[me].cookie = Some(cookie);
        self.memory.unlock(me, Lock::Machine);
        turn.tell(|| {
            format!("requests: cookie {:#x} at {:#x}", cookie.to_bits(), before.to_bits())
        });
        self.finish(me)
    }

    fn cookie(&self, me: usize) -> Cookie {
        self.threads[me].cookie.expect("requested before")
    }

    pub(super) fn wait(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        if self.held_by.is_some() {
            return Outcome::Blocked;
        }
        self.memory.lock(me, Lock::Machine);
        if self.machine.sequence().is_done(self.cookie(me)) {
            turn.tell(|| "finds its cookie done".into());
            self.memory.unlock(me, Lock::Machine);
            return self.finish(me);
        }
        let until = driver::Until::Done(self.cookie(me));
        if self.driven
            && self.op(turn.scenario, me) == Some(Op::WaitImpatiently)
            && !self.threads[me].took_over
            && self.registry.held_by.is_none()
        {
            self.threads[me].took_over = true;
            return self.take_over(turn, until);
        }
        if self.driven {
            turn.tell(|| "sleeps until the driver is done".into());
            self.threads[me].asleep = Some(Asleep::Turn);
            self.memory.unlock(me, Lock::Machine);
            return Outcome::Moved;
        }
        self.begin_to_drive(turn, until)
    }

    pub(super) fn advance(&mut self, turn: &mut Turn<'_>, tick: bool) -> Outcome {
        let me = turn.me;
        if self.held_by.is_some() {
            turn.tell(|| "leaves it: the machine is locked".into());
            return self.finish(me);
        }
        self.memory.lock(me, Lock::Machine);
        if self.driven || !self.machine.is_wanted() {
            turn.tell(|| "leaves it: driven, or nothing wanted".into());
            self.memory.unlock(me, Lock::Machine);
            return self.finish(me);
        }
        self.begin_to_drive(turn, driver::Until::MustWait { tick })
    }

    pub(super) fn poll(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        let order = if turn.is("relaxed-poll") { Relaxed } else { Acquire };
        let bits = self.memory.load(me, Location::COMPLETED, order, turn.choice);
        let done = Sequence::from_bits(bits).is_done(self.cookie(me));
        turn.tell(|| {
            format!("load completed: {bits:#x}, {}", if done { "done" } else { "not yet" })
        });
        if !done {
            self.threads[me].op += 1; // leave out what comes next
        }
        self.finish(me)
    }

    pub(super) fn free(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        let object = self.threads[me].old;
        turn.tell(|| format!("frees object {object}"));
        if self.freed[usize::from(object)] {
            return Outcome::Violation(format!("object {object} is freed twice"));
        }
        if let Some(reader) = self.memory.racing_reader(me, object) {
            let reader = turn.scenario.threads[reader].name;
            return Outcome::Violation(format!(
                "object {object} is freed while the read of {reader} may still be under way"
            ));
        }
        self.freed[usize::from(object)] = true;
        self.finish(me)
    }
}
