//! What keeps a word for each CPU, and sequence locks.

#[path = "../common/mod.rs"]
mod common;

mod local_global;
mod percpu;
mod sequences;
mod tools;
