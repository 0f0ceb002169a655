//! SRCU: readers count themselves in and out of two indexes, and may sleep in between.
//!
//! A reader loads the current index, increments that index's *lock* count on its CPU, and at its
//! end the same index's *unlock* count, on whatever CPU it is then. An index has drained when the
//! two sums over all CPUs are equal. Counts never go down, so a reader may migrate.
//!
//! ```text
//!   reader                       worker, to check whether an index has drained
//!   b = current index            u = sum of the index's unlock counts
//!   lock[b] on this CPU += 1     fence A
//!   fence B                      l = sum of the index's lock counts
//!     ... section ...            drained if u = l
//!   fence C
//!   unlock[b] on any CPU += 1    flip: fence E; current = the other index; fence D
//! ```
//!
//! A grace period is a scan of the index that is not current, a flip, and a scan of the other
//! index. (The first scan finds readers that loaded the index before the last flip and counted
//! themselves in only afterwards.) A *worker* drives it: each run makes a few checks, and the
//! *delay function* says when the worker is queued again. Only that function changed in 2022, when
//! 8,000 grace periods took first 5.66 seconds, then 128, then ten ([`Published`]).
//!
//! [`SrcuMachine`] has no clock: ticks are reported to it. It accesses nothing outside itself,
//! needs no allocator, and never panics. Source: descriptions of `kernel/rcu/srcutree.c`
//! (McKenney, Triplett and others).
//!
//! Reading order: `delay`, `adaptive`, `any`, `machine`.

mod adaptive;
mod any;
mod delay;
mod machine;

pub use adaptive::AdaptiveDelay;
pub use any::AnyDelay;
pub use delay::{Age, CallbackDelay, Delay, Published, Situation, Wait};
pub use machine::{Action, Event, Phase, Refused, STEPS, SrcuMachine};

pub use crate::sequence::{Cookie, Sequence};

/// A synchronous grace period is expedited by itself if the domain was idle for longer than this.
pub const EXPEDITE_AFTER_IDLE_NS: u64 = 25_000;

/// The index that is not `index`.
pub const fn other(index: u8) -> u8 {
    1 ^ (index & 1)
}
