//! What several test files need.

use std::sync::Barrier;
use std::thread;

use quiescence::Domain;

/// Calls `f` while another thread is in a section of `domain`, which ends when `f` calls its argument.
pub(crate) fn beside_a_section<R>(domain: &Domain, f: impl FnOnce(&dyn Fn()) -> R) -> R {
    let (entered, leave) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = domain.read();
            entered.wait();
            leave.wait();
            drop(guard);
        });
        entered.wait();
        f(&|| {
            leave.wait();
        })
    })
}

/// Lets other threads run until some updater has gone to sleep in `domain`.
pub(crate) fn until_an_updater_sleeps(domain: &Domain) {
    while domain.statistics().sleeps == 0 {
        thread::yield_now();
    }
}
