//! What one kind of waiter takes from another is bounded by two grace periods.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread;

use quiescence::Domain;

use crate::common::{beside_a_section, until_an_updater_sleeps};

/// Synchronizers, in a hurry and not, and barriers with their callbacks, that all come while one
/// grace period waits for a reader: the next one serves them all, whichever thread drives it, and
/// however many they are.
#[test]
fn all_kinds_of_waiters_are_served_by_the_next_grace_period() {
    const EACH: u64 = 4;
    let domain = Domain::new();
    let mut tuning = domain.tuning();
    tuning.stall_after = None;
    tuning.stall_after_expedited = None;
    domain.tune(tuning);
    let run = Arc::new(AtomicU64::new(0));
    let served_by = thread::scope(|scope| {
        let waiters = beside_a_section(&domain, |leave| {
            let driver = scope.spawn(|| domain.synchronize());
            until_an_updater_sleeps(&domain);
            let mut waiters = vec![];
            for _ in 0..EACH {
                waiters.push(scope.spawn(|| domain.synchronize()));
                waiters.push(scope.spawn(|| domain.synchronize_expedited()));
                waiters.push(scope.spawn(|| {
                    let count = Arc::clone(&run);
                    domain.call(move || _ = count.fetch_add(1, Relaxed)).unwrap();
                    domain.barrier();
                }));
            }
            // The driver is one of them.
            while domain.statistics().waiters < 1 + 3 * EACH {
                thread::yield_now();
            }
            assert_eq!(domain.statistics().grace_periods, 0);
            leave();
            driver.join().unwrap();
            waiters
        });
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        domain.statistics().grace_periods
    });
    assert_eq!(run.load(Relaxed), EACH);
    assert_eq!(served_by, 2, "the one in progress, and one for all who came meanwhile");
}
