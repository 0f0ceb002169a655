//! The free functions: those of [`Domain`] for the global domain.

use crate::domain::{Cookie, Domain};
use crate::guard::Reader;
use crate::kind::Global;
use crate::os::fence::{self, Fences};
use crate::statistics::Statistics;

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

/// Asks for a full grace period of the global domain without waiting. See [`Domain::start`].
///
/// ```
/// let cookie = quiescence::start();
/// // ... something else ...
/// if !quiescence::poll(cookie) {
///     quiescence::wait(cookie);
/// }
/// ```
pub fn start() -> Cookie {
    GLOBAL.start()
}

/// The cookie of a full grace period from now on, without asking for it. See [`Domain::get`].
pub fn get() -> Cookie {
    GLOBAL.get()
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

/// Calls `f` after a grace period of the global domain. See [`Domain::call`].
///
/// ```
/// quiescence::call(|| println!("nobody reads it any more"));
/// quiescence::barrier();
/// ```
pub fn call<F: FnOnce() + Send + 'static>(f: F) {
    GLOBAL.call(f);
}

/// Drops `object` after a grace period of the global domain. See [`Domain::retire`].
pub fn retire<T: Send + 'static>(object: Box<T>) {
    GLOBAL.retire(object);
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
