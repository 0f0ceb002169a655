//! Statistics are served on Linux only (`stats_server.rs`). Elsewhere `QUIESCENCE_STATS` has no
//! effect.

/// Nothing to start.
#[inline]
pub(crate) fn attend() {}
