//! A small machine: CPUs, threads on them that run programs of a few instructions, and what the
//! kernel does to them.
//!
//! The programs are texts in `worlds/programs`, which `assemble` reads; `code` has the
//! instructions, `step` what each does, `kernel` what happens to a thread besides, and `world` the
//! state.

mod assemble;
mod code;
mod kernel;
mod step;
mod world;

pub(crate) use assemble::{Given, Line, assemble};
pub(crate) use world::{Plan, Seat};
