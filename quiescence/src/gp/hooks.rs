//! What grace periods call in rooms (top-level modules) that this one may not import.
//!
//! The crate's root fills the table in, as `HOOKS`, and nothing changes it.

use super::slot::Slot;
use super::stall::Note;

/// One function for each occasion.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// A domain, or something else that a `fork` must find, is used for the first time. Called
    /// often, and under no lock.
    pub(crate) first_use: fn(),
    /// A thread has released all of the library's locks, after a grace period or after a domain was
    /// used for the first time.
    pub(crate) unlocked: fn(),
    /// A grace period has not ended for too long. Called under no lock of a domain.
    pub(crate) stalled: fn(Note),
    /// The outermost section of a slot has ended, and a mark says that there is work to do then.
    /// Called by the slot's owner.
    pub(crate) section_ended: fn(&Slot),
}
