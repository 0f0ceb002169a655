//! Grace periods of threads: who reads, and the driver that waits for the readers.
//!
//! - [`slot`]: the word of a reader, its domain's words, and how a section begins and ends.
//!   [`notes`]: what else is known of a reader.
//! - [`wake`]: the words by which readers wake a driver.
//! - [`qsbr`]: the same where the reader says at which moments it is in none. [`relay`]: such
//!   readers hand the number of a grace period on.
//! - [`registry`]: the readers of a domain, and the scan of their words.
//! - `thread`: the slots that a thread finds at once. [`ended`]: when it is to forget some.
//! - `record`: slots in memory of programs that were compiled against liburcu. [`links`]: what a
//!   domain of such readers has.
//! - [`grace_periods`]: what a domain has for its grace periods, and the driver of its machine.
//! - [`by_number`]: a table of what was given a number.
//! - [`observers`]: the name and the counters of a domain.
//! - [`engine`]: the policy that says when grace periods start and how readers are scanned.
//! - [`tuning`]: the parameters of a domain.
//! - [`stall`]: when a grace period has taken too long.
//!
//! May import: [`os`](crate::os), [`event`](crate::event), `percpu`.

pub(crate) mod by_number;
pub(crate) mod ended;
pub(crate) mod engine;
pub(crate) mod grace_periods;
pub(crate) mod links;
pub(crate) mod notes;
pub(crate) mod observers;
pub(crate) mod qsbr;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod relay;
pub(crate) mod slot;
pub(crate) mod stall;
pub(crate) mod thread;
pub(crate) mod tuning;
pub(crate) mod wake;
