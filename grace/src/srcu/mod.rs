//! SRCU: readers count themselves in and out of two indexes, and may sleep in between.
//!
//! A reader looks which index is current, increments that index's *lock* count on its CPU, and
//! at the end the same index's *unlock* count on whatever CPU it is on then. An index has drained
//! when the sums over all CPUs are equal. Counts never go down, so that a reader may migrate.
//!
//! ```text
//!   reader                       worker, to see whether an index has drained
//!   b = current index            u = sum of the index's unlock counts
//!   lock[b] on this CPU += 1     fence A
//!   fence B                      l = sum of the index's lock counts
//!     ... section ...            drained if u = l
//!   fence C
//!   unlock[b] on any CPU += 1    flip: fence E; current = the other index; fence D
//! ```
//!
//! A grace period is a scan of the index that is not current (a reader that looked up the index
//! before the last flip and counts itself in only now is still in it), a flip, and a scan of the
//! other index. It is driven by a *worker*, which is run, makes a few checks, and is queued again
//! after what the *delay function* says. That function is all that changed in 2022, from 5.66
//! seconds for 8,000 grace periods to 128 and back to ten ([`Published`]).
//!
//! [`SrcuMachine`] has no clock: ticks are reported to it. It touches nothing, needs no allocator,
//! and never panics. Source: `kernel/rcu/srcutree.c`, from its description; McKenney, Triplett and
//! others.
//!
//! Reading order: `sequence`, `delay`, `adaptive`, `any`, `machine`.

mod adaptive;
mod any;
mod delay;
mod machine;
mod sequence;

pub use adaptive::AdaptiveDelay;
pub use any::AnyDelay;
pub use delay::{Age, CallbackDelay, Delay, Published, Situation, Wait};
pub use machine::{Action, Event, Refused, STEPS, SrcuMachine};
pub use sequence::{Cookie, Phase, Sequence};

/// A synchronous grace period is expedited by itself if the domain was idle for longer than this.
pub const EXPEDITE_AFTER_IDLE_NS: u64 = 25_000;

/// The index that is not `index`.
pub const fn other(index: u8) -> u8 {
    1 ^ (index & 1)
}
