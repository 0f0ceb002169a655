//! `fork`: the child has the forking thread only, and finds every domain consistent.
//!
//! Before the fork every lock of the library that is in use is taken, in the order of their ranks
//! (`os/lock_rank.rs`), so that no other thread is in the middle of a change when the memory is
//! copied. Rooms that have such locks have entered them in the list of `os/forking.rs`. Parent and
//! child release them. The child repairs what the missing threads left: their readers are
//! unregistered, a grace period that one of them drove starts again from its fence, and their
//! queues become orphans that the next `barrier` or the worker runs.

use std::sync::Once;

use crate::gp::tuning;
use crate::os::{clock, exit, fence, forking, percpu, thread};

/// Complete once the handlers below are installed.
static INSTALL: Once = Once::new();

/// Installs handlers that the system calls at every fork and at the end of the process, if they are
/// not installed yet. Called when a domain or table is used for the first time.
pub(crate) fn watch() {
    INSTALL.call_once(|| {
        assert!(forking::install([prepare, parent, child]), "quiescence: pthread_atfork failed");
        assert!(exit::at_exit(super::end::finish), "quiescence: atexit failed");
    });
}

/// Before the fork, in the forking thread.
extern "C" fn prepare() {
    // An initialisation that is done once must not be in progress when the copy is made: in the
    // child no thread would finish it.
    INSTALL.call_once(|| ());
    tuning::default_bytes();
    clock::monotonic_ns();
    forking::hold();
}

/// After the fork, in the parent.
extern "C" fn parent() {
    drop(forking::release());
}

/// After the fork, in the child.
extern "C" fn child() {
    let Some(kept) = forking::release() else { return };
    fence::register_after_fork();
    percpu::register_after_fork();
    thread::after_fork();
    forking::repair();
    drop(kept);
}
