//! Events: what the other rooms report to, and what is counted of it.
//!
//! - [`trace`]: probes and tracing points.
//! - [`statistics`]: counters, latencies, and [`Statistics`](crate::report::Statistics).
//!
//! May import: [`os`](crate::os).

pub(crate) mod statistics;
pub(crate) mod trace;
