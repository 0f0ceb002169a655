//! The free functions: what programs do most in the global domain, of which
//! [`Domain::global`] gives all, and what was chosen for the process.

use crate::domain::domain::Domain;
use crate::domain::guard::Global;
use crate::os::fence::{self, Fences};
use crate::os::percpu::{self, PerCpuPath};
use crate::reclaim::retire::{AtLimit, Retire};

const GLOBAL: Domain<Global> = Domain::global();

/// Waits for a full grace period of the global domain. See [`Domain::synchronize`].
///
/// # Panics
/// If the calling thread is itself in a section of the global domain.
///
/// ```should_panic
/// let _guard = quiescence::read();
/// quiescence::synchronize(); // would wait for _guard for ever: panics, naming both lines
/// ```
#[doc(alias = "synchronize_rcu")]
#[track_caller]
pub fn synchronize() {
    GLOBAL.synchronize();
}

/// Calls `f` after a grace period of the global domain, which may wait for company. See
/// [`Domain::call`].
///
/// ```
/// quiescence::call(|| println!("no thread reads it any more")).expect("not in a section");
/// quiescence::barrier();
/// ```
///
/// # Errors
/// At the domain's limit, where nothing may be waited for.
#[doc(alias("call_rcu", "defer"))]
pub fn call<F: FnOnce() + Send + 'static>(f: F) -> Result<(), AtLimit<F>> {
    GLOBAL.call(f)
}

/// Drops `object` after a grace period of the global domain. See [`Domain::retire`].
///
/// # Errors
/// At the domain's limit, where nothing may be waited for.
#[doc(alias("kfree_rcu", "defer_rcu", "defer_destroy"))]
#[track_caller]
pub fn retire<P: Retire>(object: P) -> Result<(), AtLimit<P>> {
    GLOBAL.retire(object)
}

/// Waits until everything queued in the global domain before has run. See [`Domain::barrier`].
#[doc(alias = "rcu_barrier")]
#[track_caller]
pub fn barrier() {
    GLOBAL.barrier();
}

/// How this process orders readers against updaters: chosen on the first use, for good.
pub fn fences() -> Fences {
    fence::chosen()
}

/// How this process counts per CPU. Makes the choice if it has not been made, as the first counters
/// that are used much, and the first restartable reads, do.
///
/// That takes some 100 us, but some tens of ms more in a process that has several threads already:
/// the kernel then waits for grace periods of its own before it promises barriers, of which there
/// are two sorts. So a program that minds calls this first of all in `main`.
///
/// `QUIESCENCE_PERCPU=portable` in the environment asks for [`PerCpuPath::Portable`]. So does a
/// debugger or another tracer that is attached by then; `QUIESCENCE_PERCPU=restartable` asks for
/// [`PerCpuPath::Restartable`] all the same. That one says what a debugger must not do that
/// attaches later.
pub fn per_cpu_path() -> PerCpuPath {
    percpu::path()
}
