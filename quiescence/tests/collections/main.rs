//! Maps, tables, lists, queues and stacks.

#[path = "../common/mod.rs"]
mod common;

mod copy_map;
mod hash_map;
mod hash_map_verified;
mod hash_table;
mod hash_table_memory;
mod id_map;
mod intrusive;
mod keys;
mod list;
mod queue_and_stack;
