//! What needs the repository around the library: its documents, and a module of another package.
//! Not in the package that is published.

#[path = "../common/mod.rs"]
mod common;

mod copy_map_histories;
mod probes;
mod tidy;
