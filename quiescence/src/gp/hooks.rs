//! What grace periods have others do who are in rooms below this one.
//!
//! The rooms below are not known here: the crate's root fills the table in, as `HOOKS`, and nothing
//! changes it.

use super::reader::Slot;
use super::stall::Note;

/// One function for each occasion.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// A domain, or something else that a `fork` must find, is used for the first time. Called
    /// often, and under no lock.
    pub(crate) first_use: fn(),
    /// A thread has let go of all locks of the library's, after a grace period or after a domain
    /// was used for the first time.
    pub(crate) unlocked: fn(),
    /// A grace period has not ended for too long. Called under no lock of a domain.
    pub(crate) stalled: fn(Note),
    /// The outermost section of a slot has ended, and something is marked there to be done then. By
    /// the slot's owner.
    pub(crate) section_ended: fn(&Slot),
}
