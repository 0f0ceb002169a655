//! Faults that were found from outside, each with the test that fails without its mend.
//!
//! A module is one kind of fault, a function is one fault. Tests of the same kind for the C and C++
//! libraries are in `compat/tests/c/regressions.rs`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/heads.rs"]
mod heads;

mod barrier_beside_kept;
mod hash_map;
mod id_map;
mod map_reentrance;
mod map_tables;
#[cfg(unix)]
mod hash_table;
mod big_ref;
mod cells;
mod kept_objects;
mod reader_counts;
mod far_cookies;
mod worker_survives;
#[cfg(target_os = "linux")]
mod fork_in_handlers;
#[cfg(unix)]
mod charged_children;
#[cfg(unix)]
mod forked_barrier;
mod executors;
mod owned_bytes;
mod short_threads;
mod many_domains;
mod fairness;
mod long_turns;
mod stopped_in_allocator;
mod sleepable_limit;
mod starved_driver;
mod report_signal;
mod debugger;
#[cfg(unix)]
mod lock_order;
mod neglected_queue;
mod lazy_worker;
mod unwinding;
mod pinned_drops;
mod kept_sections;
mod barrier_futures;
mod printing;
mod wakers;
mod sequence_locks;
mod large_payloads;
