//! Cells with exact counts: more guards than a thread has slots, and guards that end in other
//! threads, while what is in the cells is replaced in every way there is, and dropped at once.
//!
//! What a guard has must be alive until the guard ends. When all threads have ended, the objects
//! that are left must be those in the cells: a borrow that was paid twice would keep one more, and
//! one that was not paid would have dropped one.

use std::array;
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;

use quiescence::cell::{ExactCell, ExactGuard};

use super::canary::{self, Kept, Tallied, has_died};
use crate::context::ThreadContext;
use crate::delays::spin;
use crate::kinds::{FaultKind, Operation};
use crate::ledger::Ledger;
use crate::pool::lock;
use crate::random::Random;

/// Loads between two messages to the watchdog; and updates.
const LOADS: u64 = 128;
const STORES: u64 = 16;

/// Cells: few, so that a slot is used for one again and again.
const CELLS: usize = 3;

/// Guards that a thread has at once, at most: more than it has slots.
const GUARDS: usize = 12;

/// Guards on their way to another thread.
const MOVING: usize = 64;

/// Objects that are left.
static LIVE: AtomicU64 = AtomicU64::new(0);

type Guard = ExactGuard<Arc<Tallied>>;

/// The cells.
#[derive(Debug)]
pub(crate) struct ExactCells {
    cells: [ExactCell<Arc<Tallied>>; CELLS],
    option: ExactCell<Option<Arc<Tallied>>>,
    /// Each update adds one to the serial.
    chain: ExactCell<Arc<Tallied>>,
    links: AtomicU64,
    serial: AtomicU64,
    moving: Mutex<Vec<Guard>>,
}

impl Default for ExactCells {
    fn default() -> Self {
        let cell = || ExactCell::new(Arc::new(Tallied::new(0, &LIVE)));
        Self {
            cells: array::from_fn(|_| cell()),
            option: ExactCell::empty(),
            chain: cell(),
            links: AtomicU64::new(0),
            serial: AtomicU64::new(1),
            moving: Mutex::default(),
        }
    }
}

impl ExactCells {
    fn cell(&self, random: &mut Random) -> &ExactCell<Arc<Tallied>> {
        &self.cells[random.below(CELLS as u64) as usize]
    }

    /// Loads from cells until the run is over.
    pub(crate) fn load(&self, context: &ThreadContext, random: &mut Random) {
        let mut held: Vec<(Guard, u64)> = Vec::new();
        let mut last = 0;
        while !context.is_over() {
            context.begin(Operation::ExactLoad);
            for _ in 0..LOADS {
                self.load_one(context, &mut held, &mut last, random);
            }
            context.ledger.did(Operation::ExactLoad, LOADS);
            if has_died(context) {
                // What they have borrowed may be gone already.
                mem::forget(held);
                return;
            }
            if random.one_in(4) {
                thread::yield_now();
            }
        }
    }

    fn load_one(
        &self,
        context: &ThreadContext,
        held: &mut Vec<(Guard, u64)>,
        last: &mut u64,
        random: &mut Random,
    ) {
        let guard = match random.below(8) {
            0 => {
                if let Some(object) = &*self.option.load() {
                    object.loaded(context, "ExactCell<Option>");
                }
                return;
            }
            1 => {
                let link = self.chain.load();
                if link.serial() < *last {
                    context.fault(FaultKind::Torn, "ExactCell", || {
                        format!("value {} was loaded after {last} had been", link.serial())
                    });
                }
                *last = link.serial();
                link
            }
            2 => ExactGuard::from_inner(self.cell(random).load_full()),
            _ => self.cell(random).load(),
        };
        let serial = guard.loaded(context, "ExactCell");
        if random.one_in(16) {
            spin(random.below(500));
            guard.expect(context, "ExactCell", serial);
        }
        match random.below(64) {
            0..=3 => self.give_away(context, guard),
            4 => ExactGuard::into_inner(guard).expect(context, "ExactCell", serial),
            5..=8 => {
                held.push((guard, serial));
                if held.len() > GUARDS {
                    // Not in the order in which they came.
                    let (guard, serial) = held.swap_remove(random.below(GUARDS as u64) as usize);
                    guard.expect(context, "ExactCell", serial);
                }
            }
            _ => {}
        }
    }

    /// Sends a guard to whichever thread takes it.
    fn give_away(&self, context: &ThreadContext, guard: Guard) {
        let mut moving = lock(&self.moving);
        if moving.len() < MOVING && !has_died(context) {
            moving.push(guard);
        }
    }

    /// Ends guards of others until the run is over.
    pub(crate) fn keep(&self, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() {
            context.begin(Operation::ExactElsewhere);
            let mut came = mem::take(&mut *lock(&self.moving));
            spin(random.below(2_000));
            for guard in &came {
                guard.loaded(context, "ExactCell");
            }
            if has_died(context) {
                mem::forget(came);
                return;
            }
            context.ledger.did(Operation::ExactElsewhere, came.len() as u64);
            while !came.is_empty() {
                drop(came.swap_remove(random.below(came.len() as u64) as usize));
            }
            thread::yield_now();
        }
    }

    /// Replaces what is in cells until the run is over.
    pub(crate) fn store(&self, context: &ThreadContext, random: &mut Random) {
        Kept::update(context, Operation::ExactStore, STORES, |kept| {
            self.store_one(context, kept, random);
        });
    }

    fn store_one(&self, context: &ThreadContext, kept: &mut Kept<Tallied>, random: &mut Random) {
        let mut fresh = |serial: u64| kept.keep(Tallied::new(serial, &LIVE));
        let next_serial = || self.serial.fetch_add(1, Relaxed);
        match random.below(8) {
            0..=2 => {
                context.did(Operation::ExactStore);
                self.cell(random).store(fresh(next_serial()));
            }
            3 => {
                context.did(Operation::ExactSwap);
                self.cell(random).swap(fresh(next_serial())).loaded(context, "ExactCell");
            }
            4 => {
                context.did(Operation::ExactOption);
                let new = random.one_in(2).then(|| fresh(next_serial()));
                if let Some(old) = self.option.swap(new) {
                    old.loaded(context, "ExactCell<Option>");
                }
            }
            5 => {
                context.did(Operation::ExactCompare);
                let current = self.chain.load();
                let new = fresh(current.serial() + 1);
                let was = self.chain.compare_and_swap(Arc::as_ptr(&current), new);
                if Arc::ptr_eq(&was, &current) {
                    self.links.fetch_add(1, Relaxed);
                }
                was.loaded(context, "ExactCell");
            }
            6 => {
                context.did(Operation::ExactRcu);
                let was = self.chain.rcu(|old| fresh(old.serial() + 1));
                self.links.fetch_add(1, Relaxed);
                was.loaded(context, "ExactCell");
            }
            _ => {
                // One object in two cells, and back where it was.
                context.did(Operation::ExactShared);
                let (from, to) = (self.cell(random), self.cell(random));
                let shared = from.load_full();
                to.store(Arc::clone(&shared));
                from.store(shared);
            }
        }
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        let fault = |kind, detail: String| ledger.fault(kind, "", None, None, || detail);
        if ledger.faults(FaultKind::Freed) != 0 {
            return mem::forget(mem::take(&mut *lock(&self.moving)));
        }
        lock(&self.moving).clear();
        let (chain, links) = (self.chain.load().serial(), self.links.load(Relaxed));
        if chain != links {
            fault(FaultKind::Sum, format!("{links} updates of an ExactCell came to {chain}"));
        }
        let mut there: Vec<_> =
            self.cells.iter().map(|cell| Arc::as_ptr(&cell.load_full())).collect();
        there.sort_unstable();
        there.dedup(); // one may be in several
        let there = (there.len() + 1 + usize::from(self.option.load().is_some())) as u64;
        let left = canary::left(&LIVE);
        if left != there {
            let detail = format!("{left} objects are left, {there} are in exact cells");
            fault(FaultKind::Freed, detail);
        }
    }
}
