//! The orderly exit of the process: runs waiting callbacks, except those of C, until none is left
//! or [`FINISH_NS`] has passed, and ends the library's threads.

use grace::Urgency;

use crate::gp::grace_periods::Me;
use crate::os::{clock, exit, forking, nap};
use crate::reclaim::domain_state::{self, DomainState, Handle};
use crate::reclaim::local::Sections;
use crate::reclaim::rescan;
use crate::reclaim::thread_queue::Wants;

/// Has [`finish`] called from now on. Called once, when a domain or table is used for the first
/// time.
pub(crate) fn watch() {
    assert!(exit::at_exit(finish), "quiescence: atexit failed");
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
        all & (domain.grace_periods.gp_words.links().is_some() || finish_domain(domain))
    };
    while !domains.iter().fold(true, finish) && clock::monotonic_ns() < deadline_ns {
        nap::moment();
    }
    end_threads(deadline_ns);
}

/// Runs what waits in a domain, as far as that is possible without waiting for other threads.
/// Returns whether nothing is left.
///
/// Like the worker, it does not wait for a queue's lock or the machine's before it has begun with
/// that queue [W-2]: the thread that holds it may never run again.
fn finish_domain(domain: &DomainState) -> bool {
    let busy = domain.queues.close_unless_busy(domain, Urgency::Expedited);
    if Sections::of_this_thread() == Sections::None {
        domain.grace_periods.advance_at(Me::this_thread(), true);
    }
    domain.queues.all().iter().for_each(|queue| {
        while queue.run_some_unless_busy(domain, domain.grace_periods.tuning.run_min()) != 0 {}
    });
    domain.queues.forget_orphans(domain);
    rescan::free_unprotected(domain);
    busy == 0 && domain.queues.wants() == Wants::Nothing
}

/// Ends the library's threads, so that none of them runs user code while the program is torn down.
/// Waits for them until `deadline_ns` at most: a callback that one of them runs may never return,
/// or may itself be ending the process.
fn end_threads(deadline_ns: u64) {
    while forking::end_threads() && !exit::IS_OURS.get() && clock::monotonic_ns() < deadline_ns {
        nap::moment();
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::sync::{Arc, mpsc};
    use std::task::{Context, Wake};

    use super::*;
    use crate::Domain;
    use crate::common::again::*;
    use crate::os::forking::ForkMutex;
    use crate::os::sync::{Rank, const_unless_loom};
    use crate::reclaim::domain_state::Named;

    const_unless_loom! {
        static STUCK: ForkMutex<()> = ForkMutex::new(Rank::Turn, ());
    }

    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    static LETS_GO: AtomicBool = AtomicBool::new(false);

    extern "C" fn begin() {
        HAS_BEGUN.store(true, SeqCst);
    }

    extern "C" fn end() {
        assert!(LETS_GO.load(SeqCst), "the thread that holds the lock was not waited for");
    }

    /// All threads that the library starts once counted as those that process exit does not wait
    /// for if one of them calls it.
    #[test]
    fn a_barriers_thread_that_ends_the_process_waits_for_the_others() {
        struct Exits;
        impl Wake for Exits {
            fn wake(self: Arc<Self>) {
                std::process::exit(0)
            }
        }
        if role().is_some() {
            assert!(exit::at_exit(end), "called after the library's");
            Domain::global().synchronize();
            assert!(exit::at_exit(begin), "called before the library's");
            let (holds, is_held) = mpsc::channel();
            std::thread::spawn(move || {
                let _held = STUCK.lock();
                holds.send(()).unwrap();
                while !HAS_BEGUN.load(SeqCst) {
                    nap::moment();
                }
                LETS_GO.store(true, SeqCst);
            });
            is_held.recv().unwrap();
            let (polls, is_polled) = mpsc::channel();
            Domain::global().call(move || is_polled.recv().unwrap()).unwrap();
            let (barrier, waker) = (pin!(Domain::global().barrier_async()), Arc::new(Exits).into());
            assert!(barrier.poll(&mut Context::from_waker(&waker)).is_pending());
            polls.send(()).unwrap();
            loop {
                std::thread::park();
            }
        }
        ends_again(this_test!(), "child", 0);
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
