//! Sleepable domains, as they are and with a waiter that never sleeps.

use grace::srcu::AdaptiveDelay;
use quiescence::{Rcu, Srcu, tag::Sleepable};

use super::threads::expect_stalls;
use crate::serve::replace;

/// Scans again and again, and never sleeps.
pub(super) static BUSY: AdaptiveDelay =
    AdaptiveDelay { first_nap_us: 0, runs_max: u32::MAX, ..AdaptiveDelay::at(100) };

/// Without reports of its stalls: there they are on purpose.
pub(super) fn stalled(srcu: Srcu) -> Srcu {
    expect_stalls(&srcu);
    srcu
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
