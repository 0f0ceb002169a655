//! What programs written for liburcu rest on.

#[path = "../common/mod.rs"]
mod common;

mod callback_queue;
mod liburcu_readers;
