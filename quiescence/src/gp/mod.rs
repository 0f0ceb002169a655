//! Grace periods of threads: who reads, and the driver that waits for the readers.
//!
//! - [`slot`]: the word of a reader, and how a section begins and ends.
//! - [`registry`]: the readers of a domain, and the scan of their words.
//! - `record`: slots in memory of programs that were compiled against liburcu.
//! - [`relay`]: QSBR readers that hand the number of a grace period on.
//! - [`core`]: the state of a domain, and the driver of its grace-period machine.
//! - [`engine`]: the policy that says when grace periods start and how readers are scanned.
//! - [`tuning`]: the parameters of a domain.
//! - [`handle`]: references to a domain, strong and weak.
//! - [`by_domain`]: tables with one entry for each domain. `domains`: the domains in use.
//! - [`stall`]: when a grace period has taken too long.
//! - `hooks`: what rooms below do for this one.
//!
//! May import: [`os`](crate::os), [`event`](crate::event), `percpu`.

#[cfg(not(loom))]
pub(crate) mod by_domain;
pub(crate) mod core;
#[cfg(not(loom))]
pub(crate) mod domains;
pub(crate) mod engine;
#[cfg(not(loom))]
pub(crate) mod handle;
#[cfg(not(loom))]
pub(crate) mod hooks;
#[cfg(not(loom))]
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod relay;
pub(crate) mod slot;
pub(crate) mod stall;
pub(crate) mod tuning;
