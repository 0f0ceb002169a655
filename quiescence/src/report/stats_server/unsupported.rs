//! Statistics are served on Linux only: see `stats_server.rs`. `QUIESCENCE_STATS` means nothing
//! here.

/// Nothing to start.
#[inline]
pub(crate) fn attend() {}

/// Nothing is held across a `fork`.
pub(crate) struct Held;

/// Before a `fork`.
pub(crate) fn hold() -> Held {
    Held
}

impl Held {
    /// In the child.
    pub(crate) fn after_fork(&mut self) {}
}
