//! Faults that programs have shown, one module a kind of fault, each test named after what went
//! wrong. The programs in C and C++ are in `regressions/` as well, and run on our libraries.

#[path = "regressions/callbacks.rs"]
mod callbacks;
#[path = "regressions/cpp_headers.rs"]
mod cpp_headers;
#[path = "regressions/forks.rs"]
mod forks;
#[path = "regressions/header_names.rs"]
mod header_names;
#[path = "regressions/liburcu.rs"]
mod liburcu;
#[path = "regressions/plain_machine.rs"]
mod plain_machine;
#[path = "regressions/program.rs"]
mod program;
#[path = "regressions/stall_reports.rs"]
mod stall_reports;
