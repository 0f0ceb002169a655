//! Atomic pointers with tags: threads that are pinned load them, follow them, and check what they
//! have found once more at the end of the guard, while others exchange them and defer the end of
//! what they led to; in the default collector, and in one that has hardly any room.
//!
//! The tag says whether the serial of the object is odd. When all threads have ended, and what was
//! deferred has run, the objects that are left must be those that the pointers lead to.

use std::array;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use quiescence::Domain;
use quiescence::epoch::{self, Atomic, Collector, Guard, Owned, Shared};

use super::canary::{self, Tallied, has_died};
use crate::context::ThreadContext;
use crate::deferral::tuning;
use crate::delays::spin;
use crate::kinds::{FaultKind, Operation};
use crate::ledger::Ledger;
use crate::random::Random;

/// Guards between two messages to the watchdog; and updates.
const GUARDS: u64 = 64;
const UPDATES: u64 = 16;

/// Pointers of a collector.
const PLACES: usize = 4;

/// Objects that the small collector has room for.
const ROOM: u64 = 4;

/// Objects that are left.
static LIVE: AtomicU64 = AtomicU64::new(0);

type Place = Atomic<Tallied>;

/// The pointers, and the collectors.
#[derive(Debug)]
pub(crate) struct Pointers {
    /// Never null. Of the default collector, and of the small one.
    places: [[Place; PLACES]; 2],
    /// None at the end.
    small: Mutex<Option<Collector>>,
    serial: AtomicU64,
}

fn fresh(serial: u64) -> Owned<Tallied> {
    Owned::new(Tallied::new(serial, &LIVE)).with_tag((serial & 1) as usize)
}

impl Default for Pointers {
    fn default() -> Self {
        let domain = Domain::builder().name("epoch").build();
        domain.tune(tuning(ROOM, 1 << 20));
        Self {
            places: array::from_fn(|_| array::from_fn(|_| Atomic::from(fresh(0)))),
            small: Mutex::new(Some(Collector::new_in(domain))),
            serial: AtomicU64::new(1),
        }
    }
}

/// Loads a pointer, and looks at what it leads to.
fn load<'g>(place: &Place, guard: &'g Guard, context: &ThreadContext) -> (&'g Tallied, u64) {
    let shared = place.load(Acquire, guard);
    // SAFETY: never null; its end is deferred after it has been unlinked.
    let object = unsafe { shared.deref() };
    let serial = object.loaded(context, "epoch::Atomic");
    if serial & 1 != shared.tag() as u64 {
        context.fault(FaultKind::Torn, "epoch::Atomic", || {
            format!("tag {} came with object {serial}", shared.tag())
        });
    }
    (object, serial)
}

/// Has the end of what was unlinked run, when no guard is left.
fn defer_end(
    old: Shared<'_, Tallied>,
    guard: &Guard,
    context: &ThreadContext,
    random: &mut Random,
) {
    if random.one_in(2) {
        context.did(Operation::EpochDestroy);
        // SAFETY: unlinked by the caller, and deferred here alone.
        return unsafe { guard.defer_destroy(old) };
    }
    context.did(Operation::EpochDefer);
    // SAFETY: as above; no other thread reaches it when it runs.
    let end = move || unsafe { old.into_owned() };
    // SAFETY: any thread may drop it.
    unsafe { guard.defer_unchecked(end) };
}

impl Pointers {
    fn small(&self) -> Option<Collector> {
        self.small.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loads pointers until the run is over.
    pub(crate) fn read(&self, context: &ThreadContext, random: &mut Random) {
        let Some(handle) = self.small().map(|small| small.register()) else { return };
        while !context.is_over() && !has_died(context) {
            context.begin(Operation::EpochPin);
            for _ in 0..GUARDS {
                let which = random.below(2) as usize;
                let mut guard = if which == 0 { epoch::pin() } else { handle.pin() };
                self.read_under(which, &guard, context, random);
                if random.one_in(8) {
                    guard.repin();
                    context.did(Operation::EpochRepin);
                    self.read_under(which, &guard, context, random);
                }
            }
            context.ledger.did(Operation::EpochPin, GUARDS);
            if random.one_in(4) {
                thread::yield_now();
            }
        }
    }

    /// Follows each pointer of a collector, and checks all objects once more afterwards.
    fn read_under(
        &self,
        which: usize,
        guard: &Guard,
        context: &ThreadContext,
        random: &mut Random,
    ) {
        let found: [_; PLACES] = array::from_fn(|at| load(&self.places[which][at], guard, context));
        if random.one_in(8) {
            spin(random.below(500));
        }
        for (object, serial) in found {
            object.expect(context, "epoch::Atomic", serial);
        }
    }

    /// Exchanges pointers until the run is over.
    pub(crate) fn update(&self, context: &ThreadContext, random: &mut Random) {
        let Some(handle) = self.small().map(|small| small.register()) else { return };
        while !context.is_over() && !has_died(context) {
            context.begin(Operation::EpochExchange);
            for _ in 0..UPDATES {
                let which = random.below(2) as usize;
                let guard = if which == 0 { epoch::pin() } else { handle.pin() };
                let place = &self.places[which][random.below(PLACES as u64) as usize];
                let serial = self.serial.fetch_add(1, Relaxed);
                // AcqRel: the old object is whole here, and the new one for those that load it.
                if random.one_in(2) {
                    let old = place.swap(fresh(serial), AcqRel, &guard);
                    defer_end(old, &guard, context, random);
                } else {
                    let seen = place.load(Acquire, &guard);
                    let exchanged =
                        place.compare_exchange(seen, fresh(serial), AcqRel, Acquire, &guard);
                    if exchanged.is_ok() {
                        defer_end(seen, &guard, context, random);
                    }
                }
                if random.one_in(16) {
                    guard.flush();
                    context.did(Operation::EpochFlush);
                }
            }
            context.ledger.did(Operation::EpochExchange, UPDATES);
            thread::yield_now();
        }
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        if ledger.faults(FaultKind::Freed) != 0 {
            return;
        }
        // The last handle: what was deferred runs before the drop returns.
        drop(self.small.lock().unwrap_or_else(PoisonError::into_inner).take());
        quiescence::barrier();
        let (left, there) = (canary::left(&LIVE), 2 * PLACES as u64);
        if left != there {
            let detail = format!("{left} objects are left, pointers lead to {there}");
            ledger.fault(FaultKind::Freed, "", None, None, || detail);
        }
    }
}

impl Drop for Pointers {
    fn drop(&mut self) {
        for place in self.places.iter_mut().flatten() {
            // SAFETY: no thread has it any more; and never null.
            drop(unsafe { std::mem::take(place).into_owned() });
        }
    }
}
