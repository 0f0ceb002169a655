//! Restartable reads: snapshots whose words must belong together. They follow from the first one,
//! the *serial*.

use std::array;
use std::hint;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

use quiescence::cell::Snapshot;

use crate::context::ThreadContext;
use crate::kinds::{FaultKind, Operation};
use crate::ledger::Ledger;
use crate::random::{Random, scramble};

/// Loads between two messages to the watchdog.
const LOADS: u64 = 128;

/// Stores between two.
const STORES: u64 = 16;

/// Words of the snapshots: a few, and so many that a copy takes a while.
const FEW: usize = 4;
const MANY: usize = 768;

/// The words that go with a serial.
pub(super) fn words<const N: usize>(serial: u64) -> [u64; N] {
    array::from_fn(|i| if i == 0 { serial } else { word(serial, i) })
}

pub(super) fn word(serial: u64, i: usize) -> u64 {
    scramble(serial.wrapping_mul(31).wrapping_add(i as u64))
}

/// Has bytes between its fields that are no thread's.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    low: u8,
    serial: u64,
    check: u16,
}

impl Gaps {
    fn new(serial: u64) -> Self {
        Self { low: serial as u8, serial, check: word(serial, 1) as u16 }
    }

    fn is_whole(self) -> bool {
        let Self { low, check, .. } = Self::new(self.serial);
        (self.low, self.check) == (low, check)
    }
}

/// The places.
#[derive(Debug)]
pub(crate) struct Cells {
    /// Each update adds one to the serial.
    few: Snapshot<[u64; FEW]>,
    /// A serial that it has reached.
    reached: AtomicU64,
    /// What was put there, less what was taken out and what is there: nothing.
    many: Snapshot<[u64; MANY]>,
    balance: AtomicU64,
    gaps: Snapshot<Gaps>,
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            few: Snapshot::new(words(0)),
            reached: AtomicU64::new(0),
            many: Snapshot::new(words(0)),
            balance: AtomicU64::new(0),
            gaps: Snapshot::new(Gaps::new(0)),
        }
    }
}

impl Cells {
    /// Loads until the run is over.
    pub(crate) fn load(&self, context: &ThreadContext, random: &mut Random) {
        let mut few = 0;
        while !context.is_over() {
            context.begin(Operation::SnapshotLoad);
            for _ in 0..LOADS {
                self.load_snapshots(context, &mut few, random);
            }
            context.ledger.did(Operation::SnapshotLoad, LOADS);
            if random.one_in(4) {
                thread::yield_now();
            }
        }
    }

    fn load_snapshots(&self, context: &ThreadContext, last: &mut u64, random: &mut Random) {
        // Acquire: pairs with the Release in `store`; what had been reached then is there.
        let reached = self.reached.load(Acquire).max(*last);
        let few = self.few.load();
        if few != words(few[0]) {
            torn(context, few[0], FEW);
        }
        if few[0] < reached {
            context.fault(FaultKind::Torn, "Snapshot", || {
                format!("value {} was loaded after {reached} had been", few[0])
            });
        }
        *last = few[0];
        if random.one_in(4) {
            let many = hint::black_box(&self.many).load();
            if (1..MANY).any(|i| many[i] != word(many[0], i)) {
                torn(context, many[0], MANY);
            }
        }
        if !self.gaps.load().is_whole() {
            torn(context, 0, 2);
        }
    }

    /// Replaces snapshots until the run is over.
    pub(crate) fn store(&self, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() {
            context.begin(Operation::SnapshotStore);
            for _ in 0..STORES {
                match random.below(4) {
                    0 => {
                        context.did(Operation::SnapshotUpdate);
                        let old = self.few.update(|old| words(old[0] + 1));
                        // Release: pairs with the Acquire in `load_snapshots`.
                        self.reached.fetch_max(old[0] + 1, Release);
                    }
                    1 => {
                        context.did(Operation::SnapshotStore);
                        self.gaps.store(Gaps::new(random.next()));
                    }
                    _ => {
                        context.did(Operation::SnapshotSwap);
                        let new = random.next();
                        let old = self.many.swap(words(new));
                        if (1..MANY).any(|i| old[i] != word(old[0], i)) {
                            torn(context, old[0], MANY);
                        }
                        self.balance.fetch_add(new.wrapping_sub(old[0]), Relaxed);
                    }
                }
            }
            thread::yield_now();
        }
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        let fault = |kind, detail: String| ledger.fault(kind, "", None, None, || detail);
        let (few, reached) = (self.few.load()[0], ledger.done(Operation::SnapshotUpdate));
        if few != reached {
            fault(FaultKind::Sum, format!("{reached} updates of a snapshot came to {few}"));
        }
        let (many, balance) = (self.many.load()[0], self.balance.load(Relaxed));
        if many != balance {
            fault(FaultKind::Sum, format!("of a snapshot {balance:#x} is left, and not {many:#x}"));
        }
    }
}

fn torn(context: &ThreadContext, serial: u64, words: usize) {
    context.fault(FaultKind::Torn, "Snapshot", || {
        format!("not all of the {words} words of a snapshot are those of {serial:#x}")
    });
}
