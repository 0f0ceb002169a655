//! Restartable reads: sections that no grace period waits for.
//!
//! A reader loads a pointer and what it points to in one restartable sequence. If the sequence is
//! preempted or interrupted by a signal, the kernel restarts it.
//! `membarrier(PRIVATE_EXPEDITED_RSEQ)` restarts the sequences that are running on other CPUs. So
//! once an updater has unlinked an object, one such system call is a grace period: every sequence
//! that had loaded the old pointer has finished, or restarts and loads the new one [RR-1]. (A
//! thread that is being switched out at that moment gets no interrupt, but its sequence restarts
//! when it runs again.)
//!
//! A reader uses a *fallback section* if its sequence was restarted too often, if its thread has no
//! rseq, or if the process uses [`Portable`](crate::tuning::PerCpuPath::Portable). It is a section
//! of a sleepable domain that all readers share. An updater checks whether there are any such
//! sections, and waits for them if there are [RR-2].
//!
//! ```text
//!   fallback reader        updater
//!   lock += 1              pointer = new
//!   light fence            u = unlocks of each index
//!   load pointer, read     barrier: heavy fence, and sequences begin anew   [RR-1]
//!   light fence            l = locks of each index
//!   unlock += 1            u = l: no thread sees the old object;
//!                          else a grace period of that domain               [RR-2]
//! ```
//!
//! One check is enough, whatever the counts do meanwhile. A reader increments `lock` and `unlock`
//! under the same index, and both indexes are checked, so it does not matter which index a reader
//! finds current. (The flip of the index is needed to end a *wait*, not for this check.) Under each
//! index, every unlock that `u` counts has its lock in `l`, so `u <= l`. If `u == l`, every section
//! that `l` counts had ended before the barrier. A section that `l` does not count loads the
//! pointer after the barrier.
//!
//! This file may touch the fallback domain and the barrier. What a sequence reads is up to
//! [`Snapshot`](crate::cell::Snapshot). **No user code runs in a fallback section**, so no section
//! waits for itself by a store. A signal handler that stored would: it may only load, and fork
//! ([`fallback`]).
//!
//! May import: [`os`](crate::os), [`event`](crate::event), [`percpu`](crate::percpu),
//! [`gp`](crate::gp), [`srcu`](crate::srcu), [`reclaim`](crate::reclaim).

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64", not(miri)))]
mod tests;

mod fallback;

use crate::os::percpu;

use fallback::Fallback;
pub(crate) use fallback::FallbackSection;

/// Called when a `Snapshot` is created: chooses the per-CPU path, so that no reader has to, and
/// registers the fallback domain for `fork`.
pub(crate) fn prepare() {
    percpu::path();
    Fallback::current().prepare();
}

/// Begins a fallback section, for which updaters wait. It lasts a few instructions, and runs no
/// user code.
#[cold]
#[inline(never)]
pub(crate) fn section() -> FallbackSection {
    percpu::path(); // so that the next read can be a sequence
    FallbackSection::begin()
}

/// Waits until no read that has begun can see what the caller has unlinked, by a read-modify-write
/// that is at least Release. The caller is in no fallback section.
///
/// Waits only for readers in fallback sections.
pub(crate) fn grace_period() {
    let fallback = Fallback::current();
    let unlocks = fallback.srcu_counts(|srcu_counts, index| srcu_counts.unlocks(index));
    percpu::barrier(); // [RR-1] //~ no-restart-barrier
    // The counts are looked up again: a thread whose creation of them is not seen here reads after
    // the barrier.
    let locks = fallback.srcu_counts(|srcu_counts, index| srcu_counts.locks(index));
    //~ no-fallback-look:
    if unlocks != locks {
        fallback.synchronize(); // [RR-2]
    }
}
