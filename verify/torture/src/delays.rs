//! Delays: at the steps of the library where races live, in a build that has the hooks; and spins.

use std::hint;
use std::thread::{self, JoinHandle};

use super::random::Random;

#[cfg(quiescence_mutants)]
mod hooks;
#[cfg(quiescence_mutants)]
pub(crate) use hooks::{install, is_late, seed_thread};

/// Without the hooks there are no delays.
#[cfg(not(quiescence_mutants))]
pub(crate) fn install(_seed: u64) {}

/// Without the hooks there are no delays.
#[cfg(not(quiescence_mutants))]
pub(crate) fn seed_thread(_stream: u64) {}

/// Whether a delay has made the calling thread late: never.
#[cfg(not(quiescence_mutants))]
pub(crate) fn is_late() -> bool {
    false
}

/// Starts a thread that draws from a stream of its own; none if the system is short of threads for
/// the moment.
pub(crate) fn spawn<R: Send + 'static>(
    name: &str,
    random: &Random,
    life: impl FnOnce(&Random) -> R + Send + 'static,
) -> Option<JoinHandle<R>> {
    let seed = random.next();
    let started = thread::Builder::new().name(name.to_owned()).spawn(move || {
        seed_thread(seed);
        life(&Random::from_state(seed))
    });
    started.ok()
}

/// Keeps the CPU for a while.
pub(crate) fn spin(turns: u64) {
    for _ in 0..turns {
        hint::spin_loop();
    }
}
