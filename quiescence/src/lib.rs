//! Read-copy-update (RCU) for user space. Readers look at shared data for the cost of a few
//! ordinary loads and stores. Updaters replace it without waiting for readers. Old versions are
//! freed after a grace period. The memory that they hold is bounded.
//!
//! ```
//! use quiescence::{Rcu, Weigh};
//!
//! #[derive(Clone, Weigh)] // Weigh: how many bytes a version owns; they count against the limit
//! struct Config {
//!     routes: Vec<String>,
//!     version: u64,
//! }
//!
//! let config = Rcu::new(Config { routes: vec!["10.0.0.0/8 via eth0".into()], version: 1 });
//!
//! // A reader: its section ends when the reference that `read` returns is dropped.
//! assert_eq!(config.read().version, 1);
//!
//! // An updater: a reader sees either the old configuration or the new one, never a mixture.
//! config.update(|old| Config { version: old.version + 1, ..old.clone() });
//! assert_eq!(config.read().version, 2);
//! ```
//!
//! A reader loads data in a *read-side critical section*, or section for short. A *grace period*
//! ends once every section that began before it has ended. This one waits for A and B, but not for
//! C:
//!
//! ```text
//!                 replaced                    freed
//! updater   ---------|------ grace period ------|---
//! reader A     [---- old ----]
//! reader B        [------- old ---------------]
//! reader C              [--------- new ------------
//! ```
//!
//! - The **[guide]** teaches the library. It assumes no knowledge of RCU.
//! - **[Migrating](crate::migrating)** lists the steps from `RwLock`, `Mutex<HashMap>`, arc-swap,
//!   dashmap, crossbeam-epoch, seize, papaya, liburcu and the Linux kernel's API.
//! - The [transformations] show how to replace a lock with a suitable tool; the [glossary] explains
//!   the terms, with those of the kernel, liburcu and crossbeam; `examples/` has programs for
//!   most parts.
//!
//! # Modules
//! | module | what | when |
//! |---|---|---|
//! | the root: [`Rcu`], [`RcuOption`] | a value that is read and replaced | in place of an `RwLock<T>`; [`RcuOption`] is `const` for statics |
//! | [`ArcCell`] | an `Arc` that is loaded without touching its count | in place of an `ArcSwap`; kept across an `.await`, or for a whole request |
//! | [`read`], [`Reader`], [`Qsbr`] | sections | several values in one section; hot loops; loops that regularly hold no references |
//! | [`Domain`], [`domain!`] | a separate set of readers with its own grace periods | sections that last longer than the others |
//! | [`Srcu`], [`OwnedRcuRef`] | sections that block, `.await` or change threads | tasks; [`Rcu::sleepable`], [`Rcu::store_async`], [`Domain::synchronize_async`] |
//! | [`retire`], [`call`], [`synchronize`], [`barrier`] | free, call or wait after a grace period | data structures of your own; [`Domain::poll`] asks without waiting; [`Retire`] for types of your own |
//! | [`cell`] | variants of `ArcCell`, and [`Snapshot`](cell::Snapshot) | exact reference counts; a few words that are copied |
//! | [`collections`] | maps, sets, tables of ids, lists, queues, stacks | in place of a locked or sharded map |
//! | [`sync`] | per-CPU counters, reference counts and locks; `SeqLock`, `Latch` | a word that all threads write |
//! | [`hazard`] | hazard pointers | to protect one object for a long time |
//! | [`tuning`] | the memory limit, engines, fences | [`Tuning`](tuning::Tuning), [`Domain::try_retire`], [`AtLimit`] |
//! | [`report`] | statistics and stall reports | a grace period does not end; memory grows |
//! | [`raw`] | sections without guards, callbacks with embedded heads | C interfaces, `unsafe` data structures |
//! | [`tag`] | the types of domains | code that is generic over domains |
//! | [`epoch`] | crossbeam-epoch's interface | structures on tagged atomic pointers |
//! | [`intrusive`] | queues, stacks and a hash table of your own nodes | nothing may be allocated |
//! | [`callback_queue`], [`liburcu_readers`] | what liburcu programs need | an interface for C |
//!
//! # When not to use it
//! If updates are about as frequent as reads, a lock per bucket is faster. If readers must not see
//! a value that has been replaced, use a lock. If sections may last forever, updaters block once
//! the memory limit is reached. Give such sections an [`Srcu`] of their own: its updaters wait for
//! at most 10 ms and then exceed the limit, so its memory grows instead.
//!
//! # Mistakes
//! Waiting for a grace period inside a section that it must wait for panics. In an [`Srcu`] it
//! deadlocks, and is reported as a stall. Using a guard or a cookie of another domain is a compile
//! error or a panic. Builds with debug assertions also panic if an object is retired twice or
//! loaded after it was retired, and fill freed memory with 0x6b. A grace period that does not end
//! is reported together with the threads that delay it ([`report::set_stall_hook`]).
//!
//! # Systems
//! Everything works on Linux on x86-64. Without `membarrier(2)`, readers execute full fences
//! ([`tuning::Fences`]); without restartable sequences, per-CPU words are updated by atomic
//! instructions ([`tuning::PerCpuPath`]). So the library also works on aarch64, on older kernels
//! and in sandboxes. On macOS and Windows it compiles but is not tested. 32-bit targets are
//! refused.
//!
//! # Features and environment
//! | feature | default | what it adds |
//! |---|---|---|
//! | `collections` | yes | the module [`collections`] |
//! | `probes` | yes | USDT probes: `docs/PROBES.md` |
//! | `stacks` | yes | stacks in stall reports |
//! | `call_rcu` | no | [`callback_queue`], [`liburcu_readers`] |
//! | `epoch` | no | [`epoch`] |
//! | `intrusive` | no | [`intrusive`] |
//! | `rayon` | no | parallel iteration over maps |
//! | `serde` | no | [`ArcCell`]s, maps and sets are serialised as their contents |
//! | `tokio` | no | the module `tokio`: a runtime's workers are readers |
//! | `tracing` | no | events of the crate `tracing` |
//!
//! The [guide](crate::guide#8-debug) lists the environment variables. `QUIESCENCE_STATS=1` makes
//! the process visible to `rcu top`; `QUIESCENCE_LIMIT_BYTES` and `QUIESCENCE_LIMIT_OBJECTS` set
//! the limit.
//!
//! # In the repository
//! `README.md` and `docs/MEASURED.md` have the figures, `docs/GUARANTEES.md` the promises
//! (labelled HZ-2 and so on), `docs/ORDERINGS.md` the arguments for the memory orderings,
//! `docs/C.md` and `compat/README.md` the C libraries, and `facades/` the drop-in crates for
//! arc-swap, crossbeam-epoch and seize. Callbacks and objects still queued when `main` returns run
//! and are dropped at that point, unless sections of other threads prevent it.

// What only some features use, and pages that name what only they have.
#![cfg_attr(
    not(all(feature = "call_rcu", feature = "epoch", feature = "intrusive")),
    allow(dead_code, unreachable_pub, unused_imports),
    allow(rustdoc::broken_intra_doc_links, rustdoc::private_intra_doc_links)
)]

// Counts, ids and liburcu's layouts have words of 64 bits.
#[cfg(not(target_pointer_width = "64"))]
compile_error!("quiescence needs a target with pointers of 64 bits");

// The rooms, in their order: each imports only those above it.
#[macro_use]
mod os;
mod event;
mod percpu;
mod hazptr;
mod gp;
mod srcu;
mod reclaim;
mod rseq;
mod domain;
pub mod sync;
#[cfg(feature = "collections")]
pub mod collections;
#[cfg(feature = "call_rcu")]
mod call_rcu;
pub mod report;
mod process;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(test)]
#[path = "../tests/common"]
mod common {
    pub(crate) mod again;
    pub(crate) mod expect;
    #[cfg(target_os = "linux")]
    pub(crate) mod filter;
    mod limited;
    #[cfg(unix)]
    pub(crate) mod processes;
    pub(crate) mod random;
    pub(crate) mod threads;

    impl<F: FnMut()> crate::Weigh for threads::OnDrop<F> {}
}

#[cfg(feature = "call_rcu")]
pub use crate::call_rcu::{callback_queue, liburcu_readers};
#[cfg(feature = "intrusive")]
pub use crate::collections::intrusive;
#[cfg(feature = "epoch")]
pub use crate::domain::epoch;
#[cfg(feature = "tokio")]
pub use crate::domain::tokio;
pub use crate::{
    domain::arc_cell::ArcCell,
    domain::cookie::Cookie,
    domain::domain::Domain,
    domain::global::{barrier, call, retire, synchronize},
    domain::guard::{Guard, read},
    domain::hazard,
    domain::qsbr::{Qsbr, QsbrGuard, QsbrOffline},
    domain::raw,
    domain::rcu::{OwnedRcuRef, Rcu, RcuOption, RcuRef, Unlinked, Version},
    domain::reader::Reader,
    domain::srcu::{Srcu, SrcuGuard, SrcuOwnedGuard},
    reclaim::free::AtLimit,
    reclaim::retire::{Retire, WithSize},
    reclaim::weigh::Weigh,
};
/// Derives the trait [`Weigh`](trait@Weigh): a value owns the sum of what its fields own.
pub use derive::Weigh;

pub mod cell {
    //! Variants of [`Rcu`](crate::Rcu) and [`ArcCell`], and a comparison of all cells.
    //!
    //! | cell | what a reader holds | the old value |
    //! |---|---|---|
    //! | [`Rcu`](crate::Rcu), [`RcuOption`](crate::RcuOption) | a reference, in a section | is dropped after a grace period |
    //! | [`ArcCell`], [`ArcCellOption`], [`ArcCellWeak`] | a guard, without a count | is released once no guard has it |
    //! | [`ExactCell`] | a guard; an update adds a count for each guard | is released at once |
    //! | [`Snapshot`] | a copy of a few words | is overwritten |
    //!
    //! # Exact counts
    //! | | [`ArcCell`] | [`ExactCell`] |
    //! |---|---|---|
    //! | a load with its guard | two loads, two stores | and three stores, a locked instruction |
    //! | an update | an exchange | an exchange, a fence, [more](ExactCell) |
    //! | the old value is dropped | within 10 ms if no guard has it, else up to 1 s after its guard ends; by any thread | by the update, or by the last guard |
    //! | what it may hold | a pointer to a `Send + Sync + 'static` value that implements [`Weigh`] | any counted pointer, even an `Rc` |
    //! | memory waiting to be freed | bounded by a limit | none |
    //! | loads in a signal handler | allowed, on a thread that has loaded one | not allowed |
    //!
    //! Take an `ArcCell` if reads must be cheap; an `ExactCell` if values must be dropped at once
    //! and updates are rare.
    //!
    //! [`migrating`](crate::migrating#from-arc-swap) maps the names of `arc-swap` to those here.

    pub use crate::domain::arc_cell::{
        Access, ArcCellAny, ArcCellOption, ArcCellWeak, ArcGuard, AsRaw, Cache, Constant,
        ConstantGuard, DynAccess, DynGuard, Map, MapCache, MapGuard, RefCnt,
    };
    pub use crate::domain::exact_cell::{AT_END, Counted, ExactCell, ExactGuard};
    pub use crate::domain::snapshot::Snapshot;
    #[cfg(doc)]
    use crate::{ArcCell, Weigh};
}

/// Tags of domains, for code that is generic over domains. Each domain has a tag type, and a
/// section belongs to one tag.
pub mod tag {
    pub use crate::domain::guard::{Global, ThreadTag};
    pub use crate::domain::names::Private;
    pub use crate::domain::srcu::Sleepable;
    pub use crate::domain::tag::{DomainTag, Section};
}

/// Settings of domains (limits, engines), and what the process chose (fences, per-CPU path).
pub mod tuning {
    pub use crate::domain::builder::Builder;
    pub use crate::domain::global::{fences, per_cpu_path};
    pub use crate::gp::engine::{Engine, UnknownEngine};
    pub use crate::gp::tuning::Tuning;
    pub use crate::os::fence::Fences;
    pub use crate::os::percpu::PerCpuPath;
}

/// The example of the README, which is to compile as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;

// Pages of documentation: no code but the examples. `quiescence/docs` links to the repository's
// pages, so that the package has them. The first definition of a link counts: `links.txt` leads to
// pages of rustdoc, the definitions of the pages to files.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/links.txt")]
#[doc = include_str!("../docs/GUIDE.md")]
pub mod guide {}

// Its examples need the crates that programs come from: `quiescence-bench` runs them.
#[doc(alias("RwLock", "arc-swap", "crossbeam-epoch", "dashmap", "liburcu", "pin"))]
#[cfg(all(doc, not(doctest)))]
#[doc = include_str!("../docs/links.txt")]
#[doc = include_str!("../docs/MIGRATING.md")]
pub mod migrating {}

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/links.txt")]
#[doc = include_str!("../docs/GLOSSARY.md")]
pub mod glossary {}

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/links.txt")]
#[doc = include_str!("../docs/TRANSFORMATIONS.md")]
pub mod transformations {}

/// What rooms and modules do for those above them, which may not import them: a function for each
/// occasion.
struct Hooks {
    /// A domain, or something else that a `fork` must find, is used for the first time. Called
    /// once, under no lock.
    first_use: fn(),
    /// A `fork` is about to begin, and must find no one-time initialisation in progress. Called
    /// under no lock.
    before_fork: fn(),
    /// A thread has released all of the library's locks, after a grace period or after a domain was
    /// used for the first time.
    unlocked: fn(),
    /// A grace period has not ended for too long. Called under no lock of a domain.
    stalled: fn(gp::stall::Note),
    /// The outermost section of a slot has ended, and a mark says that there is work to do then.
    /// Called by the slot's owner.
    section_ended: fn(&gp::slot::Slot),
    /// A thread that has used the library ends: what it leaves behind in a domain becomes an orphan
    /// there. No function of the library that is in progress on it goes on afterwards.
    thread_ends: unsafe fn(),
    /// A domain that has been in use ends. Called under no lock.
    domain_ends: fn(&reclaim::domain_state::DomainState),
    /// A domain is to end with this handle, and the calling thread may run no callback. Called
    /// under no lock.
    ends_elsewhere: fn(reclaim::domain_state::Handle),
}

static HOOKS: Hooks = Hooks {
    first_use: process::exit::watch,
    before_fork: || _ = gp::tuning::defaults(),
    unlocked: report::stats_server::attend,
    stalled: report::stall::reporter::send,
    section_ended: reclaim::at_limit::section_ended,
    // SAFETY: as `thread_ends` says.
    thread_ends: || unsafe { reclaim::local::leave_thread(reclaim::defer::orphan) },
    domain_ends: reclaim::worker::domain_ends,
    ends_elsewhere: reclaim::worker::end_domain,
};

/// For the macro [`domain!`], and for tests of where user code runs.
#[doc(hidden)]
pub mod __private {
    pub use crate::os::user_code::{Site, here};
    pub use crate::reclaim::domain_state::{DomainState, Handle, Named};

    use crate::Guard;
    use crate::os::sync::const_unless_loom;
    use crate::tag::ThreadTag;
    use std::panic::Location;

    /// A section of a declared domain.
    #[inline]
    pub fn begin<'k, K: ThreadTag>(
        kind: &'k K,
        location: &'static Location<'static>,
    ) -> Guard<'k, K> {
        Guard::begin(kind, location)
    }

    const_unless_loom! {
        /// A domain for a static.
        pub fn new_core(name: &'static str) -> DomainState {
            DomainState::declared(name)
        }
    }
}
