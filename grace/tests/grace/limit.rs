//! Bounded memory: laws of amounts, zones and chunks, and a domain with some threads, in which
//! every object is either within the limit or noted as over it, whatever the order of things.

use std::collections::VecDeque;

use grace::limit::{
    Amount, Context, LimitAction, Stock, Zone, admit, chunk, limit_action, presses, zone,
};
use proptest::prelude::*;

use crate::told;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10u64, 0..100_000u64, any::<u64>(), Just(u64::MAX)]
}

fn amount() -> impl Strategy<Value = Amount> {
    (number(), number()).prop_map(|(objects, bytes)| Amount { objects, bytes })
}

/// Of each number, something of `what`.
fn each(one: Amount, other: Amount, what: impl Fn(u64, u64) -> bool) -> bool {
    what(one.objects, other.objects) && what(one.bytes, other.bytes)
}

proptest! {
    #[test]
    fn amounts_add_up_or_stop_at_the_ends(one in amount(), other in amount()) {
        let sum = one.plus(other);
        prop_assert_eq!(sum, other.plus(one));
        prop_assert!(one.fits(sum) && other.fits(sum));
        prop_assert!(one.minus(other).fits(one));
        prop_assert_eq!(one.minus(other).plus(one.common(other)), one);
        prop_assert!(one.minus(one).is_none() && one.common(Amount::NONE).is_none());
        prop_assert_eq!(one.fits(other), one.minus(other).is_none());
        let saturates = |sum| sum == u64::MAX;
        let is_sum = |one: u64, other: u64, sum| {
            one.checked_add(other).map_or(saturates(sum), |exact| exact == sum)
        };
        prop_assert!(is_sum(one.objects, other.objects, sum.objects));
        prop_assert!(is_sum(one.bytes, other.bytes, sum.bytes));
    }

    #[test]
    fn an_object_is_one_and_its_bytes_are_within_reason(bytes in number()) {
        let object = Amount::object(bytes);
        prop_assert_eq!(object.objects, 1);
        prop_assert_eq!(object.bytes, bytes.min(1 << 48));
    }

    #[test]
    fn zones_begin_at_three_quarters_and_at_the_limit(charged in amount(), limit in amount()) {
        let share = |charged: u64, limit: u64| match u128::from(charged) {
            charged if charged >= u128::from(limit) => Zone::Full,
            // A quarter is rounded down, so that there is one zone only where there is no quarter.
            charged if charged >= u128::from(limit) - u128::from(limit / 4) => Zone::Expedite,
            _ => Zone::Free,
        };
        let worse = share(charged.objects, limit.objects).max(share(charged.bytes, limit.bytes));
        prop_assert_eq!(zone(charged, limit), worse);
        let presses = presses(charged.objects, limit.objects);
        prop_assert_eq!(presses, share(charged.objects, limit.objects) >= Zone::Expedite);
    }

    #[test]
    fn a_chunk_is_a_small_share(limit in amount(), threads in number()) {
        let threads = threads % (1 << 32);
        let chunk = chunk(limit, threads);
        let share = |chunk: u64, limit: u64| {
            u128::from(chunk) * 4 * u128::from(threads.max(1)) <= u128::from(limit)
        };
        prop_assert!(each(chunk, limit, share));
    }

    #[test]
    fn what_idle_threads_keep_is_half_the_limit_at_most(limit in amount(), many in 0..3_000u64) {
        let keeps = |sum: (u128, u128), threads| {
            let chunk = chunk(limit, threads);
            (sum.0 + 2 * u128::from(chunk.objects), sum.1 + 2 * u128::from(chunk.bytes))
        };
        let (objects, bytes) = (1..=many).fold((0, 0), keeps);
        prop_assert!(2 * objects <= u128::from(limit.objects));
        prop_assert!(2 * bytes <= u128::from(limit.bytes));
    }

    #[test]
    fn a_stock_loses_nothing(left in amount(), object in amount(), chunk in amount()) {
        let mut stock = Stock::EMPTY;
        stock.grant(left);
        let wanted = stock.shortfall(object, chunk);
        prop_assert_eq!(stock.take(object), wanted.is_none());
        if !wanted.is_none() {
            prop_assert_eq!(stock.left(), left, "a refusal takes nothing");
            stock.grant(wanted);
            prop_assert!(stock.take(object), "what was missing is enough");
        }
        // Twice a chunk is kept, and one if it is more; what is given back is the rest.
        let before = stock.left();
        let surplus = stock.give_back(object, chunk);
        prop_assert_eq!(stock.left(), before.plus(object).minus(surplus));
        let keeps = |left: u64, chunk: u64| left <= chunk.saturating_mul(2);
        prop_assert!(each(stock.left(), chunk, keeps));
        let all = stock.left();
        prop_assert_eq!(stock.empty(), all);
        prop_assert_eq!(stock, Stock::EMPTY);
    }

    #[test]
    fn what_is_owed_is_paid_first(over_limit in amount(), first in amount(), chunk in amount()) {
        let mut stock = Stock::EMPTY;
        stock.borrow(over_limit);
        prop_assert_eq!(stock.is_over_limit(), !over_limit.is_none());
        prop_assert!(stock.take(over_limit), "for what it was borrowed");
        let paid = stock.give_back(first, chunk);
        prop_assert!(first.common(over_limit).fits(paid));
        prop_assert_eq!(stock.over_limit(), over_limit.minus(first));
        prop_assert!(over_limit.minus(first).fits(stock.give_back(over_limit.minus(first), chunk)));
        prop_assert!(!stock.is_over_limit());
    }
}

/// One of three threads does something.
#[derive(Clone, Copy, Debug)]
enum Move {
    Begin(usize),
    /// Settles what is over the limit, where its own objects can be freed.
    End(usize),
    Retire(usize, u64),
    /// The owner frees so many of its objects.
    Run(usize, usize),
    /// The worker frees the oldest of somebody.
    Worker(usize),
    Exit(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let bytes = prop_oneof![0..40u64, Just(64), 100..200u64];
    let one = prop_oneof![
        2 => (0..3usize).prop_map(Move::Begin),
        2 => (0..3usize).prop_map(Move::End),
        8 => (0..3usize, bytes).prop_map(|(thread, bytes)| Move::Retire(thread, bytes)),
        2 => (0..3usize, 1..9usize).prop_map(|(thread, count)| Move::Run(thread, count)),
        1 => (0..3usize).prop_map(Move::Worker),
        1 => (0..3usize).prop_map(Move::Exit),
    ];
    proptest::collection::vec(one, 0..200)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// What was freed goes to the owner's stock and to the domain.
    GiveBackTwice,
    /// What is over the limit is forgotten as the section ends.
    ForgetOverLimit,
    /// The stock goes with its thread.
    KeepStock,
    /// What was borrowed is granted.
    GrantLoan,
    /// What does not fit is charged.
    AdmitAll,
}

#[derive(Debug, Default)]
struct Thread {
    stock: Stock,
    in_section: bool,
    waiting: VecDeque<Amount>,
}

#[derive(Debug)]
struct Domain {
    charged: Amount,
    limit: Amount,
    threads: [Thread; 3],
    fault: Fault,
}

impl Domain {
    fn new(limit: Amount, fault: Fault) -> Self {
        Self { charged: Amount::NONE, limit, threads: Default::default(), fault }
    }

    fn chunk(&self) -> Amount {
        // As if there were fewer parts: a limit that is small enough for a test has no chunks.
        Amount { objects: self.limit.objects / 8, bytes: self.limit.bytes / 8 }
    }

    fn charge(&mut self, wanted: Amount) -> bool {
        let admitted = admit(self.charged, self.limit, wanted);
        let admits = admitted.is_some() || self.fault == Fault::AdmitAll;
        if admits {
            self.charged = self.charged.plus(wanted);
        }
        admits
    }

    fn retire(&mut self, me: usize, object: Amount) {
        for chunk in [self.chunk(), Amount::NONE] {
            let wanted = self.threads[me].stock.shortfall(object, chunk);
            if wanted.is_none() || self.charge(wanted) {
                self.threads[me].stock.grant(wanted);
                return self.push(me, object);
            }
        }
        self.refresh_over_limit(me);
        let context = if self.threads[me].in_section { Context::Section } else { Context::Outside };
        match limit_action(context, &self.threads[me].stock) {
            LimitAction::Borrow => {
                let wanted = self.threads[me].stock.shortfall(object, Amount::NONE);
                self.charged = self.charged.plus(wanted);
                match self.fault {
                    Fault::GrantLoan => self.threads[me].stock.grant(wanted),
                    _ => self.threads[me].stock.borrow(wanted),
                }
                self.push(me, object);
            }
            // It is freed on the spot, not having been charged.
            LimitAction::WaitAndRun => self.run(me, usize::MAX),
            LimitAction::WaitAndFree | LimitAction::Refuse => {}
        }
    }

    fn refresh_over_limit(&mut self, me: usize) -> bool {
        let thread = &mut self.threads[me];
        if thread.waiting.is_empty() {
            thread.stock.clear_over_limit();
        }
        thread.stock.refresh_over_limit(self.charged, self.limit)
    }

    fn push(&mut self, me: usize, object: Amount) {
        assert!(self.threads[me].stock.take(object), "what was asked for is enough");
        self.threads[me].waiting.push_back(object);
    }

    fn run(&mut self, me: usize, count: usize) {
        let chunk = self.chunk();
        let thread = &mut self.threads[me];
        let count = count.min(thread.waiting.len());
        let finished = thread.waiting.drain(..count).fold(Amount::NONE, Amount::plus);
        let mut release = thread.stock.give_back(finished, chunk);
        if thread.waiting.is_empty() {
            // A larger object was over the limit, and others have freed it.
            thread.stock.clear_over_limit();
        }
        if self.fault == Fault::GiveBackTwice {
            release = finished;
        }
        self.charged = self.charged.minus(release);
    }

    fn take(&mut self, step: Move) {
        match step {
            Move::Begin(me) => self.threads[me].in_section = true,
            Move::Retire(me, bytes) => self.retire(me, Amount::object(bytes)),
            Move::Run(me, count) if !self.threads[me].in_section => self.run(me, count),
            Move::End(me) => {
                self.threads[me].in_section = false;
                if self.fault == Fault::ForgetOverLimit {
                    self.threads[me].stock.clear_over_limit();
                } else if self.refresh_over_limit(me) {
                    self.run(me, usize::MAX);
                }
            }
            Move::Worker(owner) => {
                let freed = self.threads[owner].waiting.pop_front().unwrap_or(Amount::NONE);
                self.charged = self.charged.minus(freed);
            }
            Move::Exit(me) => {
                self.take(Move::End(me));
                let release = self.threads[me].stock.empty();
                if self.fault != Fault::KeepStock {
                    self.charged = self.charged.minus(release);
                }
                self.threads[me].stock = Stock::EMPTY;
            }
            Move::Run(..) => {}
        }
    }

    fn waiting(&self) -> Amount {
        let all = self.threads.iter().flat_map(|thread| &thread.waiting);
        all.fold(Amount::NONE, |sum, object| sum.plus(*object))
    }

    fn check(&self) -> Result<(), String> {
        let left = self.threads.iter().map(|thread| thread.stock.left());
        let held = left.fold(self.waiting(), Amount::plus);
        if held != self.charged {
            return Err(format!("charged {:?}, held {held:?}", self.charged));
        }
        // An object of a size of its own may wait alone; or each thread is one over the limit.
        let largest = self.threads.iter().flat_map(|thread| &thread.waiting).map(|one| one.bytes);
        let bound = self.limit.bytes.max(largest.max().unwrap_or(0));
        let bound = Amount { bytes: bound, ..self.limit };
        let over_limit = self.threads.iter().map(|thread| thread.stock.over_limit());
        if !self.waiting().fits(over_limit.clone().fold(bound, Amount::plus)) {
            return Err("more waits than the limit and what is over it".into());
        }
        let is_one = |over_limit: Amount| over_limit.objects <= 1;
        if !over_limit.into_iter().all(is_one) {
            return Err("a thread is over the limit by more than one object".into());
        }
        for thread in &self.threads {
            if thread.stock.is_over_limit() && !thread.in_section && !thread.waiting.is_empty() {
                return Err(
                    "a thread outside of sections is over the limit though it could settle".into(),
                );
            }
        }
        Ok(())
    }
}

fn follow(limit: Amount, moves: &[Move], fault: Fault) -> Result<(), String> {
    let mut domain = Domain::new(limit, fault);
    for step in moves {
        domain.take(*step);
        domain.check()?;
    }
    // Nothing is stranded: when all have gone and all is freed, nothing is charged.
    for me in 0..domain.threads.len() {
        domain.take(Move::End(me));
        domain.run(me, usize::MAX);
        domain.take(Move::Exit(me));
    }
    match domain.charged.is_none() {
        true => Ok(()),
        false => Err(format!("in the end {:?} are charged", domain.charged)),
    }
}

fn limits() -> impl Strategy<Value = Amount> {
    (1..40u64, 1..400u64).prop_map(|(objects, bytes)| Amount { objects, bytes })
}

proptest! {
    #[test]
    fn what_waits_is_within_the_limit_or_owed(limit in limits(), moves in moves()) {
        let outcome = follow(limit, &moves, Fault::None);
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }

    #[test]
    fn no_number_panics(
        charged in amount(), limit in amount(), wanted in amount(), threads in number()
    ) {
        let mut stock = Stock::EMPTY;
        stock.grant(charged);
        stock.borrow(wanted);
        stock.grant(limit);
        let chunk = chunk(limit, threads);
        let _ = stock.shortfall(wanted, chunk);
        let _ = stock.give_back(wanted, chunk);
        prop_assert_eq!(admit(charged, limit, wanted).is_some(),
            charged.plus(wanted).fits(limit) || charged.is_none() || wanted.is_none());
        prop_assert!(!stock.refresh_over_limit(limit, limit));
        let _ = stock.empty();
        prop_assert!(stock.left().is_none());
    }
}

#[test]
fn each_fault_of_a_driver_is_found() {
    for (fault, what) in [
        (Fault::GiveBackTwice, "held"),
        (Fault::ForgetOverLimit, "more waits than the limit"),
        (Fault::KeepStock, "are charged"),
        (Fault::GrantLoan, "more waits than the limit"),
        (Fault::AdmitAll, "more waits than the limit"),
    ] {
        let told = told(&(limits(), moves()), |(limit, moves)| follow(limit, &moves, fault));
        println!("{fault:?}: {told}");
        assert!(told.contains(what), "{fault:?}: {told}");
    }
}
