//! Read-copy-update (RCU) for user space: readers that cost nothing, updaters that never wait for
//! each other.
//!
//! Readers look at shared data inside a *read-side critical section*, which costs a few plain loads
//! and three plain stores, all of the stores to memory of the reader's own. Updaters publish a new
//! version in place of the old and free the old one after a *grace period*: a time in which every
//! section that could see it has ended.
//!
//! ```
//! use quiescence::Rcu;
//!
//! let routes = Rcu::new(vec!["10.0.0.0/8 via eth0"]);
//!
//! // A reader:
//! let guard = quiescence::read();
//! assert_eq!(routes.load(&guard).len(), 1);
//! drop(guard);
//!
//! // An updater: readers see the old table or the new one, whole.
//! routes.update(|old| {
//!     let mut new = old.clone();
//!     new.push("192.168.0.0/16 via eth1");
//!     new
//! });
//! assert_eq!(routes.load(&quiescence::read()).len(), 2);
//! ```
//!
//! # Which part to use
//! - [`Rcu`] and [`RcuOption`]: a value behind a pointer. Start here.
//! - [`read`], [`Reader`], [`Qsbr`]: three ways to read; the last costs nothing at all, and asks for
//!   a call now and then.
//! - [`synchronize`], [`start`]/[`poll`]/[`wait`]: grace periods, waited for or asked about.
//! - [`retire`], [`call`], [`barrier`]: work that is done after a grace period; [`Tuning`]: how much of it may
//!   wait, and how long; [`Retire`]: types of one's own.
//! - [`Snapshot`]: a few words, read whole; [`ArcCell`] and [`ArcCellOption`]: an `Arc` that is loaded and replaced. No updater
//!   waits for their readers.
//! - [`Domain`]: readers that hold up their own grace periods only. What the free functions do in the global
//!   domain its methods do in any.
//! - [`Srcu`]: a domain whose sections may block, end on other threads, and cross an `.await`. Tasks await grace
//!   periods, room and old values there ([`Srcu::synchronize_async`], [`Rcu::store_async`],
//!   [`Unlinked::into_inner_async`]), and block no executor.
//! - [`sync`]: counters, a reference count and a lock, on words of each processor.
//! - [`statistics`]: what goes on. [`set_stall_hook`]: who holds a grace period up that does not end, where,
//!   and with what stack.
//! - [`raw`]: sections and callbacks without guards and boxes, for foreign code; [`lane`]: the same callbacks, run by a
//!   thread that you name.
//!
//! # When not to use it
//! When updates are as frequent as reads, a lock (best one per bucket) is faster; when readers must
//! see the newest value or none, RCU is the wrong tool; when a section may last for ever, so will the
//! updaters that have come to the limit of what may wait for it: give it an [`Srcu`] of its own.
//!
//! # Where to begin
//! Programs for each part are in `examples/`. A place for a static is [`RcuOption::empty`], or an
//! [`Rcu`] in a [`LazyLock`](std::sync::LazyLock). What is queued when `main` returns is run then, as far as
//! the sections of other threads allow.
//!
//! In the environment, `QUIESCENCE_FENCES=portable` does without `membarrier(2)` (see [`Fences`]);
//! `QUIESCENCE_PERCPU=portable` without restartable sequences, `restartable` has them beside a debugger
//! as well (see [`per_cpu_path`]);
//! `QUIESCENCE_STATS=1` has the process serve its [`Statistics`] to its own user, for `rcu top`;
//! `QUIESCENCE_LIMIT_BYTES` and others say what domains begin with (see [`Tuning`]);
//! `QUIESCENCE_STALL_SIGNAL` is about the stacks in reports of stalls (see [`set_stall_hook`]). Probes are in
//! `docs/PROBES.md`. Features: `probes` and `stacks` (both by default), `tracing`.
//!
//! A build with debug assertions looks for mistakes as well: it panics where an object is retired twice, or
//! loaded from its place while it waits, and fills what it frees with 0x6b.
//!
//! What is promised, and which test holds it, is in `docs/GUARANTEES.md`; why it is right, in
//! `docs/ORDERINGS.md`.

#![cfg_attr(loom, allow(dead_code, unreachable_pub, unused_imports))]

// In reading order: what a reader writes down, who drives grace periods, what waits for them; then
// how threads and programs come by all that. Loom runs the first half.
#[cfg(feature = "chaos")]
pub mod chaos;
#[cfg(not(feature = "chaos"))]
#[allow(dead_code, unreachable_pub)]
mod chaos;
mod slot;
mod relay;
mod registry;
mod engine;
mod tuning;
mod stall;
mod statistics;
mod trace;
mod retired;
mod core;
mod stream;
mod limit;
mod inbox;
mod queue;
mod os;

#[cfg(not(loom))]
mod cells;
#[cfg(not(loom))]
mod srcu;
#[cfg(not(loom))]
mod restart;
#[cfg(not(loom))]
mod snapshot;
#[cfg(not(loom))]
mod arc_cell;
#[cfg(not(loom))]
pub mod sync;
#[cfg(not(loom))]
mod kind;
#[cfg(not(loom))]
mod by_domain;
#[cfg(not(loom))]
mod local;
#[cfg(not(loom))]
mod guard;
#[cfg(not(loom))]
mod qsbr;
#[cfg(not(loom))]
mod cache;
#[cfg(not(loom))]
mod retire;
#[cfg(not(loom))]
mod defer;
#[cfg(not(loom))]
mod worker;
#[cfg(not(loom))]
mod domain;
#[cfg(not(loom))]
mod weigh;
#[cfg(not(loom))]
mod tasks;
#[cfg(not(loom))]
mod rcu;
#[cfg(not(loom))]
pub mod raw;
#[cfg(not(loom))]
pub mod lane;
#[cfg(not(loom))]
pub mod foreign;
pub mod intrusive;
#[cfg(not(loom))]
mod look;
#[cfg(not(loom))]
#[cfg_attr(not(target_os = "linux"), path = "serve/nowhere.rs")]
mod serve;
#[cfg(not(loom))]
mod global;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
#[path = "../tests/common/expect.rs"]
mod expect;

#[cfg(not(loom))]
pub use crate::{
    arc_cell::{ArcCell, ArcCellOption},
    domain::{Builder, Cookie, Domain},
    engine::{Engine, UnknownEngine},
    global::*,
    guard::{Guard, Reader, Section, read},
    kind::{AnyKind, Global, Kind, Private},
    os::fence::Fences,
    os::percpu::PerCpuPath,
    os::stack::StackMissing,
    os::thread::ThreadState,
    qsbr::{Qsbr, QsbrGuard, QsbrOffline},
    rcu::{Rcu, RcuOption, Unlinked},
    retire::{Refused, Retire, WithSize},
    snapshot::Snapshot,
    srcu::{Sleepable, Srcu, SrcuGuard, SrcuOwnedGuard, Synchronize},
    stall::hook::{StallHook, set_stall_hook, take_stall_hook},
    stall::report::{Holdout, OldestGuard, SlotBalance, StackFrame, StallReport},
    statistics::{Latency, Statistics},
    tuning::Tuning,
    weigh::Weigh,
};

/// The example of the README, which is to compile as well.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[derive(Debug)]
pub struct Readme;

// Pages of documentation: no code but the examples. `quiescence/docs` links to the repository's
// `docs`, so that the package has them. The first definition of a link counts: here it leads to the
// page in rustdoc, in the repository to the file.
#[cfg(any(doc, doctest))]
#[doc = "[glossary]: crate::glossary"]
#[doc = ""]
#[doc = include_str!("../docs/GUIDE.md")]
pub mod guide {}

#[cfg(any(doc, doctest))]
#[doc = "[guide]: crate::guide"]
#[doc = ""]
#[doc = include_str!("../docs/GLOSSARY.md")]
pub mod glossary {}

/// For the macro [`domain!`] only.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod __private {
    pub use crate::core::Core;
    pub use crate::kind::Handle;

    use crate::{Guard, Kind};
    use std::panic::Location;

    /// A section of a declared domain.
    #[inline]
    pub fn begin<'k, K: Kind>(kind: &'k K, place: &'static Location<'static>) -> Guard<'k, K> {
        Guard::begin(kind, place)
    }

    /// A domain for a static.
    pub const fn new_core(name: &'static str) -> Core {
        Core::declared(name)
    }
}
