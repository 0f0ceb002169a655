//! The per-CPU tools: counters whose sums are compared with bounds that are known, a limit,
//! references that are given out while somebody kills, and a lock around two words that belong
//! together.

use std::collections::VecDeque;
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64, fence};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use quiescence::sync::{
    Counter, ExactCounter, LimitCounter, LocalGlobalLock, LocalGlobalReadGuard, PerCpu,
};

use super::references::{Held, References};
use crate::context::ThreadContext;
use crate::delays::spin;
use crate::kinds::{FaultKind, Operation};
use crate::ledger::Ledger;
use crate::pool::lock;
use crate::random::Random;

/// Rounds between two messages to the watchdog.
const ROUNDS: u64 = 16;

/// Additions to a counter in a row.
const ADDITIONS_MAX: u64 = 64;

/// The limit of the counter that all share, so that it is reached; and of one that a thread has
/// alone.
const LIMIT: u64 = 3_000;
const LIMIT_ALONE: u64 = 300;

/// Guards on their way to where they end.
const GUARDS: usize = 4;

/// How long the thread that ends guards waits for one.
const WAIT: Duration = Duration::from_millis(20);

/// Two words that are equal when no thread writes.
#[derive(Debug)]
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

/// What a worker has.
#[derive(Debug)]
struct Holdings {
    /// Of the limit that all share.
    shared: Vec<u64>,
    grows: bool,
    alone: LimitCounter,
    alone_value: u64,
    handles: VecDeque<Held>,
}

/// The tools.
#[derive(Debug)]
pub(crate) struct Tools {
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
    guards: SyncSender<Guard>,
    ends: Mutex<Option<Receiver<Guard>>>,
}

impl Tools {
    /// For so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let (guards, ends) = sync_channel(GUARDS);
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
            guards,
            ends: Mutex::new(Some(ends)),
        }
    }

    /// Adds, takes, refers and reads until the run is over.
    pub(crate) fn work(&self, context: &ThreadContext, random: &mut Random) {
        let mut holdings = Holdings {
            shared: Vec::new(),
            grows: true,
            alone: LimitCounter::new(LIMIT_ALONE),
            alone_value: 0,
            handles: VecDeque::new(),
        };
        while !context.is_over() {
            context.begin(Operation::CounterAdd);
            for _ in 0..ROUNDS {
                self.add(context, random);
                self.add_within_limit(context, &mut holdings, random);
                add_alone(context, &mut holdings, random);
                self.read(context, random);
                if !self.references.refer(context, &mut holdings.handles, random) {
                    mem::forget(holdings.handles);
                    return;
                }
            }
            if random.one_in(8) {
                thread::yield_now();
            }
        }
        while let Some(amount) = holdings.shared.pop() {
            self.give_back(amount);
        }
    }

    fn add(&self, context: &ThreadContext, random: &mut Random) {
        let count = 1 + random.below(ADDITIONS_MAX);
        let amount = 1 + random.below(100) as i64;
        let total = amount * count as i64;
        self.promised.fetch_add(total, Relaxed);
        // Release: pairs with the Acquire in `expect_between`; a thread that sees an addition sees
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
        context.ledger.did(Operation::CounterAdd, count);
    }

    /// Adds as long as there is room, then subtracts for a while.
    fn add_within_limit(
        &self,
        context: &ThreadContext,
        holdings: &mut Holdings,
        random: &mut Random,
    ) {
        for _ in 0..random.below(16) {
            if holdings.grows {
                let amount = 1 + random.below(8);
                if !self.limit.try_add(amount) {
                    context.did(Operation::LimitRefused);
                    holdings.grows = false;
                    continue;
                }
                context.did(Operation::LimitAdd);
                let held = self.held.fetch_add(amount, Relaxed) + amount;
                if held > LIMIT {
                    context.fault(FaultKind::Limit, "LimitCounter", || {
                        format!("{held} was added where {LIMIT} may be")
                    });
                }
                holdings.shared.push(amount);
            } else if let Some(amount) = holdings.shared.pop() {
                self.give_back(amount);
                holdings.grows = random.one_in(200);
            } else {
                holdings.grows = true;
            }
        }
    }

    fn give_back(&self, amount: u64) {
        self.held.fetch_sub(amount, Relaxed); // first: it is not more than what is counted
        self.limit.sub(amount);
    }

    /// Reads under the lock; some guards end on another thread.
    fn read(&self, context: &ThreadContext, random: &mut Random) {
        let guard = match random.below(8) {
            0 => LOCK.try_read(),
            _ => Some(LOCK.read()),
        };
        let Some(guard) = guard else { return };
        expect_whole(context, &guard);
        if random.one_in(64) {
            spin(random.below(2000));
            expect_whole(context, &guard);
        }
        context.did(Operation::LockRead);
        if random.one_in(32) {
            // Where no thread takes it, it ends here.
            let sent = self.guards.try_send(guard).is_ok();
            context.ledger.did(Operation::LockElsewhere, u64::from(sent));
        }
    }

    /// Kills big references until the run is over.
    pub(crate) fn kill(&self, context: &ThreadContext, random: &mut Random) {
        self.references.kill(context, random);
    }

    /// Sums until the run is over.
    pub(crate) fn sum(&self, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() {
            context.begin(Operation::ExactSum);
            context.did(Operation::ExactSum);
            let bounded = |name, sum: &dyn Fn() -> i64| {
                // Acquire: pairs with the Release in `add`.
                let least = self.done.load(Acquire);
                let sum = sum();
                self.expect_between(context, name, least, sum);
            };
            bounded("Counter", &|| self.counter.sum());
            bounded("ExactCounter", &|| self.exact.sum());
            bounded("PerCpu", &|| self.slots_sum());
            let balanced = self.balanced.sum();
            if !(0..=self.workers).contains(&balanced) {
                context.fault(FaultKind::Sum, "ExactCounter", || {
                    format!(
                        "{} threads have added one each, and the sum was {balanced}",
                        self.workers
                    )
                });
            }
            let value = self.limit.value();
            if value > LIMIT {
                context.fault(FaultKind::Limit, "LimitCounter", || {
                    format!("the value was {value} where {LIMIT} is the limit")
                });
            }
            spin(random.below(20_000));
            thread::yield_now();
        }
    }

    fn slots_sum(&self) -> i64 {
        self.slots.iter().fold(0, |sum: i64, slot| sum.wrapping_add(slot.load(Relaxed) as i64))
    }

    fn expect_between(&self, context: &ThreadContext, name: &str, least: i64, sum: i64) {
        // Acquire: pairs with the Release in `add`.
        fence(Acquire);
        let most = self.promised.load(Relaxed);
        if !(least..=most).contains(&sum) {
            context.fault(FaultKind::Sum, name, || {
                format!(
                    "the sum was {sum} where at least {least} had been added and at most {most}"
                )
            });
        }
    }

    /// Writes under the lock until the run is over.
    pub(crate) fn write(&self, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() {
            context.begin(Operation::LockWrite);
            let guard = match random.below(4) {
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
            spin(random.below(5000));
            if random.one_in(4) {
                thread::sleep(Duration::from_micros(random.below(200)));
            }
        }
    }

    /// Ends what others have begun to read, until the run is over.
    pub(crate) fn end_guards(&self, context: &ThreadContext) {
        let Some(ends) = lock(&self.ends).take() else { return };
        loop {
            context.begin(Operation::LockElsewhere);
            match ends.recv_timeout(WAIT) {
                Ok(guard) => expect_whole(context, &guard),
                Err(RecvTimeoutError::Timeout) if !context.is_over() => {}
                // Those that are still sent end with the channel.
                Err(_) => return,
            }
        }
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        let fault = |kind, detail: String| ledger.fault(kind, "", None, None, || detail);
        let added = self.done.load(Acquire);
        let sums = [self.counter.sum(), self.exact.sum(), self.slots_sum(), self.balanced.sum()];
        if sums != [added, added, added, 0] {
            fault(FaultKind::Sum, format!("{added} was added to three counters: {sums:?}"));
        }
        let (value, room) = (self.limit.value(), (0..=LIMIT).take_while(|_| self.limit.try_add(1)));
        let room = room.count() as u64;
        if value != 0 || room != LIMIT {
            fault(
                FaultKind::Limit,
                format!("{value} was left of a limit of {LIMIT}, {room} fitted"),
            );
        }
        let pair = LOCK.read();
        let (written, writes) = (pair.0.load(Relaxed), self.writes.load(Relaxed));
        if written != writes {
            fault(FaultKind::Exclusion, format!("{writes} times was written, {written} are there"));
        }
        self.references.close(ledger);
    }
}

/// A counter with a limit that no other thread uses: it is exact, wherever the thread is moved.
fn add_alone(context: &ThreadContext, holdings: &mut Holdings, random: &mut Random) {
    let Holdings { alone, alone_value: value, .. } = holdings;
    for _ in 0..32 {
        let amount = 1 + random.below(6);
        if random.one_in(2) {
            let added = alone.try_add(amount);
            if added != (*value + amount <= LIMIT_ALONE) {
                context.fault(FaultKind::Limit, "LimitCounter", || {
                    format!("at {value} of {LIMIT_ALONE}, adding {amount} was answered by {added}")
                });
            }
            *value += if added { amount } else { 0 };
        } else if amount <= *value {
            alone.sub(amount);
            *value -= amount;
        }
    }
}

fn expect_whole(context: &ThreadContext, pair: &Pair) {
    if !pair.is_whole() {
        context.fault(FaultKind::Exclusion, "LocalGlobalLock", || {
            "under the lock two words were different that a writer makes equal".to_owned()
        });
    }
}
