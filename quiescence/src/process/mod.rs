//! The process as a whole: `fork`, and its orderly end.
//!
//! - [`fork`]: holds all locks that are in use while the memory is copied, and repairs the child.
//! - `end`: what is run when the process ends.
//!
//! May import: all rooms.

mod end;
pub(crate) mod fork;
