//! Grace periods on thousands of virtual CPUs.
//!
//! Discrete events in integer virtual time: the same seed and options give the same bytes on any
//! machine. The engines are those of kernels ([`kernel::engine`]), as published and as they are
//! today, and one of our own; the explorer explores the same code. The library runs none of them:
//! its machine is [`grace::Machine`]. What is modelled here is the hardware and the kernel around
//! the engines.
//!
//! [`run`] runs a [`workload::Workload`] on a machine ([`setup::Setup`]) with an engine
//! ([`engines::EngineKind`]) and returns a [`report::Report`]. [`srcu::run`] does so for SRCU,
//! which has a machine of its own. [`replay::PARTS`] has published figures next to the model's.
//!
//! [`ours`] is the library itself: [`ours::run`] drives its machine, its callbacks and its worker
//! over virtual threads, and [`ours::suite`] says how its default engine must compare with the
//! fixed ones.
#![forbid(unsafe_code)]

mod calendar;
pub mod cost;
mod cpu;
mod driver;
pub mod engines;
pub mod events;
pub mod histogram;
pub mod line;
pub mod memory;
pub mod ours;
pub mod parameter;
mod program;
pub mod queueing;
mod random;
pub mod replay;
pub mod srcu;
pub mod report;
mod run;
pub mod setup;
pub mod slab;
mod softirq;
mod tally;
mod ticks;
pub mod timeline;
pub mod workload;
mod world;

pub use engines::EngineKind;
pub use kernel::engine::store::Heap;
pub use report::Report;
pub use run::{run, run_engine, run_with_progress};
pub use setup::{Impossible, Setup};
pub use workload::Workload;
