//! Sequence locks and latches: words that must belong together, and updates that must not be lost.
//!
//! The words of a value follow from the first one, its *serial*, which each update increments. So
//! a reader finds a value that is torn, and one that is older than what it knows to be there.

use std::hint;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;

use quiescence::sync::{Latch, SeqLock};

use super::rseq_read::{word, words};
use crate::context::ThreadContext;
use crate::delays::spin;
use crate::kinds::{FaultKind, Operation};
use crate::ledger::Ledger;
use crate::random::Random;

/// Reads, and writes, between two messages to the watchdog.
const READS: u64 = 128;
const WRITES: u64 = 32;

/// Words of the values: a few, and so many that a copy takes a while.
const FEW: usize = 4;
const MANY: usize = 768;

/// A serial that was reached, by updates that have returned.
#[derive(Debug, Default)]
struct Reached(AtomicU64);

impl Reached {
    fn reach(&self, serial: u64) {
        // Release: pairs with the Acquire in `get`.
        self.0.fetch_max(serial, Release);
    }

    fn get(&self) -> u64 {
        // Acquire: pairs with the Release in `reach`; what was written then is there.
        self.0.load(Acquire)
    }
}

/// What is read and written.
#[derive(Debug)]
pub(crate) struct Sequences {
    few: SeqLock<[u64; FEW]>,
    many: SeqLock<[u64; MANY]>,
    latch: Latch<[u64; FEW]>,
    many_latch: Latch<[u64; MANY]>,
    few_reached: Reached,
    latch_reached: Reached,
}

impl Default for Sequences {
    fn default() -> Self {
        Self {
            few: SeqLock::new(words(0)),
            many: SeqLock::new(words(0)),
            latch: Latch::new(words(0)),
            many_latch: Latch::new(words(0)),
            few_reached: Reached::default(),
            latch_reached: Reached::default(),
        }
    }
}

/// What a reader has read last, of each.
#[derive(Default)]
struct Last {
    few: u64,
    many: u64,
    latch: u64,
    many_latch: u64,
}

impl Sequences {
    /// Reads until the run is over.
    pub(crate) fn read(&self, context: &ThreadContext, random: &mut Random) {
        let mut last = Last::default();
        while !context.is_over() {
            context.begin(Operation::SeqRead);
            for _ in 0..READS {
                self.read_locks(context, &mut last, random);
                self.read_latches(context, &mut last, random);
            }
            context.ledger.did(Operation::SeqRead, READS);
            context.ledger.did(Operation::LatchRead, READS);
            if random.one_in(4) {
                thread::yield_now();
            }
        }
    }

    fn read_locks(&self, context: &ThreadContext, last: &mut Last, random: &mut Random) {
        let reached = self.few_reached.get();
        let few = match random.below(8) {
            0 => self.few.try_read(),
            _ => Some(self.few.read()),
        };
        if let Some(few) = few {
            expect_whole(context, "SeqLock", &few, &mut last.few, reached);
        }
        if random.one_in(4) {
            let many = hint::black_box(&self.many).read();
            expect_whole(context, "SeqLock", &many, &mut last.many, 0);
        }
    }

    fn read_latches(&self, context: &ThreadContext, last: &mut Last, random: &mut Random) {
        let reached = self.latch_reached.get();
        expect_whole(context, "Latch", &self.latch.read(), &mut last.latch, reached);
        if random.one_in(4) {
            let many = hint::black_box(&self.many_latch).read();
            expect_whole(context, "Latch", &many, &mut last.many_latch, 0);
        }
    }

    /// Writes until the run is over.
    pub(crate) fn write(&self, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() {
            context.begin(Operation::SeqWrite);
            for _ in 0..WRITES {
                match random.below(8) {
                    0 => {
                        let mut guard = self.few.lock();
                        for _ in 0..random.below(4) {
                            let serial = guard[0] + 1;
                            guard.set(words(serial));
                            context.did(Operation::SeqWrite);
                            spin(random.below(200));
                        }
                        // What is set is reached when the lock is let go.
                        let serial = guard[0];
                        drop(guard);
                        self.few_reached.reach(serial);
                    }
                    1 => {
                        self.many.update(|old| words(old[0] + 1));
                    }
                    2 => {
                        self.many_latch.update(|old| words(old[0] + 1));
                    }
                    3..=5 => {
                        let old = self.latch.update(|old| words(old[0] + 1));
                        self.latch_reached.reach(old[0] + 1);
                        context.did(Operation::LatchWrite);
                    }
                    _ => {
                        let old = self.few.update(|old| words(old[0] + 1));
                        self.few_reached.reach(old[0] + 1);
                        context.did(Operation::SeqWrite);
                    }
                }
            }
            if random.one_in(4) {
                thread::yield_now();
            }
        }
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        for (what, serial, operation) in [
            ("sequence lock", self.few.read()[0], Operation::SeqWrite),
            ("latch", self.latch.read()[0], Operation::LatchWrite),
        ] {
            let done = ledger.done(operation);
            if serial != done {
                ledger.fault(FaultKind::Sum, "", None, None, || {
                    format!("{done} updates of a {what} came to {serial}")
                });
            }
        }
    }
}

/// Looks at a value that was read when `reached` had been reached.
fn expect_whole<const N: usize>(
    context: &ThreadContext,
    what: &str,
    value: &[u64; N],
    last: &mut u64,
    reached: u64,
) {
    let serial = value[0];
    if (1..N).any(|i| value[i] != word(serial, i)) {
        context.fault(FaultKind::Torn, what, || {
            format!("not all of {N} words are those of {serial:#x}")
        });
    } else if serial < reached.max(*last) {
        let known = reached.max(*last);
        context.fault(FaultKind::Torn, what, || {
            format!("value {serial} was read after {known} had been written")
        });
    }
    *last = serial;
}
