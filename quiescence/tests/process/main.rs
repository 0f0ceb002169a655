//! A process and what is around it: forks, its end, reports, the server of its statistics.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/serving.rs"]
mod serving;

mod leaks;
mod process;
#[cfg(target_os = "linux")]
mod reports;
mod srcu_process;
mod stalls;
mod stats_server;
