//! The free functions: those of [`Domain`] for the global domain.

use crate::domain::domain::{Cookie, Domain};
use crate::domain::guard::Global;
use crate::domain::reader::Reader;
use crate::event::statistics::Statistics;
use crate::gp::tuning::Tuning;
use crate::os::fence::{self, Fences};
use crate::os::percpu::{self, PerCpuPath};
use crate::reclaim::retire::{Refused, Retire, WithSize};

const GLOBAL: Domain<Global> = Domain::global();

/// Registers the calling thread in the global domain with an explicit handle.
pub fn reader() -> Reader {
    GLOBAL.reader()
}

/// Waits for a full grace period of the global domain. See [`Domain::synchronize`].
///
/// # Panics
/// If the calling thread is itself in a section of the global domain.
///
/// ```should_panic
/// let _guard = quiescence::read();
/// quiescence::synchronize(); // would wait for _guard for ever: panics, naming both lines
/// ```
#[track_caller]
pub fn synchronize() {
    GLOBAL.synchronize();
}

/// As [`synchronize`], but spins longer before it sleeps. See [`Domain::synchronize_expedited`].
#[track_caller]
pub fn synchronize_expedited() {
    GLOBAL.synchronize_expedited();
}

/// Asks for a full grace period of the global domain without waiting. See [`Domain::start_poll`].
///
/// ```
/// let cookie = quiescence::start_poll();
/// // ... something else ...
/// if !quiescence::poll(cookie) {
///     quiescence::wait(cookie);
/// }
/// ```
pub fn start_poll() -> Cookie {
    GLOBAL.start_poll()
}

/// The cookie of a full grace period from now on, without asking for it. See [`Domain::snapshot`].
pub fn snapshot() -> Cookie {
    GLOBAL.snapshot()
}

/// Whether the grace period of `cookie` is over. See [`Domain::poll`].
pub fn poll(cookie: Cookie) -> bool {
    GLOBAL.poll(cookie)
}

/// Waits until the grace period of `cookie` is over. See [`Domain::wait`].
#[track_caller]
pub fn wait(cookie: Cookie) {
    GLOBAL.wait(cookie);
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
pub fn call<F: FnOnce() + Send + 'static>(f: F) -> Result<(), Refused<F>> {
    GLOBAL.call(f)
}

/// As [`call`], but waits for no company. See [`Domain::call_hurry`].
///
/// # Errors
/// As [`call`].
pub fn call_hurry<F: FnOnce() + Send + 'static>(f: F) -> Result<(), Refused<F>> {
    GLOBAL.call_hurry(f)
}

/// Drops `object` after a grace period of the global domain. See [`Domain::retire`].
///
/// # Errors
/// At the domain's limit, where nothing may be waited for.
#[track_caller]
pub fn retire<P: Retire>(object: P) -> Result<(), Refused<P>> {
    GLOBAL.retire(object)
}

/// As [`retire`], for an owner of so many bytes. See [`Domain::retire_sized`].
///
/// # Errors
/// As [`retire`].
#[track_caller]
pub fn retire_sized<P: Send + 'static>(
    object: P,
    bytes: usize,
) -> Result<(), Refused<WithSize<P>>> {
    GLOBAL.retire_sized(object, bytes)
}

/// As [`retire`], but never waits: at the limit it gives the object back. See
/// [`Domain::try_retire`].
///
/// # Errors
/// At the domain's limit.
#[track_caller]
pub fn try_retire<P: Retire>(object: P) -> Result<(), Refused<P>> {
    GLOBAL.try_retire(object)
}

/// As [`call`], but never waits: at the limit it gives `f` back. See [`Domain::try_call`].
///
/// # Errors
/// At the domain's limit.
pub fn try_call<F: FnOnce() + Send + 'static>(f: F) -> Result<(), Refused<F>> {
    GLOBAL.try_call(f)
}

/// What deferral may take in the global domain, as it is set now. See [`Domain::tuning`].
pub fn tuning() -> Tuning {
    GLOBAL.tuning()
}

/// Sets what deferral may take in the global domain. See [`Domain::tune`].
pub fn tune(tuning: Tuning) {
    GLOBAL.tune(tuning);
}

/// Waits until everything queued in the global domain before has run. See [`Domain::barrier`].
#[track_caller]
pub fn barrier() {
    GLOBAL.barrier();
}

/// Counts of what has happened in the global domain.
pub fn statistics() -> Statistics {
    GLOBAL.statistics()
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
