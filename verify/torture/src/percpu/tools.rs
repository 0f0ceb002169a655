//! The per-CPU tools: counters whose sums are compared with bounds that are known, a limit,
//! references that are given out while somebody kills, and a lock around two words that belong
//! together.

use std::mem;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64, fence};
use std::thread;

use quiescence::sync::{
    Counter, ExactCounter, LimitCounter, LocalGlobalLock, LocalGlobalReadGuard, PerCpu,
};

use super::references::{Handles, References};
use super::{FaultKind, Fixture, Operation, ThreadContext, end, lock, spin};

/// Additions to a counter in a row.
const ADDITIONS_MAX: u64 = 64;

/// The limit of the counter that all share, so that it is reached; and of one that a thread has
/// alone.
const LIMIT: u64 = 3_000;
const LIMIT_ALONE: u64 = 300;

/// Guards on their way to where they end.
const GUARDS: usize = 4;

/// Two words that are equal when no thread writes.
struct Pair(AtomicU64, AtomicU64);

impl Pair {
    fn write(&self) {
        // Not one step: the thread that looks between them finds a difference.
        let value = self.0.load(Relaxed) + 1;
        self.0.store(value, Relaxed);
        spin(value % 64);
        self.1.store(value, Relaxed);
    }

    fn is_whole(&self) -> bool {
        self.0.load(Relaxed) == self.1.load(Relaxed)
    }
}

static LOCK: LocalGlobalLock<Pair> =
    LocalGlobalLock::new(Pair(AtomicU64::new(0), AtomicU64::new(0)));

type Guard = LocalGlobalReadGuard<'static, Pair>;

/// The tools.
struct Tools {
    workers: i64,
    counter: Counter,
    exact: ExactCounter,
    slots: PerCpu<AtomicU64>,
    /// What will have been added to the three above, and what has been for sure.
    promised: AtomicI64,
    done: AtomicI64,
    /// Each worker adds one, and takes it away.
    balanced: ExactCounter,
    limit: LimitCounter,
    /// What they have of it, at least.
    held: AtomicU64,
    references: References,
    writes: AtomicU64,
    /// None when no thread is left that ends them.
    guards: Mutex<Option<Vec<Guard>>>,
}

/// Threads that use the tools.
pub(crate) fn cast(fixture: &mut Fixture, workers: usize) {
    fixture.parts(
        true,
        Tools::new(workers),
        &[
            (workers, "user of per-CPU tools", Tools::work),
            (1, "summer of counters", Tools::sum),
            (1, "killer of big references", |tools, context| tools.references.kill(context)),
            (2, "writer under the lock", Tools::write),
            (1, "one who ends the guards of others", Tools::end_guards),
        ],
        Tools::close,
    );
}

impl Tools {
    /// For so many workers.
    fn new(workers: usize) -> Self {
        Self {
            workers: workers as i64,
            counter: Counter::new(),
            exact: ExactCounter::new(),
            slots: PerCpu::new(|_| AtomicU64::new(0)),
            promised: AtomicI64::new(0),
            done: AtomicI64::new(0),
            balanced: ExactCounter::new(),
            limit: LimitCounter::new(LIMIT),
            held: AtomicU64::new(0),
            references: References::new(),
            writes: AtomicU64::new(0),
            guards: Mutex::new(Some(Vec::new())),
        }
    }

    /// Adds, takes, refers and reads until the run is over.
    fn work(&self, context: &ThreadContext) {
        let (mut amounts, mut grows, mut handles) = (Vec::new(), true, Handles::new());
        let (alone, mut value) = (LimitCounter::new(LIMIT_ALONE), 0);
        context.turns(Operation::CounterAdd, || {
            self.add(context);
            self.add_within_limit(context, &mut amounts, &mut grows);
            add_alone(context, &alone, &mut value);
            self.read(context);
            self.references.refer(context, &mut handles);
        });
        amounts.into_iter().for_each(|amount| self.give_back(amount));
        end(context, handles);
    }

    fn add(&self, context: &ThreadContext) {
        let count = 1 + context.below(ADDITIONS_MAX);
        let amount = 1 + context.below(100) as i64;
        let total = amount * count as i64;
        self.promised.fetch_add(total, Relaxed);
        // Release: pairs with the Acquire in `sum`; a thread that sees an addition sees
        // its promise.
        fence(Release);
        for _ in 0..count {
            self.counter.add(amount);
            self.exact.add(amount);
            self.slots.here().fetch_add(amount.cast_unsigned(), Relaxed);
            self.balanced.add(1);
            self.balanced.add(-1);
        }
        // Release: pairs with the Acquire in `sum`.
        self.done.fetch_add(total, Release);
        context.ledger.operations.add(Operation::CounterAdd, count);
    }

    /// Adds as long as there is room, then subtracts for a while. The thread has these amounts.
    fn add_within_limit(&self, context: &ThreadContext, amounts: &mut Vec<u64>, grows: &mut bool) {
        for _ in 0..context.below(16) {
            if *grows {
                let amount = 1 + context.below(8);
                if !self.limit.try_add(amount) {
                    context.did(Operation::LimitRefused);
                    *grows = false;
                    continue;
                }
                context.did(Operation::LimitAdd);
                let held = self.held.fetch_add(amount, Relaxed) + amount;
                context.expect(held <= LIMIT, FaultKind::Limit, "LimitCounter", || {
                    format!("{held} was added where {LIMIT} may be")
                });
                amounts.push(amount);
            } else if let Some(amount) = amounts.pop() {
                self.give_back(amount);
                *grows = context.one_in(200);
            } else {
                *grows = true;
            }
        }
    }

    fn give_back(&self, amount: u64) {
        self.held.fetch_sub(amount, Relaxed); // first: it is not more than what is counted
        self.limit.sub(amount);
    }

    /// Reads under the lock; some guards end on another thread.
    fn read(&self, context: &ThreadContext) {
        context.begin(Operation::LockRead);
        let guard = match context.below(8) {
            0 => LOCK.try_read(),
            _ => Some(LOCK.read()),
        };
        let Some(guard) = guard else { return };
        expect_whole(context, &guard);
        if context.one_in(64) {
            spin(context.below(2000));
            expect_whole(context, &guard);
        }
        context.did(Operation::LockRead);
        if context.one_in(32)
            && let Some(guards) = &mut *lock(&self.guards)
            && guards.len() < GUARDS
        {
            guards.push(guard);
            context.did(Operation::LockElsewhere);
        }
    }

    /// Sums until the run is over.
    fn sum(&self, context: &ThreadContext) {
        context.rounds(Operation::ExactSum, || {
            context.did(Operation::ExactSum);
            let bounded = |name, sum: &dyn Fn() -> i64| {
                // Acquire, both: pair with the Releases in `add`.
                let (least, sum) = (self.done.load(Acquire), sum());
                fence(Acquire);
                let most = self.promised.load(Relaxed);
                context.expect((least..=most).contains(&sum), FaultKind::Sum, name, || {
                    format!("the sum was {sum} where {least} to {most} had been added")
                });
            };
            bounded("Counter", &|| self.counter.sum());
            bounded("ExactCounter", &|| self.exact.sum());
            bounded("PerCpu", &|| self.slots_sum());
            let balanced = self.balanced.sum();
            let workers = self.workers;
            let is_right = (0..=workers).contains(&balanced);
            context.expect(is_right, FaultKind::Sum, "ExactCounter", || {
                format!("{workers} threads have added one each, and the sum was {balanced}")
            });
            let value = self.limit.value();
            context.expect(value <= LIMIT, FaultKind::Limit, "LimitCounter", || {
                format!("the value was {value} where {LIMIT} is the limit")
            });
            spin(context.below(20_000));
            thread::yield_now();
        });
    }

    fn slots_sum(&self) -> i64 {
        self.slots.iter().fold(0, |sum: i64, slot| sum.wrapping_add(slot.load(Relaxed) as i64))
    }

    /// Writes under the lock until the run is over.
    fn write(&self, context: &ThreadContext) {
        context.rounds(Operation::LockWrite, || {
            let guard = match context.below(4) {
                0 => LOCK.try_write(),
                _ => Some(LOCK.write()),
            };
            if let Some(pair) = guard {
                context.did(Operation::LockWrite);
                self.writes.fetch_add(1, Relaxed);
                expect_whole(context, &pair);
                pair.write();
                expect_whole(context, &pair);
            }
            spin(context.below(5000));
            if context.one_in(4) {
                context.sleep(200);
            }
        });
    }

    /// Ends what others have begun to read, until the run is over.
    fn end_guards(&self, context: &ThreadContext) {
        context.rounds(Operation::LockElsewhere, || {
            let guards = lock(&self.guards).as_mut().map(mem::take);
            guards.iter().flatten().for_each(|guard| expect_whole(context, guard));
            drop(guards);
            context.sleep(100);
        });
        drop(lock(&self.guards).take());
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        let added = self.done.load(Acquire);
        let sums = [self.counter.sum(), self.exact.sum(), self.slots_sum(), self.balanced.sum()];
        context.equal(FaultKind::Sum, "", "sums of counters", sums, [added, added, added, 0]);
        let value = self.limit.value();
        let room = (0..=LIMIT).take_while(|_| self.limit.try_add(1)).count() as u64;
        let left = (value, room);
        context.equal(FaultKind::Limit, "LimitCounter", "value and room", left, (0, LIMIT));
        let pair = LOCK.read();
        let (written, writes) = (pair.0.load(Relaxed), self.writes.load(Relaxed));
        context.equal(FaultKind::Exclusion, "LocalGlobalLock", "writes", written, writes);
        self.references.close(context);
    }
}

/// A counter with a limit that no other thread uses: it is exact, wherever the thread is moved.
fn add_alone(context: &ThreadContext, alone: &LimitCounter, value: &mut u64) {
    for _ in 0..32 {
        let amount = 1 + context.below(6);
        if context.one_in(2) {
            let added = alone.try_add(amount);
            let is_right = added == (*value + amount <= LIMIT_ALONE);
            context.expect(is_right, FaultKind::Limit, "LimitCounter", || {
                format!("at {value} of {LIMIT_ALONE}, adding {amount} was answered by {added}")
            });
            *value += if added { amount } else { 0 };
        } else if amount <= *value {
            alone.sub(amount);
            *value -= amount;
        }
    }
}

fn expect_whole(context: &ThreadContext, pair: &Pair) {
    context.expect(pair.is_whole(), FaultKind::Exclusion, "LocalGlobalLock", || {
        "under the lock two words were different that a writer makes equal".to_owned()
    });
}
