//! Cells: what is loaded from them, stored in them and counted.

#[path = "../common/mod.rs"]
mod common;

mod arc_cell;
mod arc_cell_empty;
mod arc_cell_semantics;
mod exact_cell;
mod rseq_read;
