//! The command, run as a user would run it.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../quiescence/tests/common/serving.rs"]
mod serving;

mod bench;
mod compare;
mod diff;
mod faults;
mod keys;
mod readme;
mod report;
mod seeds;
mod simulate;
mod top;
mod torture;
mod usage;
