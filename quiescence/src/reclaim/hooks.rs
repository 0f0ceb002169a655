//! What reclamation has modules and rooms do that it does not import, as in `gp/hooks.rs`.

use crate::reclaim::domain_state::DomainState;

/// One function for each occasion.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// A thread ends that has used the library.
    pub(crate) thread_ends: fn(),
    /// A domain ends that has been in use. Under no lock.
    pub(crate) domain_ends: fn(&DomainState),
    /// A hazard domain ends: frees what waits in it.
    pub(crate) hazard_domain_ends: fn(&DomainState),
}
