//! Restartable reads: sections that no grace period waits for.
//!
//! A read of a pointer and of what it points to that is one restartable sequence cannot be preempted in the
//! middle and go on: the kernel begins it anew. And `membarrier(PRIVATE_EXPEDITED_RSEQ)` interrupts those that
//! run. So after an updater has taken an object out of its place, one such system call is a grace period: every
//! sequence that had loaded the old pointer has happened, or begins anew and finds the new one.
//!
//! A reader that has begun anew too often, that has no rseq, or whose process counts
//! [`Portable`](crate::PerCpuPath::Portable), reads in a *fallback section*: one of a sleepable domain that all share. An updater
//! looks whether there are any, and waits for them if there are.
//!
//! ```text
//!   fallback reader                 updater
//!   lock += 1                       pointer = new
//!   light fence                     u = sum of unlocks, both banks
//!   load pointer, read              barrier: heavy fence, and sequences begin anew  [RR-1]
//!   light fence                     l = sum of locks, both banks
//!   unlock += 1                     u = l: nobody sees the old object; else a grace period of that domain
//! ```

use crate::os::percpu;
use crate::srcu::{Srcu, SrcuGuard};

/// Those who cannot read in a sequence.
static FALLBACK: Srcu = Srcu::new();

/// Begins a fallback section. For a few instructions only: updaters wait for it.
#[cold]
#[inline(never)]
pub(crate) fn section() -> SrcuGuard<'static> {
    FALLBACK.read()
}

/// Waits until no read that began before can see what the caller has unlinked. The caller is in no fallback
/// section.
pub(crate) fn grace_period() {
    let unlocks = [0, 1].map(|bank| FALLBACK.banks_if_any().map_or(0, |banks| banks.unlocks(bank)));
    percpu::barrier(); // [RR-1]
    // Asked anew: banks that were made meanwhile are seen after the barrier.
    let locks = [0, 1].map(|bank| FALLBACK.banks_if_any().map_or(0, |banks| banks.locks(bank)));
    if unlocks != locks {
        FALLBACK.synchronize_expedited();
    }
}

/// In a child process: whoever was in a fallback section, which takes a few instructions, is another thread and gone.
pub(crate) fn after_fork() {
    if let Some(banks) = FALLBACK.banks_if_any() {
        banks.forget_sections();
    }
}
