//! Delays: at the steps of the library where races live, in a build that has the hooks; and spins.

use std::hint;

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

/// Keeps the CPU for a while.
pub(crate) fn spin(turns: u64) {
    for _ in 0..turns {
        hint::spin_loop();
    }
}
