//! Polling for grace periods: liburcu 0.14's `start_poll_synchronize_rcu`.
//!
//! The state is a cookie of the domain. The polling thread drives the grace period itself: it needs
//! and wakes no other thread.

use std::ffi::{c_uint, c_ulong};

use crate::errno_guard::with_errno_uncancelled;
use crate::fatal::{Mistake, tolerated};
use crate::flavor::Flavor;
use crate::reader;

exported! {
    /// `start_poll_synchronize_rcu`: a state for a grace period that begins now or later. Also
    /// allowed in a section, for which that grace period then waits.
    fn quiescence_urcu_start_poll(flavor: c_uint) -> c_ulong {
        with_errno_uncancelled(|| {
            let flavor = Flavor::called(flavor);
            reader::require_membarrier(flavor);
            flavor.domain().domain().start_poll().to_bits()
        })
    }

    /// `poll_state_synchronize_rcu`: whether the state's grace period has ended. Drives it a step
    /// if no other thread does; never waits.
    ///
    /// The grace period of a state that this flavour cannot have returned never ends, as in
    /// liburcu. That is reported once, and aborts the process under `QUIESCENCE_DEBUG=1`.
    fn quiescence_urcu_poll_state(flavor: c_uint, state: c_ulong) -> bool {
        with_errno_uncancelled(|| {
            let flavor = Flavor::called(flavor);
            let domain = flavor.domain().domain();
            match domain.try_cookie_from_bits(state) {
                Some(cookie) => domain.poll(cookie),
                None => {
                    not_given(flavor, state);
                    false
                }
            }
        })
    }
}

#[cold]
fn not_given(flavor: Flavor, state: c_ulong) {
    tolerated(
        Mistake::StateNotGiven,
        format_args!(
            "{flavor}_poll_state_synchronize_rcu: the state {state:#x} was not returned by \
             {flavor}_start_poll_synchronize_rcu, so its grace period never ends; poll each state \
             with the functions of its flavour"
        ),
    );
}
