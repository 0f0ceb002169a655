//! Objects that know whether they are alive, and count themselves.
//!
//! A drop fills an object. The memory of one in an `Arc` stays for some time after it ([`Kept`]),
//! so that a reader that a fault lets have it finds that out, and can count it. That of one in a
//! box is the allocator's: what says whether it is alive stands where allocators do not write.

use std::array;
use std::collections::VecDeque;
use std::mem;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Weak};
use std::thread;

use crate::context::ThreadContext;
use crate::kinds::{FaultKind, Operation};
use crate::random::scramble;

/// Objects whose memory stays, and by how many references: each reader that has one which it must
/// not have takes one of them off.
const OBJECTS_KEPT: usize = 512;
const REFERENCES: usize = 16;

/// Objects that were made, that were dropped, and that were dropped though they were not alive. In
/// statics: what was dropped too early may not lead anywhere.
static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);
static DROPPED_AGAIN: AtomicU64 = AtomicU64::new(0);

/// Those that are left of the themes that have a tally of their own.
static TALLIED: AtomicU64 = AtomicU64::new(0);

const ALIVE: u64 = 0x616c_6976_6521;
const DEAD: u64 = 0x6465_6164_2121;

/// Counts itself, and knows whether it is alive. No memory but its own.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Canary {
    /// For the allocator's own words, once it is freed.
    room: [u64; 2],
    life: AtomicU64,
    serial: AtomicU64,
    check: AtomicU64,
}

impl quiescence::Weigh for Canary {}

impl Canary {
    pub(super) fn new(serial: u64) -> Self {
        MADE.fetch_add(1, Relaxed);
        Self {
            room: [0; 2],
            life: AtomicU64::new(ALIVE),
            serial: AtomicU64::new(serial),
            check: AtomicU64::new(scramble(serial)),
        }
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial.load(Relaxed)
    }

    fn is_alive(&self) -> bool {
        self.life.load(Relaxed) == ALIVE && self.check.load(Relaxed) == scramble(self.serial())
    }

    /// A fault if it is not alive, or is not the object of this serial any more.
    pub(super) fn expect(&self, context: &ThreadContext, what: &'static str, serial: u64) {
        if !self.is_alive() || self.serial() != serial {
            context.fault(FaultKind::Freed, what, || {
                format!("object {serial} was loaded, or held, and is dropped")
            });
        }
    }

    /// The same of one that was loaded just now; its serial.
    pub(super) fn loaded(&self, context: &ThreadContext, what: &'static str) -> u64 {
        let serial = self.serial();
        self.expect(context, what, serial);
        serial
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        if self.life.swap(DEAD, Relaxed) != ALIVE {
            DROPPED_AGAIN.fetch_add(1, Relaxed);
        }
        self.check.store(DEAD, Relaxed);
        self.room = [DEAD; 2];
        DROPPED.fetch_add(1, Release); // pairs with the Acquire in `balance`
    }
}

/// One that also counts among those of its theme.
#[derive(Debug)]
pub(super) struct Tallied {
    canary: Canary,
    /// Those that were made and are not dropped.
    tally: &'static AtomicU64,
}

impl quiescence::Weigh for Tallied {
    const OWNS: bool = false;
}

impl Tallied {
    pub(super) fn new(serial: u64, tally: &'static AtomicU64) -> Self {
        tally.fetch_add(1, Relaxed);
        TALLIED.fetch_add(1, Relaxed);
        Self { canary: Canary::new(serial), tally }
    }
}

impl Deref for Tallied {
    type Target = Canary;

    fn deref(&self) -> &Canary {
        &self.canary
    }
}

impl Drop for Tallied {
    fn drop(&mut self) {
        // Release, both: pair with the Acquires in `left` and `balance`.
        self.tally.fetch_sub(1, Release);
        TALLIED.fetch_sub(1, Release);
    }
}

/// How many of a theme are left.
pub(super) fn left(tally: &AtomicU64) -> u64 {
    tally.load(Acquire) // pairs with the Release in the drop
}

/// How many were made and are not dropped, tallied ones left out; and how many were dropped twice.
pub(super) fn balance() -> (u64, u64) {
    // Acquire: pairs with the Release in the drop.
    let dropped = DROPPED.load(Acquire) + left(&TALLIED);
    (MADE.load(Relaxed).wrapping_sub(dropped), DROPPED_AGAIN.load(Relaxed))
}

/// Whether something was found that was not alive; a thread had better stop then.
pub(super) fn has_died(context: &ThreadContext) -> bool {
    let again = DROPPED_AGAIN.load(Relaxed) != 0;
    if again {
        context.fault(FaultKind::Freed, "", || "an object was dropped twice".to_owned());
    }
    again || context.ledger.faults(FaultKind::Freed) != 0
}

/// Keeps the memory of objects, not the objects.
#[derive(Debug)]
pub(super) struct Kept<T>(VecDeque<[Weak<T>; REFERENCES]>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Kept<T> {
    pub(super) fn keep(&mut self, object: T) -> Arc<T> {
        let object = Arc::new(object);
        self.0.push_back(array::from_fn(|_| Arc::downgrade(&object)));
        if self.0.len() > OBJECTS_KEPT {
            self.0.pop_front();
        }
        object
    }

    /// Updates until the run is over, so many times between two messages to the watchdog.
    pub(super) fn update(
        context: &ThreadContext,
        operation: Operation,
        times: u64,
        mut update: impl FnMut(&mut Self),
    ) {
        let mut kept = Self::default();
        while !context.is_over() {
            context.begin(operation);
            for _ in 0..times {
                update(&mut kept);
            }
            if has_died(context) {
                return kept.forget();
            }
            thread::yield_now();
        }
        if context.ledger.faults_total() != 0 {
            kept.forget();
        }
    }

    /// For ever: some of the references may be gone already.
    fn forget(&mut self) {
        mem::forget(mem::take(&mut self.0));
    }
}
