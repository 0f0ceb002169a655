//! What programs written for liburcu rest on.

#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
#[path = "../common/heads.rs"]
mod heads;

mod callback_queue;
mod liburcu_readers;
