//! Read-copy-update (RCU) for user space. Readers look at shared data at the price of a few plain
//! loads and stores; updaters replace it without waiting for them; what was replaced is freed
//! later, and the memory that waits is bounded.
//!
//! A reader loads data in a *read-side critical section*, a section for short. An updater puts a
//! new version in the place of the old one. The old one is freed after a *grace period*: when every
//! section has ended that had begun before.
//!
//! ```
//! use quiescence::{Rcu, Weigh};
//!
//! #[derive(Clone, Weigh)] // what of the limit on memory a value takes
//! struct Config {
//!     routes: Vec<String>,
//!     version: u64,
//! }
//!
//! let config = Rcu::new(Config { routes: vec!["10.0.0.0/8 via eth0".into()], version: 1 });
//!
//! // A reader: the section ends when what `read` returns is dropped.
//! assert_eq!(config.read().version, 1);
//!
//! // An updater: readers see the old configuration or the new one, whole.
//! config.update(|old| Config { version: old.version + 1, ..old.clone() });
//! assert_eq!(config.read().version, 2);
//! ```
//!
//! **The [guide] teaches it**, from `RwLock` and `arc-swap` on, with examples that are
//! tests. The [transformations] lead programs from a lock to the right tool, step by step. The
//! [glossary] has the terms, beside those of the Linux kernel, liburcu and crossbeam. Programs for
//! each part are in `examples/`.
//!
//! # By task
//! | task | parts |
//! |---|---|
//! | read and replace a value | [`Rcu`]; [`RcuOption`], which may be empty, and is `const` for statics |
//! | begin a section | [`read`]; [`Reader`], for hot loops; [`Qsbr`], without an instruction |
//! | load an `Arc` without a count, and keep what was loaded | [`ArcCell`], [`cell::ArcCellOption`], [`cell::ArcCellWeak`] |
//! | the same, and a store drops the old value | [`cell::ExactCell`] |
//! | protect one object | [`hazard`] |
//! | copy a few words, whole | [`cell::Snapshot`]; `SeqLock` and `Latch` in [`sync`] |
//! | wait for a grace period, or ask about one | [`synchronize`]; [`Domain::start_poll`], [`Domain::cookie`], [`Domain::poll`], [`Domain::wait`] |
//! | free, or call a function, after one | [`retire`], [`call`], [`barrier`]; [`Retire`] for types of your own |
//! | bound the memory that waits | [`tuning::Tuning`], [`Weigh`]; [`Domain::try_retire`], [`Domain::try_call`], [`AtLimit`] |
//! | keep readers apart from each other's updaters | [`Domain`], [`domain!`] |
//! | sections that block or `.await`; tasks that wait | [`Rcu::sleepable`], [`OwnedRcuRef`]; [`Srcu`]; [`Domain::synchronize_async`], [`Rcu::store_async`], [`Unlinked::into_inner_async`] |
//! | say when grace periods start, and what they may cost | [`tuning::Engine`], [`tuning::Builder`] |
//! | count, refer and lock by CPU; lock two mutexes | [`sync`] |
//! | see what happens | [`Domain::statistics`], [`report::set_stall_hook`], [`tuning::fences`], [`tuning::per_cpu_path`] |
//! | maps, sets, ids with marks, lists, queues and stacks | [`collections`] |
//! | structures on atomic pointers with tags, as with crossbeam-epoch | [`epoch`] |
//! | queues, stacks and a hash table of your own nodes | [`intrusive`] |
//! | callbacks with embedded heads, sections without guards | [`callback_queue`], [`raw`] |
//! | readers that are compiled against liburcu | [`liburcu_readers`] |
//!
//! # When not to use it
//! Where updates are about as frequent as reads a lock is faster, best one for each bucket. Where
//! readers must not see a value that has been replaced, RCU is the wrong tool. Sections that may
//! last for ever get an [`Srcu`] of their own: they hold up the updaters that have come to its
//! limit.
//!
//! # Mistakes
//! To wait for a grace period in a section that it waits for is a panic, and so is a guard or
//! cookie of another domain, where it is not a compile error. A build with debug assertions also
//! panics where an object is retired twice, or loaded while it waits, and fills what it frees with
//! 0x6b. A grace period that does not end is reported with the threads that hold it up
//! ([`report::set_stall_hook`]).
//!
//! # Systems
//! Linux on x86-64 comes first. Without `membarrier(2)` portable fences are used
//! ([`tuning::Fences`]), and without restartable sequences atomic instructions
//! ([`tuning::PerCpuPath`]): on aarch64, on older kernels, in sandboxes, and on macOS and Windows,
//! where the library compiles and is not tested.
//!
//! # Features and environment
//! | feature | default | what it adds |
//! |---|---|---|
//! | `collections` | yes | the module [`collections`] |
//! | `probes` | yes | USDT probes: `docs/PROBES.md` |
//! | `stacks` | yes | stacks in stall reports |
//! | `call_rcu` | no | [`callback_queue`], [`liburcu_readers`]: what liburcu's programs need |
//! | `epoch` | no | [`epoch`]: crossbeam-epoch's interface |
//! | `intrusive` | no | [`intrusive`]: structures whose nodes the caller brings along |
//! | `rayon` | no | several threads go over a map |
//! | `serde` | no | cells, maps and sets are serialised as what is in them |
//! | `tokio` | no | the module `tokio`: a runtime's workers are readers |
//! | `tracing` | no | events of the crate `tracing` |
//!
//!
//! | variable | effect |
//! |---|---|
//! | `QUIESCENCE_STATS=1` | the process serves its [`report::Statistics`] to its own user, for `rcu top` |
//! | `QUIESCENCE_LIMIT_BYTES`, `_LIMIT_OBJECTS`, `_LAZY_MS`, `_STALL_MS` | what domains begin with: see [`tuning::Tuning`] |
//! | `QUIESCENCE_STALL_SIGNAL` | how stacks are taken: see [`report::set_stall_hook`] |
//! | `QUIESCENCE_FENCES=portable` | no `membarrier(2)`: see [`tuning::Fences`] |
//! | `QUIESCENCE_FUTEX=portable` | sleeps on a condition variable, as on other systems than Linux |
//! | `QUIESCENCE_PERCPU=portable`, `=restartable` | no restartable sequences, or also beside a debugger: see [`tuning::per_cpu_path`] |
//! | `QUIESCENCE_DEBUG=1` | callback heads that are queued twice are looked for: see [`callback_queue`] |
//!
//! What is promised is in `docs/GUARANTEES.md`; why it is right, in
//! `docs/ORDERINGS.md`. What waits when `main` returns is run then, as far as the sections of other
//! threads allow.

// What only some features use, and pages that name what only they have.
#![cfg_attr(
    not(all(feature = "call_rcu", feature = "epoch", feature = "intrusive")),
    allow(dead_code, unreachable_pub, unused_imports),
    allow(rustdoc::broken_intra_doc_links, rustdoc::private_intra_doc_links)
)]

// The rooms, in their order: each imports only those above it.
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
    pub(crate) mod expect;
    mod limited;
    pub(crate) mod processes;
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
    domain::domain::{Cookie, Domain},
    domain::global::{barrier, call, retire, synchronize},
    domain::guard::{Guard, read},
    domain::hazard,
    domain::qsbr::{Qsbr, QsbrGuard, QsbrOffline},
    domain::raw,
    domain::rcu::{OwnedRcuRef, Rcu, RcuOption, RcuRef, Unlinked},
    domain::reader::Reader,
    domain::srcu::{Srcu, SrcuGuard, SrcuOwnedGuard},
    reclaim::retire::{AtLimit, Retire, WithSize},
    reclaim::weigh::Weigh,
};
/// The sum of what the fields own, as the trait [`Weigh`](trait@Weigh) asks.
pub use derive::Weigh;

pub mod cell {
    //! Cells beside [`Rcu`](crate::Rcu) and [`ArcCell`].
    //!
    //! | cell | what a reader holds | the old value |
    //! |---|---|---|
    //! | [`Rcu`](crate::Rcu), [`RcuOption`](crate::RcuOption) | a reference, in a section | is dropped after a grace period |
    //! | [`ArcCell`], [`ArcCellOption`], [`ArcCellWeak`] | a guard, without a count | is given up once no guard has it |
    //! | [`ExactCell`] | the same, with a count where it is replaced | is given up at once |
    //! | [`Snapshot`] | a copy of a few words | is written over |
    //!
    //! # Counts that are exact
    //! | | [`ArcCell`] | [`ExactCell`] |
    //! |---|---|---|
    //! | a load and its guard's end | two loads, two stores | and three stores, a locked instruction |
    //! | an update | an exchange | an exchange, a `membarrier(2)`, [more](ExactCell) |
    //! | the old value is dropped | within 10 ms, by any thread | by the update, or the last guard |
    //! | what may be in it | `Send + Sync + 'static`, weighed | any counted pointer, also `Rc` |
    //! | memory that waits | bounded by a limit | none |
    //! | a signal handler may load | yes | no |
    //!
    //! Take an `ArcCell` where reads are all that counts; an `ExactCell` where values are to be
    //! dropped in their turn, and updates are rare.
    //!
    //! # For those who come from `arc-swap`
    //! | `arc-swap` 1.9 | here |
    //! |---|---|
    //! | `ArcSwap<T>`, `ArcSwapOption<T>`, `ArcSwapWeak<T>` | [`ArcCell<T>`](ArcCell), [`ArcCellOption<T>`](ArcCellOption), [`ArcCellWeak<T>`](ArcCellWeak) |
    //! | `ArcSwapAny<P, S>` | [`ArcCellAny<P>`](ArcCellAny): there is one strategy |
    //! | `new`, `from_pointee`, `from` | the same, where the value says what it weighs ([`Weigh`]); else [`with_weight`](ArcCellAny::with_weight) |
    //! | `ArcSwapOption::const_empty`, `empty` | [`ArcCellOption::empty`], which is `const` |
    //! | `load` gives `Guard<Arc<T>>`, which derefs to `Arc<T>` | [`load`](ArcCellAny::load) gives [`ArcGuard`], which derefs to `T`: one `*` less. [`ArcGuard::as_inner`] is the `Arc` |
    //! | `Guard::into_inner`, `Guard::from_inner` | [`ArcGuard::into_inner`], [`ArcGuard::from_inner`] |
    //! | `load_full`, `store`, `swap`, `rcu`, `into_inner` | the same |
    //! | `compare_and_swap` gives a `Guard` | [`compare_and_swap`](ArcCellAny::compare_and_swap) gives the pointer; [`AsRaw`] is what it takes |
    //! | `swap(None)` | that, or [`take`](ArcCellOption::take) |
    //! | `Cache`, `cache::MapCache` | [`Cache`], [`MapCache`] |
    //! | `map`, `access::{Access, DynAccess, Map, Constant}` | [`map`](ArcCellAny::map), [`Access`], [`DynAccess`], [`Map`], [`Constant`] |
    //! | `RefCnt`, `AsRaw` | [`Counted`] and [`RefCnt`], [`AsRaw`] |
    //! | features `serde`, `weak` | feature `serde`; `Weak` is always there |
    //! | `strategy::*`, `debt` | none: hazard slots need no choice |
    //! | `Rc` in a cell | none: what was replaced may be given up by another thread |
    //! | the old reference is dropped by `store` | it is given up within 10 ms, once no guard has it; at once by [`hazard::barrier`](crate::hazard::barrier). Where a program relies on it: [`ExactCell`] |

    pub use crate::domain::arc_cell::{
        Access, ArcCellAny, ArcCellOption, ArcCellWeak, ArcGuard, AsRaw, Cache, Constant,
        ConstantGuard, DynAccess, DynGuard, Map, MapCache, MapGuard, RefCnt,
    };
    pub use crate::domain::exact_cell::{AT_END, Counted, ExactCell, ExactGuard};
    pub use crate::domain::snapshot::Snapshot;
    #[cfg(doc)]
    use crate::{ArcCell, Weigh};
}

/// Kinds of domains, for code that is generic over them: each domain has a tag, and a section is of
/// one tag.
pub mod tag {
    pub use crate::domain::guard::{Global, ThreadTag};
    pub use crate::domain::names::Private;
    pub use crate::domain::srcu::Sleepable;
    pub use crate::domain::tag::{DomainTag, Section};
}

/// What can be set, and what was chosen: limits and engines of domains, fences and counters of the
/// process.
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
// `docs`, so that the package has them. The first definition of a link counts: here it leads to the
// page in rustdoc, in the repository to the file.
#[cfg(any(doc, doctest))]
#[doc = "[glossary]: crate::glossary"]
#[doc = "[transformations]: crate::transformations"]
#[doc = ""]
#[doc = include_str!("../docs/GUIDE.md")]
pub mod guide {}

#[cfg(any(doc, doctest))]
#[doc = "[guide]: crate::guide"]
#[doc = ""]
#[doc = include_str!("../docs/GLOSSARY.md")]
pub mod glossary {}

#[cfg(any(doc, doctest))]
#[doc = "[glossary]: crate::glossary"]
#[doc = "[guide]: crate::guide"]
#[doc = ""]
#[doc = include_str!("../docs/TRANSFORMATIONS.md")]
pub mod transformations {}

/// What rooms and modules do for those above them, which may not import them: a function for each
/// occasion.
struct Hooks {
    /// A domain, or something else that a `fork` must find, is used for the first time. Called
    /// often, and under no lock.
    first_use: fn(),
    /// A thread has released all of the library's locks, after a grace period or after a domain was
    /// used for the first time.
    unlocked: fn(),
    /// A grace period has not ended for too long. Called under no lock of a domain.
    stalled: fn(gp::stall::Note),
    /// The outermost section of a slot has ended, and a mark says that there is work to do then.
    /// Called by the slot's owner.
    section_ended: fn(&gp::slot::Slot),
    /// A thread that has used the library ends.
    thread_ends: fn(),
    /// A domain that has been in use ends. Called under no lock.
    domain_ends: fn(&reclaim::domain_state::DomainState),
}

static HOOKS: Hooks = Hooks {
    first_use: process::watch::watch,
    unlocked: report::stats_server::attend,
    stalled: report::stall::reporter::send,
    section_ended: reclaim::ends::section_ended,
    thread_ends: reclaim::ends::thread_ends,
    domain_ends: reclaim::ends::domain_ends,
};

/// For the macro [`domain!`], and for tests of where user code runs.
#[doc(hidden)]
pub mod __private {
    pub use crate::os::user_code::{Site, here};
    pub use crate::reclaim::domain_state::DomainState;
    pub use crate::reclaim::domain_state::Handle;

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
