//! The examples: each runs, and what is in the longer ones holds.

#[path = "../common/mod.rs"]
mod common;

mod directory_cache;
mod examples;
mod lock_pair;
mod page_cache;
mod semaphores;
mod transformations;
