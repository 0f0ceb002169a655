//! What can be watched from outside: one function for each event, called where it happens.
//!
//! Here, and nowhere else, an event becomes a probe.

use grace::{Cookie, Number, Sequence, Urgency};

use crate::core::Core;

/// A grace period begins.
#[inline]
pub(crate) fn grace_period_began(_core: &Core, _number: Number, _urgency: Urgency) {}

/// A grace period has ended.
#[inline]
pub(crate) fn grace_period_ended(_core: &Core, _sequence: Sequence, _latency_ns: u64) {}

/// A batch of `callbacks` was closed, and waits for `cookie`.
#[inline]
pub(crate) fn batch_closed(_core: &Core, _callbacks: u64, _cookie: Cookie) {}

/// So many callbacks have been run in one go.
#[inline]
pub(crate) fn callbacks_run(_core: &Core, _callbacks: u64) {}

/// A thread comes to the limit of what may wait, and has to wait (`true`) or is refused.
#[inline]
pub(crate) fn limit_reached(_core: &Core, _waits: bool) {}
