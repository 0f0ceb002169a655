//! The interface of `seize` 0.3 on `quiescence`: a program that asks for the original gets this
//! crate by a line in its `Cargo.toml`. It is built on the crate that does the same for seize 0.5,
//! whose page says which threads reclaim objects, when, and how many may wait.
//!
//! # What differs from `seize`
//! - Once its object is retired, a [`Link`] has the function that reclaims the object.
//! - [`Collector::epoch_frequency`] has no effect: objects have no birth epoch. A thread that stays
//!   in a section delays what is retired meanwhile, and the limit bounds the rate.
//! - [`Guard::thread_id`] returns the same number for all guards of a thread.
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
