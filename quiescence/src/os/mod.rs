//! The only interface to the operating system: fences across CPUs, futexes, restartable sequences,
//! memory, signals, clocks, the state of threads.
//!
//! May import: nothing of the library.
//!
//! All atomics and locks come from [`sync`], so that loom can substitute its own.

/// An atomic's `fetch_update`. Rust 1.99 prefers another name, which `rust-version` does not have.
macro_rules! fetch_update {
    ($word:expr, $($how:expr),+) => {{
        #[allow(deprecated)]
        let before = $word.fetch_update($($how),+);
        before
    }};
}

#[cfg_attr(not(target_os = "linux"), path = "calls/elsewhere.rs")]
#[cfg_attr(miri, allow(dead_code, unused_imports))]
pub(crate) mod calls;
pub(crate) mod clock;
pub(crate) mod environment;
pub(crate) mod exit;
pub(crate) mod fence;
pub(crate) mod files;
mod for_loom;
pub(crate) mod forking;
pub(crate) mod futex;
pub(crate) mod lock_rank;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod nap;
pub(crate) mod on_drop;
pub(crate) mod percpu;
pub(crate) mod reserved;
pub(crate) mod signals;
pub(crate) mod stack;
#[cfg(target_os = "linux")]
pub(crate) mod socket;
pub(crate) mod sync;
pub(crate) mod thread;
pub(crate) mod thread_state;
pub(crate) mod tracer;
pub(crate) mod user_code;
