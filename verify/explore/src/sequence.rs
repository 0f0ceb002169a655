//! Sequence locks and latches: what is read is one value; and the lock among their writers.
//!
//! The programs are `worlds/programs/sequence.txt` and `writers.txt`.

use std::sync::LazyLock;

use crate::harness::{self, World};
use crate::machine;

/// Sequence locks, latches and the lock among their writers, as a world.
pub static SEQUENCE: LazyLock<World> =
    LazyLock::new(|| machine::world("", harness::table!("sequence")));
