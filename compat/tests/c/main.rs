//! Programs in C and C++ beside our libraries and Debian's.

#[path = "../common/scratch.rs"]
mod common;
mod program;

mod abi;
mod cpp;
mod headers;
mod lfht;
mod programs;
mod queues;
mod regressions;
