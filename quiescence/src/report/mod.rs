//! Statistics of domains ([`Statistics`]), and reports of grace periods that do not end
//! ([`StallReport`]; [`set_stall_hook`] sets a function that receives them).

// `stall`: reports of stalls. `stats_server`: the thread that serves statistics to `rcu top`.
//
// May import: all rooms but `process`.

pub(crate) mod stall;
#[cfg_attr(not(target_os = "linux"), path = "stats_server/unsupported.rs")]
pub(crate) mod stats_server;

pub use self::stall::hook::{StallHook, set_stall_hook, take_stall_hook};
pub use self::stall::report::{Holdout, OldestGuard, StallReport};
pub use crate::event::statistics::{Latency, Statistics};
pub use crate::gp::stall::SlotBalance;
pub use crate::os::modules::StackFrame;
pub use crate::os::stack::StackMissing;
pub use crate::os::thread_state::ThreadState;
