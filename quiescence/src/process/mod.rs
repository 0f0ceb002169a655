//! The process as a whole: `fork`, and its orderly end.
//!
//! - [`fork`]: holds all locks while the memory is copied, and makes the child whole.
//! - `end`: what is run when the process ends.
//!
//! May import: all rooms.

mod end;
pub(crate) mod fork;
