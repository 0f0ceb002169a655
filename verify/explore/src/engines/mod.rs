//! Every state that the kernel engines can reach.
//!
//! The engines of [`kernel::engine`] live on what CPUs report. Here CPUs read, switch, tick,
//! sleep and queue callbacks in every order (`cpus`), and each engine is explored with a few of
//! them, from numbers right before their wrap and with counters that come round at every second
//! quiescent state.
//!
//! - **Safety.** No callback runs, and no grace period ends, before every section has ended that
//!   had begun when the callback was queued, or the grace period began. Callbacks run once, in
//!   order, and are counted right.
//! - **Progress.** From every state, with sections that end and CPUs that do what they are asked
//!   to, but with no thread that sleeps waking up of itself, all callbacks can run, and then the
//!   engine wants nothing any more: no softirq, no timer.
//! - **Each step is needed.** `worlds/engines.toml` says of each step that an engine can leave out
//!   what comes of it, and the tests hold it to that.
//!
//! Reading order: [`cpus`], [`mod@subjects`].

pub mod cpus;
pub mod subjects;

pub use cpus::Cpus;
pub use subjects::{Expected, Subject, faults, subjects};
