//! Programs in C and C++ beside our libraries and Debian's; and what is installed, and how a
//! program is built with it.

mod program;
mod scratch;

mod abi;
mod archives;
mod cpp;
mod examples;
mod headers;
mod lfht;
mod manual;
mod programs;
mod queues;
mod regressions;
