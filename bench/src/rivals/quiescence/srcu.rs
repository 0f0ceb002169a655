//! Sleepable domains, as they are and with a waiter that never sleeps.

use std::hint::black_box;
use std::time::Duration;

use grace::srcu::AdaptiveDelay;
use quiescence::{Rcu, Srcu, tag::Sleepable};

use crate::cases::blocked;
use crate::cases::boot::{self, Slots};
use crate::cases::loops::repeat;
use crate::serve::{Domain, replace};

/// Scans again and again, and never sleeps.
pub(super) static BUSY: AdaptiveDelay =
    AdaptiveDelay { first_nap_us: 0, runs_max: u32::MAX, ..AdaptiveDelay::at(100) };

pub(super) fn section(batches: u64) -> Duration {
    static DOMAIN: Srcu = Srcu::new();
    let domain = black_box(&DOMAIN);
    repeat(batches, || {
        drop(domain.read());
        1
    })
}

/// A table of slots in a sleepable domain.
pub(super) struct InSrcu {
    table: Rcu<Slots, Sleepable>,
    domain: Srcu,
}

impl InSrcu {
    pub(super) fn new(domain: Srcu) -> Self {
        Self { table: Rcu::new_in(Slots::new(0), domain.domain()), domain }
    }
}

impl boot::Site for InSrcu {
    fn look_up(&self, number: u64) {
        self.table.load(&self.domain.read()).look_up(number);
    }

    fn boot(&self, updates: u64) {
        boot::boot(updates, |table| self.table.swap(table), || self.domain.synchronize_expedited());
    }
}

impl blocked::Site for Srcu {
    fn hold(&self, inside: &mut dyn FnMut()) {
        let _guard = self.read();
        inside();
    }

    fn wait(&self) {
        self.synchronize_expedited();
    }
}

impl Domain for Srcu {
    fn new() -> Self {
        Self::new()
    }

    fn read(&self) {
        drop(Self::read(self));
    }

    fn wait(&self) {
        self.synchronize();
    }
}

/// Readers that may sleep, in a domain of their own.
#[derive(Debug)]
pub(super) struct Sleepers(Srcu);

replace! {
    Sleepers => Rcu<T, Sleepable>, ();
    new: Self(Srcu::new());
    place: |sleepers, value| Rcu::new_in(value, sleepers.0.domain());
    thread: |_| ();
    read: |sleepers, _, place, look| look(place.load(&sleepers.0.read()));
    replace: |_, place, value| place.store(value);
    flush: |sleepers| sleepers.0.domain().barrier();
}
