//! Statistics are served on Linux only: see `stats_server.rs`. `QUIESCENCE_STATS` means nothing
//! here.

/// Nothing to start.
#[inline]
pub(crate) fn attend() {}
