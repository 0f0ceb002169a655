//! The interface of `seize` 0.3 on `quiescence`: what a program gets that asks for the original and
//! has one line more in its `Cargo.toml`. It stands on the crate that does the same for seize 0.5,
//! whose page says who reclaims, when, and how much may wait.
//!
//! # What differs from `seize`
//! - A [`Link`] holds the function that an object is reclaimed with, from when it is retired on.
//! - [`Collector::epoch_frequency`] has no effect: objects have no birth epoch. A thread that stays
//!   in a section holds up what is retired meanwhile, and the limit bounds the rate.
//! - [`Guard::thread_id`] is the same number as that of the calling thread's other guards.
//!
//! # Source
//! The interface is seize's (Ibraheem Ahmed), version 0.3.

mod collector;
mod guard;
mod link;
pub mod reclaim;

pub use collector::Collector;
pub use guard::Guard;
pub use link::{AsLink, Link, Linked};
