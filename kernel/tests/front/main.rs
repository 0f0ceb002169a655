//! [`kernel::Kernel`] over CPUs that are threads, or that one test steps through.

mod board;
mod conformance;
mod edges;
mod faults;
mod hotplug;
mod misuse;
mod threads;
mod updaters;
