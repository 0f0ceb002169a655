//! Explores every state that grace periods can reach.
//!
//! The *real* [`grace::Machine`] is driven here as the runtime drives it, against step-by-step
//! transcriptions of the readers, the updater and the driver (in `world`; each mirrors a file of
//! `quiescence`, and `docs/ORDERINGS.md` says which). There are no threads and no clock: a state is
//! a value, and `explore` takes every step that is possible in every state, breadth first, until
//! there are no new ones. Memory is one of two [`Model`]s: store buffers, as on x86, or views,
//! which also reorder loads and stores of different locations.
//!
//! It finds an object that is read after it was freed, freed while its read may still be under way,
//! or read before it is initialised; an event that the machine refuses; and a state from which no
//! end can be reached, such as a sleeper that no thread will wake. Each *mutant*, the protocol
//! with one step removed or weakened, must be found: an explorer that finds nothing has shown
//! nothing.
//!
//! # What it confirms
//!
//! **One heavy fence and one pass are enough**, while numbers are fresh, and the closing fence that
//! liburcu executes is not needed. No transcription has one, and every scenario is safe: two
//! sections against two grace periods in 5,113 states under TSO and 10,670 under the weak model;
//! two readers in 15,734 and 18,682; two updaters whose requests come in mid grace period in 14,102
//! and 32,459.
//!
//! **The weak model has one condition:** *every* store to the word must be a release, that of lock
//! included, not only that of unlock. A reader may unlock and lock again under the new number
//! before the scan looks; the scan then acquires from lock's store. If that is relaxed, nothing
//! orders the section before it against the free (`relaxed-lock`, `relaxed-nested-lock`). On x86 a
//! release store is a plain one.
//!
//! **Two passes once numbers have come round**, and one is not enough (`one-pass-after-a-turn`,
//! `phase-bit`).
//!
//! **What is not needed** is recorded too, as mutants that are [`Kind::Harmless`].
//!
//! **The litmus tests** ([`litmus`]) hold for eleven kinds of reader (ordinary, portable and QSBR
//! ones; nested, late, online for one section only or between two quiescent states) under both
//! models, and so does the rule behind them: of the 21 cycles of two threads, for each kind of
//! reader, and the 76 of three, for ordinary ones, those with at least as many grace periods as
//! sections are never reached, and the others are. Two grace periods against two sections are
//! 587,773 states under TSO and 938,394 under the weak model. The relay of QSBR readers (engine
//! `token`) is not transcribed here; loom runs it.
//!
//! **Moves between two containers** with one lock at a time: a reader that goes in the order of the
//! move finds the element in at least one; with a grace period between its updates a move back is
//! safe; and with a version an element counts in exactly one (`move`, `move-and-back`,
//! `move-counted-in-the-first` and `-second`). The element is lost if either order is reversed,
//! without the grace period, or if that comes before both updates.
//!
//! **The kernel engines** of the simulator ([`engines`]) are safe and finish, on two CPUs with
//! two callbacks and on three with one: `poll` in up to 146,160 states with one list and 80,856
//! with a list for each; `tick` in 182,488; `token` in 48,113 as published and some 220,000
//! reworked; `on-demand` in some 205,000 (706,000 where CPUs sleep); Tree RCU in 29,136 (3.15)
//! to 3,527,512 (today's), always awake, and on two CPUs that sleep. Of their steps each one
//! is unsafe or stuck when it is left out, or saves time only. Two need something of CPUs
//! that Linux grants them, and are stuck without it: `token`, version 2, and `on-demand` run the
//! callbacks of a CPU that is awake on its ticks.
//!
//! **Bounded memory** ([`limit`]): threads with stocks and two words that are touched one after the
//! other keep within the limit and one object a thread, free nothing under a section, wait for
//! nothing but sections, and lose no room: nine scenarios of up to some 110,000 states. Of 26 rules
//! that are left out three do no harm.
//!
//! **Restartable sequences** ([`rseq_read`]), with an abort as an event: no read touches what is
//! freed after one barrier, its fallback included; counts are exact; sums find everybody; no thread
//! enters a lock beside its writer or sleeps for ever; a reference is released once: 48 scenarios,
//! each of up to some 440,000 states under TSO. Of 129 faults (a mutant in a scenario; 62 mutants)
//! all but 15 are found.
//!
//! **Hazard pointers** ([`hazard`]): what a guard protects is not freed, in whatever thread the
//! guard ends, and what is retired is freed in the end; one heavy fence a batch is enough, and what
//! is scanned again needs none; and those of the C++ headers, with a thread of their own: 22
//! scenarios of up to some 115,000 states. Of 29 mutants two do no harm.
//!
//! **Sequence locks and latches** ([`sequence`]): no read has words of two values or goes back, no
//! copy is written that a pinned reader reads; the lock among writers is one thread's, and no
//! thread sleeps for ever. Of 29 mutants one does no harm. It found two wake-ups that were lost.
//!
//! # What it does not do
//!
//! Calls into an engine are atomic here, and CPUs' memory is sequentially consistent: who
//! runs one on real CPUs has to order what they read of each other.
//!
//! The transcriptions are models: loom runs the code itself. Load buffering is out of scope.
//! Scenarios are small: a fault that needs five threads is not found.
//!
//! # Running it
//!
//! `cargo test -p quiescence-verify` explores the scenarios of the tables in the folder `worlds`,
//! the engines on few CPUs, and all mutants. `cargo run --release -p quiescence-verify --example
//! exhaustive` also explores the big ones, and more CPUs; with the names of a scenario and a
//! mutant, or of an engine and a step of its, it prints the trace.
//!
//! ```
//! use check::{GRACE_PERIODS, Model, Verdict};
//!
//! let scenario = GRACE_PERIODS.named("one-reader").expect("it exists");
//! assert!(scenario.explore(Model::Tso, None, 10_000).is_safe());
//! let verdict = scenario.explore(Model::Tso, Some("no-heavy-fence"), 10_000);
//! let Verdict::Violation { what, .. } = verdict else { panic!("it is found") };
//! assert_eq!(what, "object 0 is read after it was freed");
//! ```
//!
//! Reading order: `memory` (what a step may see), `scenario` (who does what), `world` (the
//! transcriptions), `system` and `explore`, `program`, [`harness`] and the tables, [`litmus`];
//! `machine`, which runs the programs of [`srcu`], [`hazard`], [`sequence`] and [`rseq_read`]; then
//! [`engines`], [`limit`]; [`catalogue`].
#![forbid(unsafe_code)]

pub mod catalogue;
mod choice;
pub mod engines;
mod explore;
mod fingerprint;
pub mod harness;
pub mod hazard;
pub mod limit;
pub mod litmus;
mod machine;
mod memory;
mod program;
pub mod rseq_read;
mod scenario;
pub mod sequence;
mod system;
pub mod srcu;
mod world;

pub use explore::{Model, Verdict};
pub use harness::{Explored, Fault, Kind, World};
pub use scenario::{Op, Outcome, Scenario, Thread};
pub use world::GRACE_PERIODS;
