//! A small machine: CPUs, threads on them that run programs of a few instructions, and what the
//! kernel does to them.
//!
//! The programs are texts in `worlds/programs`, which `assemble` reads for a `scenario`; `code` has
//! the instructions, `step` what each does, `kernel` what happens to a thread besides, and `world`
//! the state.

mod assemble;
mod code;
mod kernel;
mod scenario;
mod step;
mod world;

pub(crate) use scenario::{Scenario, world};
