//! Restartable sequences, explored: reads that a barrier sends back to their beginning, and what
//! is built on sections that look at a flag and count.
//!
//! Threads run on CPUs, are preempted at any instruction, go on on another CPU, and get signals; a
//! *section* of a thread that is preempted, gets a signal, or is interrupted by
//! `membarrier(PRIVATE_EXPEDITED_RSEQ)` is aborted (`machine` says how exactly). The subjects:
//!
//! - `snapshot`: the whole read is one section, and a writer frees what it has replaced
//!   after one barrier;
//! - `guard`: a read that falls back to a guard after some aborts;
//! - `counts`, `growing`: increments without a locked instruction, and counts
//!   that are small until used;
//! - `exact-counter`, `local-global`, `big-ref`: updaters that are
//!   stopped by a flag and a barrier;
//! - `folding-counter`, `folding-lock`: what the library has in place of the
//!   first two: the words themselves are taken out of their place, and no thread is stopped.
//!
//! What the threads of each run is a text in `worlds/programs`.
//!
//! `worlds/rseq_read.toml` lists each step with what comes of leaving it out, and what comes of a
//! kernel that does not abort.
//!
//! # What it confirms
//!
//! **A section that began before the barrier touches nothing after it.** Every touch of a freed
//! object counts, also one that would be aborted a moment later. So what is freed after the barrier
//! may be written to, and used again, at once.
//!
//! **It may be unmapped at once but for page faults** (`restart-unmapped-at-once`): one that began
//! before the barrier may look for the mapping after it, and only then would the kernel abort the
//! section. So memory that may be paged out, or shared after a fork, must stay mapped.
//!
//! **The section is as long as its protection.** It begins with the instruction after the store to
//! `rseq_cs` (`restart-pointer-before-start`: before that the kernel only clears `rseq_cs`), and an
//! abort goes back to before that store (`restart-abort-to-start`: the kernel has cleared it).
//! The barrier stops those who run, and preemption has stopped the others; both are needed, also
//! where reader and writer share a CPU. That signals abort is needed only for sections that write
//! in more than one instruction (`restart-no-abort-by-signal`).
//!
//! **One barrier and one look are enough for guards**: unlocks are summed, then the barrier, then
//! locks. Unlocks may be summed after the barrier as well, but never after locks, and locks never
//! before it. The barrier orders the reads of a guard that has ended, so its unlock need not be a
//! release.
//!
//! **The pointer to words of CPUs is loaded for each of the two sums**
//! (`restart-counters-once`); if the publication before is a locked instruction, x86 would get by
//! with one load.
//!
//! **The order of the two sums of a `LocalGlobalLock` does not matter while readers mark in
//! sections** (`restart-marks-first`): no thread marks after the barrier. Where a reader marks
//! first and takes its mark back, unmarks come first. No fence follows the sums, so here unmarks
//! are releases, and their sum acquires.
//!
//! **A thread without rseq** adds to shared words, never to those of a CPU, not even by a locked
//! instruction (`restart-locked-add-from-elsewhere`); and it counts the references of a `BigRef` on
//! the atomic word at all times.
//!
//! **Folding** needs the barrier between taking the words out of their place and summing them, and
//! release and acquire of that place (`restart-relaxed-flag-load`: else a thread finds the words
//! again, and not that they are zero). Its lock may say that it is stopped before or after
//! (`restart-stopped-late`), but a reader that is to wait must look once more under the mutex.
//! Without sections the mark in each word is needed (`restart-not-gone`); whether words or their
//! place come back first is not (`restart-place-before-zero`).
//!
//! # What it does not do
//!
//! `compare_and_swap`, a writer that leaves the lock to the next one, `LimitCounter`, and words of
//! a `Folding` that are made while it is used have no transcription.
//!
//! Under the weak model a thread is disturbed a limited number of times, once in most scenarios:
//! one abort that no thread asks for, and one migration though no other thread is to run (clocks
//! would grow without bound). Under TSO there is no limit.
//!
//! `rseq_cs` that outlives the code it points to (a library that is unloaded), and the kernel's own
//! correctness, are out of scope. That a locked instruction is one that cannot be interrupted is
//! x86's; elsewhere the commit must be a single instruction too.

use std::sync::LazyLock;

use crate::harness::{self, World};
use crate::machine;

/// Restartable sequences, as a world.
pub static RESTART: LazyLock<World> =
    LazyLock::new(|| machine::world("restart-", harness::table!("rseq_read")));
