//! What the engines of kernels do, event by event. That each is safe and sure to finish, and needs
//! each of its steps, is explored in every state of two CPUs: `verify/explore/src/engines`; of more
//! CPUs, at random: `verify/explore/tests/explore/any_order.rs`.

mod behaviour;
mod recorder;
mod ring;
mod tree_variants;

/// As many CPUs as any of the tests has.
const MAX: usize = 40;
