//! What the engines of kernels do, event by event. That each is safe and sure to finish, and needs
//! each of its steps, is explored in every state: `verify/explore/src/engines`.

mod behaviour;
mod recorder;
mod ring;
mod tree_variants;
