//! The handlers that the system calls at a `fork` and at process exit.
//!
//! **Fork.** The child has only the forking thread, and finds every domain consistent. Before the
//! fork, the handler takes every lock of the library that is in use, in the order of their ranks
//! (`os/lock_rank.rs`). So no other thread is in the middle of a change when the memory is copied.
//! Rooms that have such locks have entered them in the list of `os/forking.rs`. Parent and child
//! release them. The child repairs what the missing threads left: it unregisters their readers,
//! restarts from its fence a grace period that one of them drove, and makes their queues orphans,
//! which the next `barrier` or the worker runs.
//!
//! **Exit.** The handler runs waiting callbacks, except those of C, until none is left or
//! [`FINISH_NS`] has passed, and ends the library's threads.

use std::sync::Once;

use crate::gp::tuning;
use crate::os::{clock, fence, forking, nap, percpu, thread};
use crate::reclaim::{defer, domain_state, domain_state::Handle};

/// Complete once the handlers below are installed.
static INSTALL: Once = Once::new();

/// Installs the handlers for `fork` and process exit, if they are not installed yet. Called when a
/// domain or table is used for the first time.
pub(crate) fn watch() {
    INSTALL.call_once(|| {
        assert!(forking::install([prepare, parent, child]), "quiescence: pthread_atfork failed");
        assert!(thread::at_exit(finish), "quiescence: atexit failed");
    });
}

/// Before the fork, in the forking thread.
extern "C" fn prepare() {
    // A one-time initialisation must not be in progress when the memory is copied: in the child no
    // thread would finish it.
    INSTALL.call_once(|| ());
    tuning::default_bytes();
    #[cfg(not(target_os = "linux"))] // elsewhere time begins at the first call
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

/// The longest time, in nanoseconds, for which process exit waits for other threads.
const FINISH_NS: u64 = 200_000_000;

/// At process exit: runs waiting callbacks until none is left or [`FINISH_NS`] has passed.
extern "C" fn finish() {
    let deadline_ns = clock::monotonic_ns().saturating_add(FINISH_NS);
    let (domains, _) = domain_state::list(usize::MAX);
    // All domains in each pass: a callback of one may queue another in an earlier one.
    let finish = |all: bool, domain: &Handle| {
        // C's callbacks are not run, as with liburcu: the data that they access may be gone.
        all & (domain.grace_periods.gp_words.links().is_some() || defer::finish(domain))
    };
    while !domains.iter().fold(true, finish) && clock::monotonic_ns() < deadline_ns {
        nap::moment();
    }
    end_threads(deadline_ns);
}

/// Ends the library's threads, so that none of them runs user code while the program is torn down.
/// Waits for them until `deadline_ns` at most: a callback that one of them runs may never return,
/// or may itself be ending the process.
fn end_threads(deadline_ns: u64) {
    while forking::end_threads() && !thread::is_ours() && clock::monotonic_ns() < deadline_ns {
        nap::moment();
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::sync::mpsc;

    use crate::Domain;
    use crate::common::processes::*;
    use crate::domain::tag::DomainTag;
    use crate::os::forking::ForkMutex;
    use crate::os::sync::{Rank, const_unless_loom};

    const_unless_loom! {
        static STUCK: ForkMutex<()> = ForkMutex::new(Rank::Turn, ());
    }

    /// Process exit once waited for the machine's lock of every domain in which callbacks waited,
    /// and once for all locks that a fork takes.
    #[test]
    fn a_lock_that_is_never_let_go_does_not_hold_up_the_end() {
        if role().is_some() {
            let domain = Domain::global();
            domain.retire(Box::new(1)).expect("not in a section");
            let (holds, is_held) = mpsc::channel();
            let holds_too = holds.clone();
            let stay = || loop {
                std::thread::park();
            };
            std::thread::spawn(move || {
                let domain = Domain::global();
                let _held = domain.tag().core().grace_periods.lock();
                holds.send(()).unwrap();
                stay()
            });
            std::thread::spawn(move || {
                let _held = STUCK.lock();
                holds_too.send(()).unwrap();
                stay()
            });
            (0..2).for_each(|_| is_held.recv().unwrap());
            std::process::exit(0);
        }
        ends_again(this_test!(), "child", 0);
    }
}
