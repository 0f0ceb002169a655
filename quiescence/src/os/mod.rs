//! The only door to the operating system: fences across CPUs, futexes, restartable sequences,
//! memory, signals, clocks, what threads do.
//!
//! May import: nothing of the library but `chaos`.
//!
//! [`sync`] is the door for atomics and locks, so that loom can put its own behind the same names.

#[cfg(not(loom))]
pub(crate) mod clock;
pub(crate) mod environment;
#[cfg(not(loom))]
pub(crate) mod exit;
pub(crate) mod fence;
#[cfg(not(loom))]
pub(crate) mod forking;
pub(crate) mod futex;
pub(crate) mod lock_rank;
pub(crate) mod memory;
pub(crate) mod nap;
#[cfg(not(loom))]
pub(crate) mod percpu;
#[cfg(not(loom))]
pub(crate) mod reserved;
#[cfg(not(loom))]
pub(crate) mod signals;
#[cfg(not(loom))]
pub(crate) mod stack;
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) mod socket;
pub(crate) mod sync;
#[cfg(not(loom))]
pub(crate) mod thread;
#[cfg(not(loom))]
pub(crate) mod tracer;
pub(crate) mod user_code;
