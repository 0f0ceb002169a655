//! Retiring, step by step, as `grace::limit` says it. Each step touches one of the domain's words
//! once.
//!
//! ```text
//! retire:  in a callback: from the room made; else from the stock; else
//! charge:  seen.objects = objects.fetch_add(wanted.objects)
//!          seen.bytes = bytes.fetch_add(wanted.bytes)
//!          does it fit? grant; else objects.fetch_sub, bytes.fetch_sub; once more with a bare shortfall
//! full:    what is over_limit? (load objects, load bytes); limit_action:
//!   outside      wait for a grace period; run what is ready of the own queue, unless somebody does;
//!                charge once more; else free it
//!   callback     wait for a grace period; free it
//!   section      objects.fetch_add, bytes.fetch_add, owe it; or refuse it
//! ```

use grace::limit::{Amount, Context, LimitAction, admit, limit_action};

use super::scenario::Object;
use super::world::{BYTES, Charge, Frame, OBJECTS, RetireAt, Retired, Turn, World};
use crate::system::Outcome;

impl World {
    pub(super) fn retire(
        &mut self,
        turn: &mut Turn<'_>,
        retired: Retired,
        at: RetireAt,
    ) -> Outcome {
        let me = turn.me;
        let next = match at {
            RetireAt::Begin => return self.take_without_asking(turn, retired),
            RetireAt::Charge(charge) => self.charge_objects(turn, retired, charge),
            RetireAt::ChargeBytes { charge, wanted, seen } => {
                let seen = Amount { objects: seen, bytes: self.add(me, BYTES, wanted.bytes) };
                let fits = self.admits(turn, seen, wanted);
                turn.tell(|| format!("bytes += {}: {fits}", wanted.bytes));
                if fits {
                    self.threads[me].stock.grant(wanted);
                    return self.queue(turn, retired);
                }
                RetireAt::Undo { charge, wanted, charged: wanted }
            }
            RetireAt::Undo { charge, wanted, charged } => {
                return self.undo(turn, retired, charge, [wanted, charged]);
            }
            RetireAt::Full => {
                let seen = self.load(turn, OBJECTS);
                turn.tell(|| format!("no room; load objects: {seen}"));
                RetireAt::FullBytes { seen }
            }
            RetireAt::FullBytes { seen } => {
                let seen = Amount { objects: seen, bytes: self.load(turn, BYTES) };
                turn.tell(|| format!("load bytes: {}", seen.bytes));
                self.refresh_over_limit(turn, seen);
                return self.decide(turn, retired);
            }
            RetireAt::Borrow => {
                let wanted = self.threads[me].stock.shortfall(retired.amount(), Amount::NONE);
                turn.tell(|| format!("borrows: objects += {}", wanted.objects));
                self.add(me, OBJECTS, wanted.objects);
                RetireAt::BorrowBytes { wanted }
            }
            RetireAt::BorrowBytes { wanted } => {
                turn.tell(|| format!("bytes += {}", wanted.bytes));
                self.add(me, BYTES, wanted.bytes);
                let stock = &mut self.threads[me].stock;
                match turn.is("loan-not-owed") {
                    true => stock.grant(wanted),
                    false => stock.borrow(wanted),
                }
                return self.queue(turn, retired);
            }
            RetireAt::Wait { readers, runs } => {
                if readers != 0 {
                    return Outcome::Blocked;
                }
                turn.tell(|| "a grace period is over".into());
                if runs { RetireAt::AfterWait { has_run: false } } else { RetireAt::Free }
            }
            RetireAt::AfterWait { has_run } => {
                return self.after_wait(turn, retired, has_run);
            }
            RetireAt::Free => return self.free_on_the_spot(turn, retired),
            RetireAt::Take { wanted, has_objects } => {
                turn.tell(|| "takes the room that it has seen".into());
                if has_objects {
                    self.add(me, BYTES, wanted.bytes);
                    self.threads[me].stock.grant(wanted);
                    return self.queue(turn, retired);
                }
                self.add(me, OBJECTS, wanted.objects);
                RetireAt::Take { wanted, has_objects: true }
            }
        };
        self.goto(me, Frame::Retire { retired, at: next });
        let is_of_bytes = matches!(
            next,
            RetireAt::ChargeBytes { .. }
                | RetireAt::FullBytes { .. }
                | RetireAt::BorrowBytes { .. }
        );
        if is_of_bytes && !turn.scenario.has_bytes() {
            return self.take_inner(turn);
        }
        Outcome::Moved
    }

    /// Whether it is still over the limit, with so much charged.
    pub(super) fn refresh_over_limit(&mut self, turn: &Turn<'_>, seen: Amount) -> bool {
        let stock = &mut self.threads[turn.me].stock;
        let seen = match turn.is("look-before-loan") {
            true => seen.minus(stock.over_limit()),
            false => seen,
        };
        stock.refresh_over_limit(seen, turn.scenario.limit)
    }

    fn add(&mut self, me: usize, word: usize, by: u64) -> u64 {
        self.change(me, word, by as i64).expect("sums are small")
    }

    fn take_without_asking(&mut self, turn: &mut Turn<'_>, retired: Retired) -> Outcome {
        let thread = &mut self.threads[turn.me];
        let amount = retired.amount();
        let has_uncharged = thread.callbacks != 0 && !turn.is("no-uncharged");
        if has_uncharged && amount.fits(thread.uncharged) {
            thread.uncharged = thread.uncharged.minus(amount);
            turn.tell(|| "queues it with the room that the callback had".into());
            return self.enqueue(turn.me, retired);
        }
        if amount.fits(thread.stock.left()) {
            return self.queue(turn, retired);
        }
        let at = RetireAt::Charge(Charge::default());
        self.goto(turn.me, Frame::Retire { retired, at });
        if !amount.fits(turn.scenario.limit) && !turn.is("huge-keeps-stock") {
            let all = self.threads[turn.me].stock.empty();
            turn.tell(|| "gives its stock back".into());
            if !all.is_none() {
                return self.push(turn.me, Frame::Release(all));
            }
        }
        self.take_inner(turn)
    }

    /// Queues what its thread's stock has room for.
    fn queue(&mut self, turn: &mut Turn<'_>, retired: Retired) -> Outcome {
        let thread = &mut self.threads[turn.me];
        if !thread.stock.take(retired.amount()) {
            return Outcome::Violation("what was granted is not enough".into());
        }
        turn.tell(|| format!("queues an object of {} bytes", retired.object.bytes));
        self.enqueue(turn.me, retired)
    }

    fn enqueue(&mut self, me: usize, retired: Retired) -> Outcome {
        let own = self.threads[me].queue;
        self.queues[own].waiting.push_back(Retired { is_own: false, ..retired });
        self.pop(me)
    }

    fn admits(&self, turn: &Turn<'_>, seen: Amount, wanted: Amount) -> bool {
        let limit = turn.scenario.limit;
        let limit = match turn.mutant {
            "objects-only" => Amount { bytes: u64::MAX, ..limit },
            "bytes-only" => Amount { objects: u64::MAX, ..limit },
            "huge-anytime" if !wanted.fits(limit) => return true,
            _ => limit,
        };
        admit(seen, limit, wanted).is_some()
    }

    fn charge_objects(
        &mut self,
        turn: &mut Turn<'_>,
        retired: Retired,
        charge: Charge,
    ) -> RetireAt {
        let stock = &self.threads[turn.me].stock;
        let chunk = if charge.is_bare { Amount::NONE } else { turn.scenario.chunk };
        let wanted = stock.shortfall(retired.amount(), chunk);
        if turn.is("look-then-add") {
            let seen = self.charged();
            turn.tell(|| "looks whether there is room".into());
            return match self.admits(turn, seen, wanted) {
                true => RetireAt::Take { wanted, has_objects: false },
                false => RetireAt::Undo { charge, wanted, charged: Amount::NONE },
            };
        }
        let seen = self.add(turn.me, OBJECTS, wanted.objects);
        turn.tell(|| format!("objects += {} (was {seen})", wanted.objects));
        RetireAt::ChargeBytes { charge, wanted, seen }
    }

    fn undo(
        &mut self,
        turn: &mut Turn<'_>,
        retired: Retired,
        charge: Charge,
        [wanted, mut charged]: [Amount; 2],
    ) -> Outcome {
        let me = turn.me;
        let full = charged == wanted;
        if turn.is("no-undo") {
            charged = Amount::NONE;
        } else if turn.is("undo-objects-only") {
            charged.bytes = 0;
        } else if turn.is("undo-whole-object") && full {
            charged = retired.amount();
        }
        let amount = self.threads[me].stock.shortfall(retired.amount(), Amount::NONE);
        let has_another = !charge.is_bare && amount != wanted;
        let at = match (has_another, charge.has_waited) {
            (true, _) => RetireAt::Charge(Charge { is_bare: true, ..charge }),
            (false, true) if turn.is("wait-for-room") => {
                RetireAt::Wait { readers: self.readers(), runs: true }
            }
            (false, true) => RetireAt::Free,
            (false, false) => {
                if self.queues[self.threads[me].queue].waiting.is_empty() {
                    self.threads[me].stock.clear_over_limit();
                }
                RetireAt::Full
            }
        };
        self.goto(me, Frame::Retire { retired, at });
        if at == RetireAt::Full && !self.threads[me].stock.is_over_limit() {
            let outcome = self.decide(turn, retired);
            if outcome != Outcome::Moved {
                return outcome;
            }
        }
        if charged.is_none() {
            return Outcome::Moved;
        }
        self.push(me, Frame::Release(charged));
        self.release(turn, charged)
    }

    fn decide(&mut self, turn: &mut Turn<'_>, retired: Retired) -> Outcome {
        let me = turn.me;
        let thread = &self.threads[me];
        let context = match (thread.in_section, thread.callbacks) {
            (true, _) => Context::Section,
            (false, 0) => Context::Outside,
            (false, _) => Context::Callback,
        };
        let mut limit_action = limit_action(context, &thread.stock);
        if context == Context::Section {
            limit_action = match turn.mutant {
                "wait-in-section" => LimitAction::WaitAndRun,
                "free-in-section" => LimitAction::WaitAndFree,
                "second-loan" => LimitAction::Borrow,
                _ => limit_action,
            };
        }
        turn.tell(|| format!("{limit_action:?}"));
        let skips = turn.is("free-in-section") || turn.is("free-without-waiting");
        let at = match limit_action {
            LimitAction::Refuse => return self.pop(me),
            LimitAction::Borrow => RetireAt::Borrow,
            LimitAction::WaitAndRun | LimitAction::WaitAndFree if skips => RetireAt::Free,
            LimitAction::WaitAndRun | LimitAction::WaitAndFree => {
                let runs =
                    limit_action == LimitAction::WaitAndRun && !turn.is("no-run-after-waiting");
                RetireAt::Wait { readers: self.readers(), runs }
            }
        };
        self.goto(me, Frame::Retire { retired, at })
    }

    fn after_wait(&mut self, turn: &mut Turn<'_>, retired: Retired, has_run: bool) -> Outcome {
        let me = turn.me;
        let own = self.threads[me].queue;
        let queue = &self.queues[own];
        if queue.is_run && turn.is("wait-for-runner") {
            return Outcome::Blocked;
        }
        if !has_run && !queue.is_run && queue.ready() != 0 {
            let at = RetireAt::AfterWait { has_run: true };
            self.goto(me, Frame::Retire { retired, at });
            return self.begin_to_run(turn, own);
        }
        if self.threads[me].stock.take(retired.amount()) {
            turn.tell(|| "queues it with the room of what it has freed".into());
            return self.enqueue(me, retired);
        }
        let at = RetireAt::Charge(Charge { is_bare: true, has_waited: true });
        self.goto(me, Frame::Retire { retired, at });
        self.take_inner(turn)
    }

    fn free_on_the_spot(&mut self, turn: &mut Turn<'_>, retired: Retired) -> Outcome {
        turn.tell(|| "frees it on the spot".into());
        if retired.is_own {
            return Outcome::Violation("a callback runs inside of itself".into());
        }
        self.pop(turn.me);
        self.free(turn, retired, false)
    }

    /// Frees an object; if it queues itself anew, that comes next.
    pub(super) fn free(
        &mut self,
        turn: &mut Turn<'_>,
        retired: Retired,
        was_queued: bool,
    ) -> Outcome {
        let me = turn.me;
        if retired.readers != 0 {
            let reader = retired.readers.trailing_zeros();
            return Outcome::Violation(format!("an object is freed under a section of {reader}"));
        }
        if self.threads[me].in_section {
            return Outcome::Violation("an object is freed by a thread in a section".into());
        }
        if let Some(again) = retired.object.again.checked_sub(1) {
            turn.tell(|| "it queues itself anew".into());
            self.threads[me].callbacks += 1;
            self.push(me, Frame::Return);
            let object = Object { again, ..retired.object };
            let retired = Retired { object, readers: self.readers(), is_own: was_queued };
            self.push(me, Frame::Retire { retired, at: RetireAt::Begin });
        }
        Outcome::Moved
    }
}
