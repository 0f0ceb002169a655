//! What is done when a section, a thread or a domain ends. Called through `HOOKS`, since the
//! modules that notice the end may not import this one.

use crate::gp::slot::Slot;
use crate::reclaim::defer;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::local;
use crate::reclaim::{domain_state, worker};

/// The outermost section of a marked slot has ended: its thread is above a limit, or is exiting.
pub(crate) fn section_ended(slot: &Slot) {
    if slot.take_overdue() {
        defer::settle_over_limit();
    }
    if slot.is_leaving() {
        local::unregister_if_unused(slot);
    }
}

/// The thread ends: what it leaves behind in a domain becomes an orphan there.
pub(crate) fn thread_ends() {
    local::leave_thread(defer::orphan);
}

/// The domain ends; it was in the list of those in use.
pub(crate) fn domain_ends(domain: &DomainState) {
    domain_state::forget(domain);
    worker::forget(domain);
    local::ended(domain);
}
