//! Tools that keep one word per CPU: counters, a reference count, a reader-writer lock. And values
//! of a few words that are read as a whole: [`SeqLock`], and [`Latch`], whose readers never wait.
//!
//! The per-CPU tools rest on one idea. A frequent operation updates a word of the CPU it runs on,
//! without an atomic instruction. A rare operation first *folds* these words into one: it unlinks
//! them and interrupts the CPUs that are in the middle of an update. Until the words are linked
//! again, all threads use that single word, which is exact, as any atomic is. No thread waits for
//! this.
//!
//! | | while no thread folds | folds | promise |
//! |---|---|---|---|
//! | [`PerCpu`] | [`here`](PerCpu::here) is a plain reference | never | one `T` for each CPU, each in cache lines of its own |
//! | [`Counter`] | adds to this CPU's word | never | *fuzzy*: a sum includes every addition made before it, and may include those made during it; nothing is lost or counted twice |
//! | [`ExactCounter`] | adds to this CPU's word | for each sum | *exact*: a sum is the value that the counter had at one moment of the call |
//! | [`LimitCounter`] | takes from this CPU's stock | near the limit, and to read the value | *limit*: the value never exceeds the limit, and no addition that fits is refused |
//! | [`BigRef`] | counts a reference up and down on this CPU's words | once, when it is killed | the release runs once, after the last reference is gone |
//! | [`LocalGlobalLock`] | a reader marks this CPU's word | for each write | a writer is alone; readers do not disturb each other |
//!
//! | | a reader | a writer | promise |
//! |---|---|---|---|
//! | [`SeqLock`] | copies words, may retry | one locked instruction | a read returns one value |
//! | [`Latch`] | copies words; wait-free | three locked instructions, two copies | the same |
//!
//! No counter orders other memory accesses: a count says nothing about what the counting thread did
//! before. References and the lock do order them.
//!
//! # Cost
//! Each tool starts as one shared word. After some 64 uses it gets words for each CPU, of 8 or
//! 16 bytes per CPU. With restartable sequences
//! ([`PerCpuPath::Restartable`](crate::tuning::PerCpuPath)) an operation is then a few plain
//! instructions. On the portable path it is an atomic instruction on the CPU's own word: an
//! addition in a [`Counter`], a compare-and-swap, which may be retried, in the others. Folding
//! costs one `membarrier(2)`, which takes some microseconds while other threads run, and a load of
//! every CPU's word; it costs neither while there is only the shared word. The first tool in a
//! process that needs per-CPU words pays for the choice between the two paths: see
//! [`per_cpu_path`](crate::tuning::per_cpu_path).
//!
//! Each operation reads the location of the words from the tool itself. Put the tool next to data
//! that is seldom written, as in a static or a structure of its own.
//!
//! # Processes
//! In a child made by `fork`, counts continue from their values. A lock, or a turn to fold, that
//! another thread held at that moment stays held in the child, as with the locks of the standard
//! library. So may a [`SeqLock`], [`Latch`] or [`LocalGlobalLock`] for which another thread only
//! waited (a lock of the standard library does not): a turn is kept for that thread, which the
//! child does not have.
//!
//! # Sources
//! Counters: Paul E. McKenney, "Is Parallel Programming Hard, And, If So, What Can You Do About
//! It?", chapter 5. References: Kent Overstreet's percpu-refcount (Linux 3.11). The lock: the
//! local-global locks of Linux (lglock, brlock) and its percpu-rwsem (Mikulas Patocka, Oleg
//! Nesterov, Peter Zijlstra). There a flag *stalls* updaters and readers while a thread reads all
//! words; here they use the shared word meanwhile, and only the readers of a lock have anything to
//! wait for.

// May import the rooms from `os` to `domain`; so far it needs `os`, `percpu`, and macros of
// `domain`.

mod big_ref;
mod counter;
mod exact;
mod folding;
mod latch;
mod limit_counter;
mod local_global;
mod per_cpu;
mod seq_lock;
mod words;
mod writers;

pub use bytemuck::NoUninit;

pub use big_ref::{BigRef, BigRefHandle};
pub use counter::Counter;
pub use exact::ExactCounter;
pub use latch::Latch;
pub use limit_counter::LimitCounter;
pub use local_global::{LocalGlobalLock, LocalGlobalReadGuard, LocalGlobalWriteGuard};
pub use per_cpu::PerCpu;
pub use seq_lock::{SeqLock, SeqLockGuard};

use crate::reclaim::weigh::{Weigh, owns};

owns! {
    /// Its words for each CPU are of a stock that the process keeps.
    [] Counter, false;
    /// As a [`Counter`].
    [] ExactCounter, false;
    /// As a [`Counter`].
    [] LimitCounter, false;
    [T: NoUninit] Latch<T>, false;
    [T: NoUninit] SeqLock<T>, false;
    /// What a thread writes at that moment, or waits to write, counts for nothing.
    [T: Weigh] LocalGlobalLock<T>, T::OWNS, |lock| lock.try_read().map_or(0, |value| value.owned());
}
