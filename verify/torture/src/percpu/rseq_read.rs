//! Restartable reads: snapshots whose words must belong together, and `Arc`s that count themselves.
//!
//! The words of a snapshot follow from the first one, its *serial*. What is in a cell says whether
//! it is alive. The memory of an object stays for some time after its drop ([`Kept`]), so that a
//! reader that a fault lets have one finds that out, and can count it.

use std::array;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Weak};
use std::thread;
use std::{hint, mem};

use quiescence::{ArcCell, ArcCellOption, ArcGuard, Snapshot, hazard};

use crate::context::ThreadContext;
use crate::delays::spin;
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

/// `Arc`s that a reader keeps for long.
const KEPT_BY_READERS: usize = 64;

/// Objects whose memory stays, and by how many references: each reader that has one which it must
/// not have takes one of them off.
const OBJECTS_KEPT: usize = 512;
const REFERENCES: usize = 16;

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

/// Objects that were made, that were dropped, and that were dropped though they were not alive. In
/// statics: what was dropped too early may not lead anywhere.
static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);
static DROPPED_AGAIN: AtomicU64 = AtomicU64::new(0);

const ALIVE: u64 = 0x616c_6976_6521;
const DEAD: u64 = 0x6465_6164_2121;

/// Counts itself, and knows whether it is alive. No memory but its own.
#[derive(Debug)]
struct Counted {
    life: AtomicU64,
    serial: u64,
    payload: [u64; 2],
}

impl Counted {
    fn new(serial: u64) -> Self {
        MADE.fetch_add(1, Relaxed);
        let payload = [1, 2].map(|i| word(serial, i));
        Self { life: AtomicU64::new(ALIVE), serial, payload }
    }

    fn is_alive(&self) -> bool {
        self.life.load(Relaxed) == ALIVE && self.payload == [1, 2].map(|i| word(self.serial, i))
    }
}

impl quiescence::Weigh for Counted {}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.life.swap(DEAD, Relaxed) != ALIVE {
            DROPPED_AGAIN.fetch_add(1, Relaxed);
        }
        DROPPED.fetch_add(1, Release); // pairs with the Acquire in `Cells::close`
    }
}

/// Keeps the memory of objects, not the objects.
#[derive(Debug, Default)]
struct Kept(VecDeque<[Weak<Counted>; REFERENCES]>);

impl Kept {
    fn keep(&mut self, object: Counted) -> Arc<Counted> {
        let object = Arc::new(object);
        self.0.push_back(array::from_fn(|_| Arc::downgrade(&object)));
        if self.0.len() > OBJECTS_KEPT {
            self.0.pop_front();
        }
        object
    }

    /// For ever: some of the references may be gone already.
    fn forget(&mut self) {
        mem::forget(mem::take(&mut self.0));
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
    cell: ArcCell<Counted>,
    option: ArcCellOption<Counted>,
    /// Each update adds one to the serial.
    chain: ArcCell<Counted>,
    links: AtomicU64,
    serial: AtomicU64,
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            few: Snapshot::new(words(0)),
            reached: AtomicU64::new(0),
            many: Snapshot::new(words(0)),
            balance: AtomicU64::new(0),
            gaps: Snapshot::new(Gaps::new(0)),
            cell: ArcCell::from_pointee(Counted::new(0)),
            option: ArcCellOption::empty(),
            chain: ArcCell::from_pointee(Counted::new(0)),
            links: AtomicU64::new(0),
            serial: AtomicU64::new(1),
        }
    }
}

impl Cells {
    /// Loads until the run is over.
    pub(crate) fn load(&self, context: &ThreadContext, random: &mut Random) {
        let mut kept: VecDeque<ArcGuard<Arc<Counted>>> = VecDeque::new();
        let (mut few, mut link) = (0, 0);
        while !context.is_over() {
            context.begin(Operation::SnapshotLoad);
            for _ in 0..LOADS {
                self.load_snapshots(context, &mut few, random);
                self.load_arcs(context, &mut link, &mut kept, random);
            }
            context.ledger.did(Operation::SnapshotLoad, LOADS);
            context.ledger.did(Operation::ArcLoad, LOADS);
            if has_died_twice(context) {
                mem::forget(kept);
                return;
            }
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

    fn load_arcs(
        &self,
        context: &ThreadContext,
        last: &mut u64,
        kept: &mut VecDeque<ArcGuard<Arc<Counted>>>,
        random: &mut Random,
    ) {
        let loaded = match random.below(4) {
            0 => self.option.load_full().map(ArcGuard::from_inner),
            1 => {
                let link = self.chain.load();
                if link.serial < *last {
                    context.fault(FaultKind::Torn, "ArcCell", || {
                        format!("value {} was loaded after {last} had been", link.serial)
                    });
                }
                *last = link.serial;
                Some(link)
            }
            _ => Some(self.cell.load()),
        };
        let Some(loaded) = loaded else { return };
        expect_alive(context, &loaded);
        if random.one_in(16) {
            spin(random.below(500));
            expect_alive(context, &loaded);
        }
        if random.one_in(32) {
            kept.push_back(loaded);
            if kept.len() > KEPT_BY_READERS
                && let Some(oldest) = kept.pop_front()
            {
                expect_alive(context, &oldest);
            }
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

    /// Replaces `Arc`s until the run is over.
    pub(crate) fn store_arcs(&self, context: &ThreadContext, random: &mut Random) {
        let mut kept = Kept::default();
        while !context.is_over() {
            context.begin(Operation::ArcStore);
            for _ in 0..STORES {
                self.store_arc(context, &mut kept, random);
            }
            if has_died_twice(context) {
                return kept.forget();
            }
            thread::yield_now();
        }
        if context.ledger.faults_total() != 0 {
            kept.forget();
        }
    }

    fn store_arc(&self, context: &ThreadContext, kept: &mut Kept, random: &mut Random) {
        let mut fresh = |serial: u64| kept.keep(Counted::new(serial));
        let serial = || self.serial.fetch_add(1, Relaxed);
        match random.below(8) {
            0..=2 => {
                context.did(Operation::ArcStore);
                self.cell.store(fresh(serial()));
            }
            3 => {
                context.did(Operation::ArcSwap);
                expect_alive(context, &self.cell.swap(fresh(serial())));
            }
            4 => {
                context.did(Operation::ArcOption);
                let new = random.one_in(2).then(|| fresh(serial()));
                let old = self.option.swap(new);
                old.iter().for_each(|old| expect_alive(context, old));
            }
            5 => {
                context.did(Operation::ArcCompare);
                let current = self.chain.load();
                let previous = self.chain.compare_and_swap(&current, fresh(current.serial + 1));
                if Arc::ptr_eq(&previous, ArcGuard::as_inner(&current)) {
                    self.links.fetch_add(1, Relaxed);
                }
                expect_alive(context, &previous);
            }
            6 => {
                context.did(Operation::ArcRcu);
                let previous = self.chain.rcu(|old| fresh(old.serial + 1));
                self.links.fetch_add(1, Relaxed);
                expect_alive(context, &previous);
            }
            _ => {
                context.did(Operation::ArcRcu);
                drop(self.cell.rcu(|old| {
                    expect_alive(context, old);
                    fresh(old.serial)
                }));
            }
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
        let (chain, links) = (self.chain.load().serial, self.links.load(Relaxed));
        if chain != links {
            fault(FaultKind::Sum, format!("{links} updates of an ArcCell came to {chain}"));
        }
        hazard::barrier();
        // Acquire: pairs with the Release in the drop.
        let (made, dropped) = (MADE.load(Relaxed), DROPPED.load(Acquire));
        let there = 2 + u64::from(self.option.load().is_some());
        if made != dropped + there || DROPPED_AGAIN.load(Relaxed) != 0 {
            let detail = format!("{made} objects were made, {dropped} dropped, {there} are there");
            fault(FaultKind::Freed, detail);
        }
    }
}

fn torn(context: &ThreadContext, serial: u64, words: usize) {
    context.fault(FaultKind::Torn, "Snapshot", || {
        format!("not all of the {words} words of a snapshot are those of {serial:#x}")
    });
}

fn expect_alive(context: &ThreadContext, object: &Counted) {
    if !object.is_alive() {
        context.fault(FaultKind::Freed, "ArcCell", || {
            format!("object {} was loaded, or held, and is dropped", object.serial)
        });
    }
}

/// Whether something was dropped that was not alive; this thread had better stop then.
fn has_died_twice(context: &ThreadContext) -> bool {
    let again = DROPPED_AGAIN.load(Relaxed) != 0;
    if again {
        context.fault(FaultKind::Freed, "ArcCell", || "an object was dropped twice".to_owned());
    }
    again || context.ledger.faults(FaultKind::Freed) != 0
}
