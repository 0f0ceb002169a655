//! The engines and the machine over virtual CPUs.

mod engines;
mod machine;
mod srcu;
