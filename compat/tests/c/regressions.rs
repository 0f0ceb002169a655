//! Faults that programs have shown, one module a kind of fault, each test named after what went
//! wrong. The programs in C and C++ are in `tests/regressions`, and run on our libraries.

mod callbacks;
mod cpp_headers;
mod forks;
mod header_names;
mod liburcu;
mod plain_machine;
mod program;
mod stall_reports;
