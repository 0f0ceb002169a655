//! Designs of RCU as other kernels have them, in our own program, to run this kernel in place of
//! ours. Each implements the conformance kit's [`Rcu`](conformance::Rcu), so the torture runs on
//! it: `cargo xtask kernel --engine asterinas torture`. `cargo xtask kernel rivals` prints what
//! `latency.rs` measures of them and of ours. What is not about grace periods (allocation, reports)
//! is left out. No NMI is simulated within their hooks, as it is within ours in the torture.

#[cfg(feature = "asterinas")]
pub(crate) mod asterinas;
#[cfg(feature = "dragonos")]
pub(crate) mod dragonos;
#[cfg(feature = "rival")]
mod list;
