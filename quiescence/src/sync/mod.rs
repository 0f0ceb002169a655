//! Tools that keep a word for each CPU: counters, a reference count, a reader-writer lock. And
//! values of a few words that are read whole: [`SeqLock`], and [`Latch`], whose readers never wait.
//!
//! The per-CPU tools rest on one idea. A frequent operation updates a word of the CPU that it runs
//! on, without an atomic instruction. A rare operation first *folds* these words into one: it
//! unlinks them and interrupts the CPUs that are in the middle of an update. Until the words are
//! linked again, all threads use the one word, which is exact, as any atomic is. No thread waits
//! for that.
//!
//! | | while no thread folds | folds | promise |
//! |---|---|---|---|
//! | [`PerCpu`] | [`here`](PerCpu::here) is a plain reference | never | one `T` for each CPU, none in another's cache line |
//! | [`Counter`] | an addition to this CPU's word | never | *fuzzy*: a sum has each addition that came before it, and may have those that come during it; nothing is lost or counted twice |
//! | [`ExactCounter`] | the same | each sum | *exact*: a sum is the value that the counter had at one moment of the call |
//! | [`LimitCounter`] | takes from this CPU's stock | near the limit, and to say its value | *limit*: the value never exceeds the limit, and no addition is refused that would not exceed it |
//! | [`BigRef`] | a reference comes and continues this CPU's words | once, when it is killed | the release runs once, after the last reference is gone |
//! | [`LocalGlobalLock`] | a reader marks this CPU's word | each write | a writer is alone; readers do not disturb each other |
//!
//! | | a reader | a writer | promise |
//! |---|---|---|---|
//! | [`SeqLock`] | copies words, perhaps again | one locked instruction | a read gives one value |
//! | [`Latch`] | copies words; wait-free | three locked instructions, two copies | the same |
//!
//! No counter orders other memory accesses: a count does not tell what the thread that counted did
//! before. References and the lock do.
//!
//! # Cost
//! Each tool starts as one word that all share, and has words for each CPU (8 or 16 bytes of each)
//! once it has been used some 64 times. With restartable sequences
//! ([`PerCpuPath::Restartable`](crate::tuning::PerCpuPath)) an operation is then a few plain
//! instructions; on the portable path it is an atomic one on the CPU's own word: an addition in a
//! [`Counter`], a compare-and-swap, repeated if need be, in the others. Folding costs one
//! `membarrier(2)`, which takes some microseconds while other threads run, and a look at every
//! CPU's word; it costs neither as long as there is only one word. The first tool of a process that
//! needs words of the CPUs pays for the choice between the two paths: see
//! [`per_cpu_path`](crate::tuning::per_cpu_path).
//!
//! Each operation reads where the words are from the tool itself. Put the tool next to data that is
//! seldom written, as in a static or a structure of its own.
//!
//! # Processes
//! In a child made by `fork` counts go on from where they were. A lock, or a turn to fold, that
//! another thread held at that moment stays held in the child, as it does with the locks of the
//! standard library.
//!
//! # Sources
//! Counters: Paul E. McKenney, "Is Parallel Programming Hard, And, If So, What Can You Do About
//! It?", chapter 5. References: Kent Overstreet's percpu-refcount (Linux 3.11). The lock: the
//! local-global locks of Linux (lglock, brlock) and its percpu-rwsem (Mikulas Patocka, Oleg
//! Nesterov, Peter Zijlstra). There updaters and readers are *stalled* by a flag while somebody
//! looks at all words; here they are sent to one word meanwhile, and only the readers of a lock
//! have something to wait for.

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
