//! Restartable reads: sections that no grace period waits for.
//!
//! A read of a pointer and of what it points to that is one restartable sequence cannot be
//! preempted in the middle and go on: the kernel begins it anew. And
//! `membarrier(PRIVATE_EXPEDITED_RSEQ)` interrupts those that run. So after an updater has taken an
//! object out of its place, one such system call is a grace period: every sequence that had loaded
//! the old pointer has happened, or begins anew and finds the new one [RR-1].
//!
//! A reader that has begun anew too often, that has no rseq, or whose process counts
//! [`Portable`](crate::tuning::PerCpuPath::Portable), reads in a *fallback section*: one of a
//! sleepable domain that all share. An updater looks whether there are any, and waits for them if
//! there are [RR-2].
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
//! One look is enough, whatever the counts do meanwhile. A reader counts itself in and out in one
//! index, and both indexes are looked at, so it does not matter which of them a reader finds
//! current: flipping serves to end a *wait*, not to make a look right. In each index, a thread that
//! `u` counts as gone is counted as come by `l`, so `u <= l`. If `u == l`, every thread that `l`
//! counts had left before the barrier. A thread that `l` does not count loads the pointer after the
//! barrier.
//!
//! This file may touch the fallback domain and the barrier; what a sequence reads is the affair of
//! [`Snapshot`](crate::cell::Snapshot). **No user code runs in a fallback section**, so none can
//! store there and wait for itself. A signal handler that stored would: it may only load, and fork
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

/// For the thread that makes a place for readers: makes the choice that they need, so that none of
/// them has to, and has a `fork` know of their domain.
pub(crate) fn prepare() {
    percpu::path();
    Fallback::current().prepare();
}

/// Begins a fallback section. For a few instructions only, none of them user code: updaters wait
/// for it.
#[cold]
#[inline(never)]
pub(crate) fn section() -> FallbackSection {
    percpu::path(); // so that the next read can be a sequence
    FallbackSection::begin()
}

/// Waits until no read that began before can see what the caller has unlinked, by a
/// read-modify-write that is Release at least. The caller is in no fallback section.
///
/// Waits for readers in fallback sections and for no others.
pub(crate) fn grace_period() {
    let fallback = Fallback::current();
    let unlocks = fallback.srcu_counts(|srcu_counts, index| srcu_counts.unlocks(index));
    percpu::barrier(); // [RR-1] //~ no-restart-barrier
    // The counts are asked for anew: whose making is not seen now begins to read after the barrier.
    let locks = fallback.srcu_counts(|srcu_counts, index| srcu_counts.locks(index));
    //~ no-fallback-look:
    if unlocks != locks {
        fallback.synchronize(); // [RR-2]
    }
}
