//! Hazard pointers, and the cells that stand on them: guards by the dozen, guards that end in other
//! threads, guards that live for seconds among millions of loads, guards that outlive the thread
//! that took them; cells that are replaced in every way there is; and bare pointers whose objects
//! are retired in the global domain, in one with hardly any room, and in some that end meanwhile.

use std::array;
use std::collections::VecDeque;
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use quiescence::cell::Cache;
use quiescence::hazard::{self, HazardDomain, HazardPointer};
use quiescence::{
    ArcCell,
    cell::{ArcCellOption, ArcGuard},
};

use super::canary::{self, Canary, Kept, has_died};
use crate::context::ThreadContext;
use crate::deferral::tuning;
use crate::delays::{self, spin};
use crate::kinds::{FaultKind, Operation};
use crate::ledger::Ledger;
use crate::passing::at_the_end;
use crate::pool::lock;
use crate::random::Random;

/// Loads between two messages to the watchdog; and stores.
const LOADS: u64 = 128;
const STORES: u64 = 16;

/// Cells, and bare pointers.
const CELLS: usize = 16;
const PLACES: usize = 4;

/// Guards that a thread has at once, at most: more than it has slots.
const GUARDS: usize = 20;

/// Guards on their way to another thread.
const MOVING: usize = 64;

/// Guards that are kept for long, and how long at most.
const KEPT: usize = 256;
const KEPT_MAX_MS: u64 = 2_500;

/// Lines that are written just before a protection: what it stores waits behind them, in the CPU's
/// store buffer.
const LINES: usize = 24;

/// Objects that the small domain has room for.
const ROOM: u64 = 2;

type Guard = ArcGuard<Arc<Canary>>;

/// A cache line that several threads write.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// The cells and pointers.
#[derive(Debug)]
pub(crate) struct Hazards {
    cells: [ArcCell<Canary>; CELLS],
    option: ArcCellOption<Canary>,
    /// Each update adds one to the serial.
    chain: ArcCell<Canary>,
    links: AtomicU64,
    serial: AtomicU64,
    /// From boxes, never null. The objects of the first are retired in the small domain.
    places: [AtomicPtr<Canary>; PLACES],
    small: HazardDomain,
    lines: [Line; LINES],
    moving: Mutex<Vec<Guard>>,
}

fn boxed(serial: u64) -> *mut Canary {
    Box::into_raw(Box::new(Canary::new(serial)))
}

impl Default for Hazards {
    fn default() -> Self {
        let small = HazardDomain::named("torture");
        small.tune(tuning(ROOM, 1 << 20));
        Self {
            cells: array::from_fn(|_| ArcCell::from_pointee(Canary::new(0))),
            option: ArcCellOption::empty(),
            chain: ArcCell::from_pointee(Canary::new(0)),
            links: AtomicU64::new(0),
            serial: AtomicU64::new(1),
            places: array::from_fn(|_| AtomicPtr::new(boxed(0))),
            small,
            lines: array::from_fn(|_| Line::default()),
            moving: Mutex::default(),
        }
    }
}

/// A guard that is had for a while, and the serial of its object.
#[derive(Debug)]
struct Held(Guard, u64);

impl Held {
    fn new(context: &ThreadContext, guard: Guard) -> Self {
        let serial = guard.loaded(context, "ArcCell");
        Self(guard, serial)
    }

    fn expect(&self, context: &ThreadContext) {
        self.0.expect(context, "ArcCell", self.1);
    }
}

impl Hazards {
    fn cell(&self, random: &mut Random) -> &ArcCell<Canary> {
        &self.cells[random.below(CELLS as u64) as usize]
    }

    fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Relaxed)
    }

    /// Loads from cells until the run is over.
    pub(crate) fn load(&self, context: &ThreadContext, random: &mut Random) {
        let mut held: VecDeque<Held> = VecDeque::new();
        let mut cache = Cache::new(&self.cells[0]);
        let mut last = 0;
        while !context.is_over() {
            context.begin(Operation::ArcLoad);
            for _ in 0..LOADS {
                self.load_one(context, &mut held, &mut last, random);
            }
            context.ledger.did(Operation::ArcLoad, LOADS);
            cache.load().loaded(context, "Cache");
            context.did(Operation::ArcCache);
            if has_died(context) {
                // What they protect may be gone already.
                mem::forget((held, cache));
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
        held: &mut VecDeque<Held>,
        last: &mut u64,
        random: &mut Random,
    ) {
        let guard = match random.below(8) {
            0 => match self.option.load_full() {
                Some(full) => ArcGuard::from_inner(full),
                None => return,
            },
            1 => {
                let link = self.chain.load();
                if link.serial() < *last {
                    context.fault(FaultKind::Torn, "ArcCell", || {
                        format!("value {} was loaded after {last} had been", link.serial())
                    });
                }
                *last = link.serial();
                link
            }
            2 => ArcGuard::from_inner(self.cell(random).load_full()),
            _ => self.cell(random).load(),
        };
        let one = Held::new(context, guard);
        if random.one_in(16) {
            spin(random.below(500));
            one.expect(context);
        }
        match random.below(64) {
            0 => self.give_away(context, one),
            1 => {
                let full = ArcGuard::into_inner(one.0);
                full.expect(context, "ArcCell", one.1);
            }
            2..=5 => {
                held.push_back(one);
                if held.len() > GUARDS {
                    // Not in the order in which they came.
                    let oldest = held.swap_remove_back(random.below(GUARDS as u64) as usize);
                    oldest.iter().for_each(|one| one.expect(context));
                }
            }
            _ => {}
        }
    }

    /// Sends a guard to whichever thread takes it.
    fn give_away(&self, context: &ThreadContext, one: Held) {
        let mut moving = lock(&self.moving);
        if moving.len() < MOVING && !has_died(context) {
            moving.push(one.0);
        }
    }

    /// Takes guards from others and keeps them, some for seconds, until the run is over.
    pub(crate) fn keep(&self, context: &ThreadContext, random: &mut Random) {
        let mut kept: Vec<(Held, Instant)> = Vec::new();
        while !context.is_over() {
            context.begin(Operation::ArcElsewhere);
            let came = mem::take(&mut *lock(&self.moving));
            let now = Instant::now();
            for guard in came {
                let until = now + Duration::from_millis(random.below_mostly_low(KEPT_MAX_MS));
                let one = Held::new(context, guard);
                context.did(Operation::ArcElsewhere);
                if kept.len() < KEPT {
                    kept.push((one, until));
                }
            }
            kept.iter().for_each(|(one, _)| one.expect(context));
            if has_died(context) {
                mem::forget(kept);
                return;
            }
            kept.retain(|(_, until)| *until > now);
            thread::sleep(Duration::from_micros(random.below(500)));
        }
    }

    /// Starts threads that load and end, with guards that outlive them, until the run is over.
    pub(crate) fn come_and_go(self: &Arc<Self>, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() {
            context.begin(Operation::ArcShort);
            let (hazards, own, seed) = (Arc::clone(self), context.clone(), random.next());
            let short = move || {
                delays::seed_thread(seed);
                let loads = move || hazards.hand_out(&own, seed);
                if seed.is_multiple_of(8) { at_the_end(loads) } else { loads() }
            };
            if let Ok(thread) = thread::Builder::new().spawn(short) {
                // A panic shows as objects that were never dropped, and on standard error.
                let _ = thread.join();
            }
            context.did(Operation::ArcShort);
            if has_died(context) {
                return;
            }
        }
    }

    /// Loads some guards, more than there are slots perhaps, and gives some of them away.
    fn hand_out(&self, context: &ThreadContext, seed: u64) {
        let mut random = Random::from_state(seed);
        let guards = 1 + random.below(GUARDS as u64);
        let guards = (0..guards).map(|_| Held::new(context, self.cell(&mut random).load()));
        let guards: Vec<Held> = guards.collect();
        for one in guards {
            one.expect(context);
            if random.one_in(2) {
                self.give_away(context, one);
            }
        }
    }

    /// Replaces `Arc`s until the run is over.
    pub(crate) fn store(&self, context: &ThreadContext, random: &mut Random) {
        Kept::update(context, Operation::ArcStore, STORES, |kept| {
            self.store_one(context, kept, random);
        });
    }

    fn store_one(&self, context: &ThreadContext, kept: &mut Kept<Canary>, random: &mut Random) {
        let mut fresh = |serial: u64| kept.keep(Canary::new(serial));
        let expect = |old: &Canary| {
            old.loaded(context, "ArcCell");
        };
        match random.below(10) {
            0..=2 => {
                context.did(Operation::ArcStore);
                self.cell(random).store(fresh(self.next_serial()));
            }
            3 => {
                context.did(Operation::ArcSwap);
                expect(&self.cell(random).swap(fresh(self.next_serial())));
            }
            4 => {
                context.did(Operation::ArcOption);
                let new = random.one_in(2).then(|| fresh(self.next_serial()));
                self.option.swap(new).iter().for_each(|old| expect(old));
            }
            5 => {
                context.did(Operation::ArcTake);
                self.option.take().iter().for_each(|old| expect(old));
            }
            6 => {
                context.did(Operation::ArcCompare);
                let current = self.chain.load();
                let new = fresh(current.serial() + 1);
                let previous = self.chain.compare_and_swap(&current, new);
                if Arc::ptr_eq(&previous, ArcGuard::as_inner(&current)) {
                    self.links.fetch_add(1, Relaxed);
                }
                expect(&previous);
            }
            7 => {
                context.did(Operation::ArcRcu);
                let previous = self.chain.rcu(|old| fresh(old.serial() + 1));
                self.links.fetch_add(1, Relaxed);
                expect(&previous);
            }
            8 => {
                // One object in two cells, and back where it was.
                context.did(Operation::ArcShared);
                let (from, to) = (self.cell(random), self.cell(random));
                let shared = from.load_full();
                to.store(Arc::clone(&shared));
                from.store(shared);
            }
            _ => {
                context.did(Operation::ArcRcu);
                drop(self.cell(random).rcu(|old| {
                    expect(old);
                    fresh(self.next_serial())
                }));
            }
        }
    }

    /// Protects what bare pointers lead to until the run is over.
    pub(crate) fn protect(&self, context: &ThreadContext, random: &mut Random) {
        let mut holders: [HazardPointer; 2] = array::from_fn(|_| HazardPointer::new());
        let mut domains = 0_u64;
        while !context.is_over() {
            context.begin(Operation::HazardProtect);
            for round in 0..LOADS {
                let [first, second] = &mut holders;
                // Both of the same one now and then.
                let place = &self.places[random.below_mostly_low(PLACES as u64) as usize];
                if round % 2 == 0 {
                    self.lines.iter().for_each(|line| line.0.store(round, Relaxed));
                }
                // SAFETY: what is there is from a box, and is retired after it was taken out.
                let Some(one) = (unsafe { first.protect(place) }) else { continue };
                let serial = one.loaded(context, "HazardPointer");
                if random.one_in(8) {
                    let expected = one.as_ptr().as_ptr();
                    // SAFETY: as above.
                    if let Ok(Some(again)) = unsafe { second.try_protect(place, expected) } {
                        drop(one);
                        spin(random.below(500));
                        again.expect(context, "HazardPointer", serial);
                    }
                } else {
                    if random.one_in(16) {
                        spin(random.below(500));
                    }
                    one.expect(context, "HazardPointer", serial);
                }
            }
            context.ledger.did(Operation::HazardProtect, LOADS);
            domains += 1;
            if domains.is_multiple_of(64) {
                holders = array::from_fn(|_| HazardPointer::new());
                end_domain(context, &mut holders[0], random);
            }
            if has_died(context) {
                return;
            }
        }
    }

    /// Replaces what bare pointers lead to, and retires it, until the run is over.
    pub(crate) fn retire(&self, context: &ThreadContext, random: &mut Random) {
        while !context.is_over() {
            context.begin(Operation::HazardRetire);
            for _ in 0..STORES {
                let at = random.below_mostly_low(PLACES as u64) as usize;
                // AcqRel: the old one is whole for us, and the new one for those that load it.
                let old = self.places[at].swap(boxed(self.next_serial()), AcqRel);
                // SAFETY: from a box, and no thread finds it any more.
                let old = unsafe { Box::from_raw(old) };
                if at == 0 {
                    self.small.retire(old)
                } else {
                    hazard::global().retire(old)
                }
                if random.one_in(2) {
                    self.lines.iter().for_each(|line| line.0.store(1, Relaxed));
                }
            }
            context.ledger.did(Operation::HazardRetire, STORES);
            if has_died(context) {
                return;
            }
            if random.one_in(16) {
                thread::yield_now();
            }
        }
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        let fault = |kind, detail: String| ledger.fault(kind, "", None, None, || detail);
        if ledger.faults(FaultKind::Freed) != 0 {
            mem::forget(mem::take(&mut *lock(&self.moving)));
            return;
        }
        lock(&self.moving).clear();
        let (chain, links) = (self.chain.load().serial(), self.links.load(Relaxed));
        if chain != links {
            fault(FaultKind::Sum, format!("{links} updates of an ArcCell came to {chain}"));
        }
        self.small.barrier();
        hazard::barrier();
        let (left, again) = canary::balance();
        let mut there: Vec<_> =
            self.cells.iter().map(|cell| Arc::as_ptr(&cell.load_full())).collect();
        there.sort_unstable();
        there.dedup(); // one may be in several
        let there = (there.len() + PLACES + 1 + usize::from(self.option.load().is_some())) as u64;
        if left != there || again != 0 {
            let detail = format!("{left} objects are left, {there} are there; {again} died twice");
            fault(FaultKind::Freed, detail);
        }
        let waiting = self.small.statistics().callbacks_waiting();
        if waiting != 0 {
            fault(FaultKind::Count, format!("{waiting} wait in a domain after its barrier"));
        }
    }
}

impl Drop for Hazards {
    fn drop(&mut self) {
        for place in &mut self.places {
            let pointer = mem::replace(place.get_mut(), ptr::null_mut());
            // SAFETY: from a box, and no thread has it.
            drop(unsafe { Box::from_raw(pointer) });
        }
    }
}

/// A domain ends while one of its objects is protected; that one outlives it.
fn end_domain(context: &ThreadContext, holder: &mut HazardPointer, random: &mut Random) {
    let domain = HazardDomain::new();
    let place = AtomicPtr::new(boxed(7));
    // SAFETY: from a box; retired below, after it was taken out.
    let protected = unsafe { holder.protect(&place) };
    for _ in 0..random.below(40) {
        domain.retire(Box::new(Canary::new(8)));
    }
    let old = place.swap(ptr::null_mut(), AcqRel);
    // SAFETY: from a box, and no thread finds it any more.
    domain.retire(unsafe { Box::from_raw(old) });
    if random.one_in(2) {
        domain.barrier();
    }
    drop(domain);
    protected.iter().for_each(|one| one.expect(context, "HazardDomain", 7));
    context.did(Operation::HazardDomainEnd);
}
