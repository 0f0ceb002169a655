//! The process as a whole: its orderly exit.
//!
//! May import: all rooms.

pub(crate) mod exit;
