//! Running callbacks, settling what is over the limit, and the end of a thread, step by step.
//!
//! ```text
//! run:     unless somebody runs the queue: claim a few that are ready
//!          each: what it was charged is the runner's room made; run it
//!          the rest of that room: give_back, if it is the owner's queue; else to the domain
//!          has its thread ended meanwhile, and is something ready? claim again; else leave
//! settle:  is something over_limit? (load objects, load bytes)
//!          wait for a grace period; run the own queue, unless somebody does, until nothing is over_limit
//! exit:    settle; mark the queue; still in debt: run it, unless somebody does; give the stock back
//! ```

use grace::limit::{Amount, Stock};

use super::world::{BYTES, ExitAt, Frame, OBJECTS, SettleAt, Turn, World};
use crate::system::Outcome;

/// Callbacks that are claimed at once, at most.
const CLAIM_MAX: usize = 2;

impl World {
    /// Claims a few of a queue that no thread runs and of which some are ready.
    pub(super) fn begin_to_run(&mut self, turn: &mut Turn<'_>, of: usize) -> Outcome {
        let claim = self.queues[of].ready().min(CLAIM_MAX);
        turn.tell(|| format!("claims {claim} of queue {of}"));
        self.queues[of].is_run = true;
        self.push(turn.me, Frame::Run { of, left: claim as u8 });
        if turn.is("give-back-early") {
            let claimed = self.queues[of].waiting.iter().take(claim);
            let amount = claimed.fold(Amount::NONE, |sum, one| sum.plus(one.amount()));
            return self.push(turn.me, Frame::Release(amount));
        }
        Outcome::Moved
    }

    pub(super) fn run(&mut self, turn: &mut Turn<'_>, of: usize, left: u8) -> Outcome {
        let me = turn.me;
        if left == 0 {
            return self.stop(turn, of);
        }
        self.goto(me, Frame::Run { of, left: left - 1 });
        let Some(retired) = self.queues[of].waiting.pop_front() else {
            return Outcome::Violation("a callback is run that was not queued".into());
        };
        turn.tell(|| format!("runs one of queue {of}"));
        if !turn.is("give-back-early") {
            self.threads[me].uncharged = self.threads[me].uncharged.plus(retired.amount());
        }
        if me == self.worker() && core::mem::take(&mut self.will_block) {
            turn.tell(|| "which blocks".into());
            self.push(me, Frame::Blocked);
            return Outcome::Moved;
        }
        self.free(turn, retired, true)
    }

    fn stop(&mut self, turn: &mut Turn<'_>, of: usize) -> Outcome {
        let me = turn.me;
        let chunk = turn.scenario.chunk;
        let uncharged = core::mem::take(&mut self.threads[me].uncharged);
        let is_owner = self.threads[me].queue == of && self.queues[of].orphan.is_none();
        let owner = self.threads.iter_mut().find(|thread| thread.queue == of && thread.lives != 0);
        let rest = match owner {
            Some(owner) if is_owner => {
                let rest = owner.stock.give_back(uncharged, chunk);
                if turn.is("give-back-twice") { uncharged } else { rest }
            }
            Some(owner) if turn.is("worker-fills-stock") => {
                owner.stock.grant(uncharged);
                Amount::NONE
            }
            _ => uncharged,
        };
        self.goto(me, Frame::Leave { of });
        match rest.is_none() {
            true => self.leave(turn, of),
            false => {
                self.push(me, Frame::Release(rest));
                self.release(turn, rest)
            }
        }
    }

    /// Under the queue's lock, as the claim.
    pub(super) fn leave(&mut self, turn: &mut Turn<'_>, of: usize) -> Outcome {
        let queue = &mut self.queues[of];
        let has_more = queue.orphan.is_some() && queue.ready() != 0;
        if has_more && !turn.is("runner-leaves-orphan") {
            self.pop(turn.me);
            return self.begin_to_run(turn, of);
        }
        turn.tell(|| format!("leaves queue {of}"));
        queue.is_run = false;
        self.pop(turn.me)
    }

    /// Subtracts from one of the words.
    pub(super) fn release(&mut self, turn: &mut Turn<'_>, amount: Amount) -> Outcome {
        let (name, word, by, rest) = match amount.objects {
            0 => ("bytes", BYTES, amount.bytes, Amount::NONE),
            objects => ("objects", OBJECTS, objects, Amount { objects: 0, ..amount }),
        };
        turn.tell(|| format!("{name} -= {by}"));
        if self.change(turn.me, word, -(by as i64)).is_none() {
            return Outcome::Violation("more is given back than was charged".into());
        }
        match rest.is_none() {
            true => self.pop(turn.me),
            false => self.goto(turn.me, Frame::Release(rest)),
        }
    }

    pub(super) fn settle(&mut self, turn: &mut Turn<'_>, at: SettleAt) -> Outcome {
        let me = turn.me;
        let own = self.threads[me].queue;
        let next = match at {
            SettleAt::Begin => {
                if self.queues[own].waiting.is_empty() {
                    self.threads[me].stock.clear_over_limit();
                    turn.tell(|| "nothing of its waits: it is within the limit".into());
                    return self.pop(me);
                }
                let seen = self.load(turn, OBJECTS);
                turn.tell(|| format!("settles; load objects: {seen}"));
                if !turn.scenario.has_bytes() {
                    return self.settle(turn, SettleAt::Bytes { seen });
                }
                SettleAt::Bytes { seen }
            }
            SettleAt::Bytes { seen } => {
                let seen = Amount { objects: seen, bytes: self.load(turn, BYTES) };
                turn.tell(|| format!("load bytes: {}", seen.bytes));
                if !self.refresh_over_limit(turn, seen) {
                    return self.pop(me);
                }
                SettleAt::Wait { readers: self.readers() }
            }
            SettleAt::Wait { readers } if readers != 0 => return Outcome::Blocked,
            SettleAt::Wait { .. } => {
                turn.tell(|| "a grace period is over".into());
                SettleAt::Run
            }
            SettleAt::Run => {
                let queue = &self.queues[own];
                let can_run = !queue.is_run && queue.ready() != 0;
                if can_run && self.threads[me].stock.is_over_limit() {
                    return self.begin_to_run(turn, own);
                }
                turn.tell(|| "has done what it could".into());
                let paid = self.threads[me].stock.give_back(Amount::NONE, turn.scenario.chunk);
                if self.queues[own].waiting.is_empty() {
                    self.threads[me].stock.clear_over_limit();
                }
                self.pop(me);
                if !paid.is_none() {
                    self.push(me, Frame::Release(paid));
                }
                return Outcome::Moved;
            }
        };
        self.goto(me, Frame::Settle(next))
    }

    pub(super) fn exit(&mut self, turn: &mut Turn<'_>, at: ExitAt) -> Outcome {
        let me = turn.me;
        let own = self.threads[me].queue;
        let runs = !turn.is("exit-without-running");
        match at {
            ExitAt::Begin => {
                self.goto(me, Frame::Exit(ExitAt::Mark));
                if self.threads[me].stock.is_over_limit() && runs {
                    return self.push(me, Frame::Settle(SettleAt::Begin));
                }
                self.exit(turn, ExitAt::Mark)
            }
            ExitAt::Mark => {
                turn.tell(|| format!("queue {own} is left alone"));
                self.queues[own].orphan = Some(self.threads[me].stock.over_limit());
                self.goto(me, Frame::Exit(ExitAt::Run))
            }
            ExitAt::Run => {
                let queue = &self.queues[own];
                let can_run = !queue.is_run && queue.ready() != 0 && runs;
                if can_run && self.threads[me].stock.is_over_limit() {
                    return self.begin_to_run(turn, own);
                }
                self.goto(me, Frame::Exit(ExitAt::Empty));
                self.exit(turn, ExitAt::Empty)
            }
            ExitAt::Empty => {
                self.goto(me, Frame::Exit(ExitAt::Gone));
                let rest = self.threads[me].stock.empty();
                if rest.is_none() || turn.is("exit-keeps-stock") {
                    return self.exit(turn, ExitAt::Gone);
                }
                self.push(me, Frame::Release(rest))
            }
            ExitAt::Gone => {
                turn.tell(|| "is gone".into());
                self.pop(me);
                self.next_life(turn);
                Outcome::Moved
            }
        }
    }

    /// The thread is gone; another one may come in its place.
    fn next_life(&mut self, turn: &Turn<'_>) {
        let thread = &mut self.threads[turn.me];
        thread.stock = Stock::EMPTY;
        thread.retired = 0;
        thread.sections = turn.scenario.clients[turn.me].sections;
        thread.lives -= 1;
        if thread.lives != 0 {
            thread.queue = self.queues.len();
            self.queues.push(super::world::Queue::default());
        }
    }
}
