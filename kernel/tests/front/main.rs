//! [`kernel::Kernel`] over CPUs that are threads, or that one test steps through.

mod board;
mod choice;
mod conformance;
mod edges;
mod faults;
mod hotplug;
mod misuse;
mod seeds;
mod srcu;
mod threads;
mod updaters;
