//! Pairs "before, after": what the chapters of `docs/TRANSFORMATIONS.md` change, and what
//! `rcu bench tools` measures. They need this crate and the standard library only.
//!
//! [`ladder`] has five stages of one program, which are the pairs of several chapters. Each other
//! pair has the two submodules `before` and `after` with a structure of one name, which has
//! `new(n)`, and `run(thread, operations, seed)`, to be called by some threads at once. `run`
//! returns a checksum that depends on its arguments only: so both forms, and any interleaving, give
//! the same. Structures that are updated have a `total` besides, which is the sum of what all calls
//! have returned, if no update was lost.

#![allow(clippy::missing_panics_doc, reason = "only where a thread has panicked under a lock")]
#![allow(unreachable_pub, dead_code, reason = "several programs share it, and use parts of it")]

pub mod deleted_flag;
pub mod inbox;
pub mod ladder;
pub mod lock_pair;
pub mod lock_pairs;
pub mod log;
pub mod one_lock_at_a_time;
pub mod publish;
pub mod random;
pub mod shipping;
pub mod when_to_stop;
