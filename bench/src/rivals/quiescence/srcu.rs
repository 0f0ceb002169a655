//! Sleepable domains, as they are and with a waiter that never sleeps.

use grace::srcu::AdaptiveDelay;
use quiescence::{Rcu, Srcu, tag::Sleepable};

use super::threads::expect_stalls;
use crate::cases::blocked;
use crate::cases::boot::{self, Slots};
use crate::serve::{Domain, replace};

/// Scans again and again, and never sleeps.
pub(super) static BUSY: AdaptiveDelay =
    AdaptiveDelay { first_nap_us: 0, runs_max: u32::MAX, ..AdaptiveDelay::at(100) };

/// A table of slots in this domain, whose sections begin as its users begin them.
pub(super) fn table(srcu: Srcu) -> Box<dyn boot::Site> {
    Box::new((Rcu::new_in(Slots::new(0), srcu.domain()), srcu))
}

impl boot::Site for (Rcu<Slots, Sleepable>, Srcu) {
    fn look_up(&self, number: u64) {
        self.0.load(&self.1.read()).look_up(number);
    }

    fn boot(&self, updates: u64) {
        boot::boot(updates, |table| self.0.swap(table), || self.1.synchronize_expedited());
    }
}

impl blocked::Site for Srcu {
    fn hold(&self, inside: &mut dyn FnMut()) {
        expect_stalls(self);
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

    #[inline(always)]
    fn read(&self) {
        drop(Self::read(self));
    }

    fn wait(&self) {
        self.synchronize();
    }
}

/// Readers that may sleep, in a domain of their own.
#[derive(Debug, Default)]
pub(super) struct Sleepers(Srcu);

replace! {
    Sleepers => Rcu<T, Sleepable>, ();
    place: |sleepers, value| Rcu::new_in(value, sleepers.0.domain());
    read: |sleepers, _, place, look| look(place.load(&sleepers.0.read()));
    replace: |_, _, place, value| place.store(value);
    flush: |sleepers| sleepers.0.domain().barrier();
}
