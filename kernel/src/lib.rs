//! RCU for a kernel: what its author takes instead of writing one.
//!
//! [`Kernel`] is a `static` of the kernel, over a [`Platform`] that says how to reach its CPUs. The
//! kernel calls a *hook* where something happens that a grace period must know: a context switch, a
//! tick, the way into user mode or idle and back, an interrupt there, a CPU that comes or goes.
//! Updaters call [`Kernel::call`], [`Kernel::synchronize`], [`Kernel::barrier`] or keep a cookie. A
//! reader is the kernel's own "preemption off": it calls nothing.
//!
//! Nothing is allocated, and nothing of the standard library is used; the target needs 64-bit
//! atomics. The grace periods are Tree RCU's ([`engine::tree`]). The simulator and the explorer
//! step through that engine as a value ([`engine::tree::Tree`]); what this crate has around it
//! (ticks, expedited waits, hotplug, barriers) is tested by its own tests alone. [`engine`] has the
//! others that were published, for those who drive them themselves.
//!
//! # Invariant
//! **No callback runs, and no cookie is done, before each section has ended that had begun when the
//! callback was queued, or the cookie given.** A section is a stretch of kernel code in which
//! preemption stays off, on a CPU that is neither idle nor in user mode; or an interrupt handler
//! between its two hooks. On a CPU that is not online, also in an NMI, there is none.
//!
//! # Who touches what
//! - A CPU's *own* part (its queue, what it has noticed): that CPU, with interrupts off; once it is
//!   dead, the CPU that buries it. `percpu`.
//! - A CPU's *words* (extended or not, help wanted, counts): that CPU writes them, others read. A
//!   scan clears one bit, and sets those that ask for help. `percpu`, on lines of their own.
//! - The tree, ages, how many are online: the CPU that holds the machine's lock, with interrupts
//!   off. `lock`.
//! - The grace period's number, and when to scan: written under the lock, read by all. `front`.
//!
//! A context switch, [`call`](Kernel::call), [`has_callbacks`](Kernel::has_callbacks) and a
//! section touch the first two of their own CPU only. A tick reads the number besides. The lock is
//! taken when a CPU notices that a grace period has begun or ended, reports to it, scans, or has
//! very many callbacks: on its tick, a few times in a grace period. Waiters take it besides, and
//! the worker and hotplug if they have to. No callback runs, and no function of the platform but
//! the clock is called, while it is held.
//!
//! # Why the orderings are enough
//! - **Through the lock.** A CPU that is awake notices a grace period under the lock, after it
//!   began; so its later sections see what was updated before. It reports under the lock; so its
//!   earlier sections are over for whoever ends the grace period. Between the two a quiescent state
//!   is a plain store.
//! - **Past the lock.** An idle CPU takes none. It exchanges a word, with a full fence before it on
//!   the way in, and behind it on the way out. The grace period's beginning has a full fence before
//!   it scans. Either the scan sees the CPU outside, and waits; or the CPU's fence comes later, and
//!   its sections see the update ([`engine::tree`], `cpu`). An NMI that comes between the way out
//!   and its fence has one of its own; no loom model shows that one, whose handlers never come
//!   within a hook.
//! - **Cookies.** [`cookie`](Kernel::cookie) has a full fence between the caller's update and its
//!   look at the number. The number is written *before* the fence with which a grace period
//!   begins. So a look that misses a grace period precedes that fence, and the scans after it see
//!   the update's readers.
//! - **Callbacks** get their cookie under the lock, on the CPU that queued them.
//!
//! # Progress
//! Who has work keeps its tick: [`idle_enter`](Kernel::idle_enter) and
//! [`irq_exit`](Kernel::irq_exit) say whether the CPU may stop it. A CPU with callbacks, or that
//! asked for a grace period, begins it, scans and ends it on its own ticks; so no grace period
//! depends on a CPU that sleeps, and none is woken for one. A CPU that takes its callbacks to the
//! grave leaves them to the one that buries it.
#![no_std]

#[cfg(any(test, feature = "alloc"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod engine;
mod front;
mod head;
mod hotplug;
mod lock;
#[cfg(all(test, loom))]
mod loom_tests;
mod misuse;
mod percpu;
mod platform;
mod snapshot;
mod sync;
mod updater;

pub use front::{Interrupt, Kernel, Options};
pub use grace::Cookie;
pub use grace::limit::Zone;
pub use head::{Head, Run};
pub use misuse::{Hook, Refused};
pub use platform::{CpuSet, Platform};
pub use snapshot::{CpuSnapshot, Snapshot};
