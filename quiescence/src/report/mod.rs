//! Reports: grace periods that do not end, and the server of the process's statistics.
//!
//! - [`stall`]: reports of stalls.
//! - [`inspect`]: what a domain is doing now, and who reads there.
//! - [`stats_server`]: the thread that serves statistics to `rcu top`.
//!
//! May import: all rooms but [`process`](crate::process).

#[cfg(not(loom))]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) mod inspect;
pub(crate) mod stall;
#[cfg(not(loom))]
#[cfg_attr(not(target_os = "linux"), path = "stats_server/unsupported.rs")]
pub(crate) mod stats_server;
