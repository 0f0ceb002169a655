//! Events: the functions by which the other rooms report what happens, and the counts.
//!
//! - [`trace`]: probes and tracing points.
//! - [`statistics`]: counters, latencies, and [`Statistics`](crate::report::Statistics).
//!
//! May import: [`os`](crate::os).

pub(crate) mod statistics;
pub(crate) mod trace;
