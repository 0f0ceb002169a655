//! Grace periods of threads: who reads, and the driver that waits for the readers.
//!
//! - [`gp_words`]: what a domain shares with its readers.
//! - [`reader`]: the word of a reader, and how a section begins and ends.
//! - [`registry`]: the readers of a domain. `holdouts`: the scan of their words.
//! - `record`: slots in memory of programs that were compiled against liburcu.
//! - [`relay`]: QSBR readers that hand the number of a grace period on.
//! - [`grace_periods`]: what a domain has for its grace periods, and the driver of its machine.
//! - [`observers`]: the name and the counters of a domain.
//! - [`engine`]: the policy that says when grace periods start and how readers are scanned.
//! - [`tuning`]: the parameters of a domain.
//! - [`stall`]: when a grace period has taken too long.
//! - `hooks`: what rooms below do for this one.
//!
//! May import: [`os`](crate::os), [`event`](crate::event), `percpu`.

pub(crate) mod engine;
pub(crate) mod gp_words;
pub(crate) mod grace_periods;
mod holdouts;
#[cfg(not(loom))]
pub(crate) mod hooks;
pub(crate) mod observers;
pub(crate) mod reader;
#[cfg(not(loom))]
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod relay;
pub(crate) mod stall;
pub(crate) mod tuning;
