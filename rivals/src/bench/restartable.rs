//! Reads that are one restartable sequence, beside those that a grace period waits for.
//!
//! What a reader of the others does in its section it does here with what it has loaded. An updater
//! that waits for a grace period replaces the value, which is to wait for one.

use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use quiescence::{ArcCell, Snapshot};

use super::grace_rivals::{Flavour, GraceRival, Idle, Member, chain, sections};

/// Both kinds of them, and after them all of [`super::grace::rivals`].
pub fn rivals() -> Vec<&'static GraceRival> {
    RIVALS.iter().chain(super::grace::rivals()).collect()
}

static RIVALS: [GraceRival; 2] = [
    GraceRival {
        name: "quiescence-snapshot",
        ours: true,
        make: || Arc::new(Words(Snapshot::new([1; 4]))),
    },
    GraceRival {
        name: "quiescence-arc-cell",
        ours: true,
        make: || Arc::new(Counted(ArcCell::from_pointee(1))),
    },
];

/// Nobody registers.
struct Nobody;

impl Idle for Nobody {}

/// Four words.
struct Words(Snapshot<[u64; 4]>);

impl Flavour for Words {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new(self)
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        Box::new(Nobody)
    }
}

impl Member for &Words {
    fn synchronize(&mut self) {
        self.0.store([1; 4]);
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        sections(stop, || *x = chain(*x | self.0.load()[0], steps))
    }
}

/// A shared pointer.
struct Counted(ArcCell<u64>);

impl Flavour for Counted {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new((self, Arc::new(1)))
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        Box::new(Nobody)
    }
}

/// With what is stored, so that nothing is allocated or freed.
impl Member for (&Counted, Arc<u64>) {
    fn synchronize(&mut self) {
        self.0.0.store(Arc::clone(&self.1));
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        sections(stop, || {
            let held = self.0.0.load();
            *x = chain(*x | *held, steps);
        })
    }
}
