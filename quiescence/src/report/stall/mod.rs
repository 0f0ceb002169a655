//! Stalls: grace periods that do not end, told of while they do not.
//!
//! [`watch`] says when a report is due, from times that it is told. `core::watch` asks it, at the moments
//! when somebody has to wait anyway. [`reporter`] makes the [`report`], with stacks whose frames are named
//! by [`symbols`], and calls the [`hook`].

use crate::gp::core::Core;

#[cfg(not(loom))]
pub(crate) mod hook;
#[cfg(not(loom))]
pub(crate) mod report;
#[cfg(not(loom))]
pub(crate) mod reporter;
#[cfg(not(loom))]
mod symbols;
pub(crate) mod watch;

/// What is left to the reporter when a stall is noticed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    /// The domain, by its address and its identity: it may end before the report is made.
    pub(crate) core: *const Core,
    pub(crate) identity: usize,
    /// Which grace period, as [`Statistics::grace_periods`](crate::Statistics::grace_periods) counts.
    pub(crate) grace_period: u64,
    pub(crate) age_ns: u64,
    pub(crate) expedited: bool,
}

// SAFETY: the pointer is compared, and never followed.
unsafe impl Send for Note {}
