//! Grace periods that are polled: liburcu 0.14's `start_poll_synchronize_rcu`.
//!
//! The state is a cookie of the domain. A thread that polls drives: no other is woken, and none
//! needed.

use std::ffi::{c_uint, c_ulong};

use crate::errno_guard::with_errno_uncancelled;
use crate::fatal::{Mistake, tolerated};
use crate::flavor::Flavor;
use crate::reader;

exported! {
    /// `start_poll_synchronize_rcu`: a grace period from now on. Also in a section, which it then
    /// waits for.
    fn quiescence_urcu_start_poll(flavor: c_uint) -> c_ulong {
        with_errno_uncancelled(|| {
            let flavor = Flavor::called(flavor);
            reader::require_membarrier(flavor);
            flavor.domain().domain().start_poll().to_bits()
        })
    }

    /// `poll_state_synchronize_rcu`: whether it is over. Takes a step of it if no other thread
    /// does; never waits.
    ///
    /// A state that this flavour cannot have given is never over, as in liburcu; that is said once,
    /// and ends the process under `QUIESCENCE_DEBUG=1`.
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
