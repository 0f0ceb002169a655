//! Designs of RCU that other kernels have, written again from their descriptions, to run this
//! kernel in place of ours. Each implements the conformance kit's [`Rcu`](conformance::Rcu), so the
//! torture runs on it: `cargo xtask kernel --engine asterinas torture`. `cargo xtask kernel rivals`
//! prints what `latency.rs` measures of them and of ours. No line is theirs; what is not about
//! grace periods (allocation, reports) is left out.

#[cfg(feature = "asterinas")]
pub(crate) mod asterinas;
#[cfg(feature = "dragonos")]
pub(crate) mod dragonos;
#[cfg(feature = "rival")]
mod list;
