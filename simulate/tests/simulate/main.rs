//! The engines and the machine over virtual CPUs.

mod engines;
mod machine;
mod srcu;
mod tree;
mod tree_driver;
mod tree_variants;
