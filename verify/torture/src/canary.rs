//! Objects that know whether they are alive, and count themselves.
//!
//! A drop fills an object. The memory of one in an `Arc` stays for some time after it ([`Kept`]),
//! so that a reader that a fault lets have it finds that out, and can count it. That of one in a
//! box is the allocator's: what says whether it is alive stands where allocators do not write.

use std::array;
use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Weak};

use super::context::{DROPPED_WRONGLY, ThreadContext};
use super::kinds::FaultKind;
use super::random::scramble;

/// Objects whose memory stays, and by how many references: each reader that has one which it must
/// not have takes one of them off.
pub(crate) const OBJECTS_KEPT: usize = 512;
const REFERENCES: usize = 16;

const ALIVE: u64 = 0x616c_6976_6521;
const DEAD: u64 = 0x6465_6164_2121;

/// The objects of a theme. In a static: what was dropped too early may not lead anywhere.
pub(crate) struct Live {
    /// Those that were made and are not dropped.
    count: AtomicU64,
    /// The last serial that was given out: so many were.
    pub(crate) serial: AtomicU64,
}

impl Live {
    pub(crate) const fn none() -> Self {
        Self { count: AtomicU64::new(0), serial: AtomicU64::new(0) }
    }

    /// A serial that no object has; those that a thread gets increase.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Relaxed) + 1
    }

    /// When all threads have ended and so many are still in their places: looks for others, and for
    /// what was dropped twice.
    pub(crate) fn expect(&self, context: &ThreadContext, what: &str, there: usize) {
        context.has_died();
        let left = self.count.load(Acquire); // pairs with the Release in the drop
        context.equal(FaultKind::Freed, what, "objects that are left", left, there as u64);
    }
}

/// Counts itself, and knows whether it is alive. No memory but its own.
#[repr(C)]
pub(crate) struct Canary {
    /// For the allocator's own words, once it is freed.
    room: [u64; 2],
    life: AtomicU64,
    serial: AtomicU64,
    check: AtomicU64,
    live: &'static Live,
}

/// It owns nothing, but is asked: so that what weighs objects runs, too.
impl quiescence::Weigh for Canary {}

impl Canary {
    pub(crate) fn new(serial: u64, live: &'static Live) -> Self {
        live.count.fetch_add(1, Relaxed);
        Self {
            room: [0; 2],
            life: AtomicU64::new(ALIVE),
            serial: AtomicU64::new(serial),
            check: AtomicU64::new(scramble(serial)),
            live,
        }
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial.load(Relaxed)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.life.load(Relaxed) == ALIVE && self.check.load(Relaxed) == scramble(self.serial())
    }

    /// A fault if it is not alive, or is not the object of this serial any more.
    pub(crate) fn expect(&self, context: &ThreadContext, what: &str, serial: u64) {
        let found = self.serial();
        context.expect(self.is_alive() && found == serial, FaultKind::Freed, what, || {
            format!("object {serial:#x} was dropped while loaded or held, or is {found:#x}")
        });
    }

    /// The same of one that was loaded just now; its serial.
    pub(crate) fn loaded(&self, context: &ThreadContext, what: &str) -> u64 {
        let serial = self.serial();
        self.expect(context, what, serial);
        serial
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        if self.life.swap(DEAD, Relaxed) != ALIVE {
            DROPPED_WRONGLY.fetch_add(1, Relaxed);
            return;
        }
        self.check.store(DEAD, Relaxed);
        self.room = [DEAD; 2];
        self.live.count.fetch_sub(1, Release); // pairs with the Acquire in `Live::expect`
    }
}

/// Keeps the memory of objects, not the objects.
#[derive(Debug, Default)]
pub(crate) struct Kept(VecDeque<[Weak<Canary>; REFERENCES]>);

impl Kept {
    pub(crate) fn keep(&mut self, object: Canary) -> Arc<Canary> {
        let object = Arc::new(object);
        self.0.push_back(array::from_fn(|_| Arc::downgrade(&object)));
        if self.0.len() > OBJECTS_KEPT {
            self.0.pop_front();
        }
        object
    }
}

/// Ends what a thread has; after any fault that may be gone already, and is not touched.
pub(crate) fn end<T>(context: &ThreadContext, held: T) {
    if context.has_died() || context.ledger.faults_total() != 0 {
        mem::forget(held);
    }
}
