//! The process as a whole: `fork`, and its orderly end.
//!
//! May import: all rooms.

pub(crate) mod watch;
