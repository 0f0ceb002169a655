//! Free functions for what programs do most in the global domain ([`Domain::global`] has the rest),
//! and for what was chosen for the process.

use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::os::fence::{self, Fences};
use crate::os::percpu::{self, PerCpuPath};
use crate::reclaim::free::AtLimit;
use crate::reclaim::retire::Retire;

const GLOBAL: Domain<Global> = Domain::global();

/// Waits for a full grace period of the global domain. See [`Domain::synchronize`].
///
/// # Panics
/// If the calling thread is itself in a section of the global domain.
///
/// ```should_panic
/// let _guard = quiescence::read();
/// quiescence::synchronize(); // would deadlock on _guard, so it panics, naming both lines
/// ```
#[doc(alias = "synchronize_rcu")]
#[track_caller]
pub fn synchronize() {
    GLOBAL.synchronize();
}

/// Calls `f` after a grace period of the global domain, which may be delayed so that several
/// callbacks share it. See [`Domain::call`].
///
/// ```
/// quiescence::call(|| println!("no thread reads it any more")).expect("not in a section");
/// quiescence::barrier();
/// ```
///
/// # Errors
/// At the domain's limit, if the thread may not wait.
#[doc(alias("call_rcu", "defer"))]
pub fn call<F: FnOnce() + Send + 'static>(f: F) -> Result<(), AtLimit<F>> {
    GLOBAL.call(f)
}

/// Drops `object` after a grace period of the global domain. See [`Domain::retire`].
///
/// # Errors
/// At the domain's limit, if the thread may not wait.
#[doc(alias("kfree_rcu", "defer_rcu", "defer_destroy"))]
#[track_caller]
pub fn retire<P: Retire>(object: P) -> Result<(), AtLimit<P>> {
    GLOBAL.retire(object)
}

/// Waits until all callbacks and objects queued in the global domain so far have run or been
/// dropped. See [`Domain::barrier`].
#[doc(alias = "rcu_barrier")]
#[track_caller]
pub fn barrier() {
    GLOBAL.barrier();
}

/// How this process orders readers against updaters. Chosen once, on first use.
pub fn fences() -> Fences {
    fence::chosen()
}

/// How this process counts per CPU. Makes the choice, if none has been made yet. The first heavily
/// used counter or the first restartable read also makes it.
///
/// The choice takes some 100 µs, and some tens of milliseconds more if the process already has
/// several threads: the kernel then waits for grace periods of its own before it registers the
/// process for each of two kinds of membarrier. A program to which this matters calls this function
/// first in `main`.
///
/// `QUIESCENCE_PERCPU=portable` in the environment selects [`PerCpuPath::Portable`]. So does a
/// debugger or another tracer that is attached at that time, unless `QUIESCENCE_PERCPU=restartable`
/// is set. [`PerCpuPath::Restartable`] lists what a debugger that attaches later must not do.
pub fn per_cpu_path() -> PerCpuPath {
    percpu::path()
}
