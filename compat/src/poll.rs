//! Grace periods that are polled: liburcu 0.14's `start_poll_synchronize_rcu`.
//!
//! The state is a cookie of the domain. Who polls drives: no thread is woken, and none needed.

use std::ffi::{c_uint, c_ulong};

use crate::flavor::Flavor;
use crate::reader;
use crate::undisturbed::undisturbed;

/// `start_poll_synchronize_rcu`: a grace period from now on. Also in a section, which it then waits for.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_start_poll(flavor: c_uint) -> c_ulong {
    undisturbed(|| {
        let flavor = Flavor::called(flavor);
        reader::require_membarrier(flavor);
        flavor.domain().domain().start().to_bits()
    })
}

/// `poll_state_synchronize_rcu`: whether it is over. Takes a step of it if nobody else does; never waits.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn quiescence_urcu_poll_state(flavor: c_uint, state: c_ulong) -> bool {
    undisturbed(|| {
        let domain = Flavor::called(flavor).domain().domain();
        domain.poll(domain.cookie_from_bits(state))
    })
}
