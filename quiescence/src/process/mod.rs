//! The process as a whole: `fork`, and orderly exit.
//!
//! May import: all rooms.

pub(crate) mod watch;
