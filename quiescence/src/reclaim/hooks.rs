//! Calls from reclamation into modules that it does not import; see `gp/hooks.rs`.

use crate::reclaim::domain_state::DomainState;

/// One function for each event.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// A thread that has used the library ends.
    pub(crate) thread_ends: fn(),
    /// A domain that has been in use ends. Called under no lock.
    pub(crate) domain_ends: fn(&DomainState),
    /// A hazard domain ends: frees what waits in it.
    pub(crate) hazard_domain_ends: fn(&DomainState),
}
