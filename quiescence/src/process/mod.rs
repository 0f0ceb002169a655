//! The process as a whole: `fork`, and its orderly end.
//!
//! - [`fork`]: holds all locks while the memory is copied, and makes the child whole.
//! - [`exit`]: functions that run when the process ends.
//!
//! May import: all rooms.

pub(crate) mod exit;
pub(crate) mod fork;
