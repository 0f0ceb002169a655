//! RCU for kernels: a ready-made implementation for a kernel's author.
//!
//! [`Kernel`] is a `static` of the kernel, over a [`Platform`] that says how to reach its CPUs. The
//! kernel calls a *hook* at each event that matters to a grace period: a context switch, a tick,
//! entering or leaving user mode or idle, an interrupt there, a CPU that comes or goes. Updaters
//! call [`Kernel::call`], [`Kernel::synchronize`] or [`Kernel::barrier`], or keep a cookie. A
//! reader is the kernel's own "preemption off": it calls nothing. [`Rcu`] is a cell over these, and
//! [`RcuList`] a list. Sections of an [`Srcu`] may sleep; it stands by itself, and what follows is
//! not about it.
//!
//! Nothing is allocated, and nothing of the standard library is used; the target needs 64-bit
//! atomics. The grace periods are those of Tree RCU ([`engine::tree`]), or those of another
//! [`engine`] that the type names ([`Driven`]). The simulator and the explorer step through the
//! engines as values; [`Any`] is one that is chosen as the kernel boots. The code around them in
//! this crate (ticks, expedited waits, hotplug, barriers) is tested only by the crate's own tests.
//!
//! # Invariant
//! **No callback runs, and no cookie is done, before every section has ended that had begun when
//! the callback was queued or the cookie was handed out.** A section is a stretch of kernel code in
//! which preemption stays off (with a compiler fence at both ends, or what has the effect of one),
//! on a CPU that is neither idle nor in user mode; or an interrupt handler between its two hooks,
//! but not across a [`tick`](Kernel::tick), which may end there what began before. On a CPU that is
//! not online there is no section, not even in an NMI.
//!
//! # Who accesses what
//! - A CPU's *own* part (its queue, what it has noticed): that CPU, with interrupts off; once it is
//!   dead, the CPU that cleans up after it. `percpu`.
//! - A CPU's *words* (extended or not, help wanted, counts): that CPU writes them, others read
//!   them. A scan clears one bit, and sets the bits that ask for help. `percpu`, on cache lines of
//!   their own.
//! - The engine, which is Tree RCU's tree and ages or a [`Driven`] one, and the number of online
//!   CPUs: the CPU that holds the machine's lock, with interrupts off. `lock`, `periods`.
//! - The grace period's number, and the time of the next scan: written under the lock, read by all.
//!   `front`.
//!
//! A context switch, [`call`](Kernel::call), [`has_callbacks`](Kernel::has_callbacks) and a section
//! access only the first two, of their own CPU. A tick also reads the number. The lock is taken
//! when a CPU notices that a grace period has begun or ended, reports to it, scans, or has very
//! many callbacks or bytes that wait: on its tick, a few times per grace period. Under a [`Driven`]
//! engine it takes the lock on each tick while it needs a grace period, and while the engine waits
//! for it and it has passed a quiescent state. Waiters also take it, and so do the worker and
//! hotplug if they have to. While it is held, no callback runs, and no function of the platform is
//! called except the clock.
//!
//! # Why the orderings suffice
//! - **Through the lock.** A CPU that is awake notices a grace period under the lock, after it
//!   began; so its later sections see what was updated before. It reports under the lock; so its
//!   earlier sections are over for the CPU that ends the grace period. Between the two, a quiescent
//!   state is a plain store.
//! - **Without the lock.** An idle CPU does not take the lock. It exchanges a word, with a full
//!   fence before it on entry, and after it on exit. A grace period of any engine executes a full
//!   fence at its beginning, before it scans. Either the scan sees the CPU outside of idle, and
//!   waits; or the CPU's fence comes later, and its sections see the update ([`engine::tree`],
//!   `cpu`). An NMI that arrives between the exit and its fence executes a fence of its own; no
//!   loom model shows this case, since loom's handlers never arrive within a hook.
//! - **Cookies.** [`cookie`](Kernel::cookie) executes a full fence between the caller's update and
//!   its load of the number. The number is written *before* the fence with which a grace period
//!   begins. So a load that misses a grace period precedes that fence, and the scans after it see
//!   the update's readers.
//! - **Callbacks** get their cookie under the lock, on the CPU that queued them.
//!
//! # Progress
//! A CPU with work keeps its tick: [`idle_enter`](Kernel::idle_enter) and
//! [`irq_exit`](Kernel::irq_exit) return whether it must go on. A CPU with callbacks, or one
//! that asked for a grace period, begins it, scans and ends it on its own ticks. So no grace period
//! depends on a sleeping CPU, and no CPU is woken for one. A CPU that dies with callbacks leaves
//! them to the CPU that cleans up after it.
#![no_std]

#[cfg(any(test, feature = "alloc"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod engine;
pub mod srcu;
mod choice;
mod data;
mod driven;
mod front;
mod head;
mod hooks;
mod hotplug;
mod list;
mod lock;
#[cfg(all(test, loom))]
mod loom_tests;
mod misuse;
mod percpu;
mod periods;
mod platform;
mod pointer;
mod snapshot;
mod sync;
mod updater;

pub use choice::{Any, NotChosen};
pub use data::{Domain, Rcu, RcuDrop, RcuOption, RcuOptionReadGuard, RcuReadGuard};
pub use driven::{Drivable, Driven};
pub use front::{Kernel, Options};
pub use grace::Cookie;
pub use grace::limit::Zone;
pub use head::{Head, Run};
pub use hooks::Interrupt;
pub use list::{Link, Linked, RcuList, RcuListIter};
pub use misuse::{Hook, Refused};
pub use periods::{GracePeriods, TreeRcu};
pub use platform::{CpuSet, Platform};
pub use pointer::NonNullPtr;
#[cfg(any(test, feature = "alloc"))]
pub use pointer::{Headed, RcuBox, RcuBoxRef};
pub use snapshot::{CpuSnapshot, Snapshot};
pub use srcu::{Srcu, SrcuGuard};
